"""A channel that gives names their prefix, and makes each durable queue of ours one quorum queue a lane.

Above it all is as with any broker: Celery and kombu know the names that `broker.queues` gives.
"""

from collections.abc import Callable
from typing import Any

from amqp.protocol import queue_declare_ok_t

from scheduler_app.broker.malformed import Malformed, note_dropped
from scheduler_app.broker.rabbitmq.confirms import ConfirmingChannel
from scheduler_app.broker.rabbitmq.envelope import check_envelope
from scheduler_app.broker.rabbitmq.names import AHEAD, LANES, lane_of, lane_queue, queue_of, scoped, unscoped

#: Messages that are due later and that one worker holds; each names up to 100 events.
HELD_AHEAD = 1_000
#: How often a message is given back before RabbitMQ drops it: one that ends each worker must not do so for
#: ever. (RabbitMQ 4 has this limit by itself.) Recovery takes up the events of one that was innocent.
DELIVERY_LIMIT = 20
QUORUM = {"x-queue-type": "quorum", "x-delivery-limit": DELIVERY_LIMIT}


class LaneChannel(ConfirmingChannel):
    def __init__(self, connection: Any, *args: Any, **kwargs: Any) -> None:
        self._prefix: str = connection.name_prefix
        # Of the connection: kombu declares a queue once for each.
        self._in_lanes: set[str] = connection.in_lanes
        self._prefetch = 0
        self._checked_tags: set[str] = set()
        self._held: set[int] = set()
        super().__init__(connection, *args, **kwargs)

    def lengths(self, queue: str) -> dict[str, int]:
        """The messages by lane that no worker has fetched. It makes a queue that is missing: a passive
        declaration of it would close the channel."""
        return {lane: self._declare_lane(queue, lane, {}).message_count for lane in LANES}

    def return_all_but(self, but: set[Any]) -> None:
        """Gives all messages back that were fetched and not acknowledged, but those with these tags."""
        for tag in self._held - but:
            self.basic_reject(tag, requeue=True)

    # Names of exchanges and queues

    def exchange_declare(self, exchange: str, *args: Any, **kwargs: Any) -> Any:
        return super().exchange_declare(scoped(self._prefix, exchange), *args, **kwargs)

    def exchange_delete(self, exchange: str, *args: Any, **kwargs: Any) -> Any:
        return super().exchange_delete(scoped(self._prefix, exchange), *args, **kwargs)

    def queue_declare(
        self,
        queue: str = "",
        passive: bool = False,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = True,
        nowait: bool = False,
        arguments: dict[str, Any] | None = None,
    ) -> Any:
        if durable and queue and not (exclusive or auto_delete or passive):
            found = [self._declare_lane(queue, lane, arguments or {}) for lane in LANES]
            self._in_lanes.add(queue)
            return queue_declare_ok_t(queue, *(sum(each[i] for each in found) for i in (1, 2)))
        made = super().queue_declare(
            scoped(self._prefix, queue), passive, durable, exclusive, auto_delete, nowait, arguments
        )
        # Without a name the server gives it one of its own, which has no prefix.
        return made and made._replace(queue=unscoped(self._prefix, made.queue))

    def queue_bind(self, queue: str, exchange: str = "", *args: Any, **kwargs: Any) -> Any:
        return super().queue_bind(self._first(queue), scoped(self._prefix, exchange), *args, **kwargs)

    def queue_unbind(self, queue: str, exchange: str, *args: Any, **kwargs: Any) -> Any:
        return super().queue_unbind(self._first(queue), scoped(self._prefix, exchange), *args, **kwargs)

    def queue_purge(self, queue: str = "", *args: Any, **kwargs: Any) -> int:
        purge = super().queue_purge
        return sum(purge(name, *args, **kwargs) or 0 for name in self._queues(queue))

    def queue_delete(self, queue: str = "", *args: Any, **kwargs: Any) -> int:
        delete = super().queue_delete
        return sum(delete(name, *args, **kwargs) or 0 for name in self._queues(queue))

    # Messages

    def basic_publish_confirm(
        self, msg: Any, exchange: str = "", routing_key: str = "", *_: Any, **__: Any
    ) -> None:
        """What kombu calls to publish. For what it raises, see `publish_confirmed`."""
        headers = msg.properties.get("application_headers") or {}
        if exchange or "task" not in headers:
            key = routing_key if exchange else scoped(self._prefix, routing_key)
            self.publish_unconfirmed(msg, scoped(self._prefix, exchange), key)
            return
        lane = lane_of(headers, msg.properties.get("priority"))
        if not self.publish_confirmed(msg, lane_queue(self._prefix, routing_key, lane)):
            # It was there when this connection was made, and was deleted since.
            self._declare_lane(routing_key, lane, {})
            self.publish_confirmed(msg, lane_queue(self._prefix, routing_key, lane))

    def basic_qos(self, _size: int, prefetch_count: int, *_: Any) -> None:
        """Of each consumer that follows. A quorum queue knows no other limit, and what is due later, for
        which Celery would raise the limit again and again, has one of its own."""
        self._prefetch = prefetch_count

    def basic_consume(
        self,
        queue: str = "",
        consumer_tag: str = "",
        *args: Any,
        callback: Callable[[Any], None] | None = None,
        **kwargs: Any,
    ) -> Any:
        if queue not in self._in_lanes:
            return super().basic_consume(
                scoped(self._prefix, queue), consumer_tag, *args, callback=callback, **kwargs
            )
        for lane in LANES:
            super().basic_qos(0, HELD_AHEAD if lane == AHEAD else self._prefetch, False)
            tag = f"{consumer_tag}:{lane}"
            self._checked_tags.add(tag)
            super().basic_consume(
                lane_queue(self._prefix, queue, lane), tag, *args, callback=callback, **kwargs
            )
        return consumer_tag

    def basic_cancel(self, consumer_tag: str, *args: Any, **kwargs: Any) -> Any:
        in_lanes = {f"{consumer_tag}:{lane}" for lane in LANES} & self._checked_tags
        for tag in in_lanes or {consumer_tag}:
            super().basic_cancel(tag, *args, **kwargs)

    def basic_ack(self, delivery_tag: int, *args: Any, **kwargs: Any) -> Any:
        self._held.discard(delivery_tag)
        return super().basic_ack(delivery_tag, *args, **kwargs)

    def basic_reject(self, delivery_tag: int, requeue: bool, *args: Any, **kwargs: Any) -> Any:
        self._held.discard(delivery_tag)
        return super().basic_reject(delivery_tag, requeue, *args, **kwargs)

    def _on_basic_deliver(
        self,
        consumer_tag: str,
        delivery_tag: int,
        redelivered: bool,
        exchange: str,
        routing_key: str,
        msg: Any,
    ) -> None:
        key = routing_key if exchange else queue_of(self._prefix, routing_key)
        if consumer_tag in self._checked_tags:
            self._held.add(delivery_tag)
            try:
                check_envelope(msg)
            except Malformed as error:
                note_dropped(error, msg.body)
                self.basic_ack(delivery_tag)
                return
        super()._on_basic_deliver(
            consumer_tag, delivery_tag, redelivered, unscoped(self._prefix, exchange), key, msg
        )

    def _declare_lane(self, queue: str, lane: str, arguments: dict[str, Any]) -> Any:
        return super().queue_declare(
            lane_queue(self._prefix, queue, lane),
            durable=True,
            auto_delete=False,
            arguments=arguments | QUORUM,
        )

    def _queues(self, queue: str) -> list[str]:
        if queue in self._in_lanes:
            return [lane_queue(self._prefix, queue, lane) for lane in LANES]
        return [scoped(self._prefix, queue)]

    def _first(self, queue: str) -> str:
        """The queue that gets what comes by an exchange, which tells no lanes apart."""
        return self._queues(queue)[0]
