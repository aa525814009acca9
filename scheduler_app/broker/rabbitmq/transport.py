"""kombu's transport over py-amqp: names of a deployment's own, a queue for each lane, publishing with
confirms.

Above it all is as with any broker: Celery and kombu know the names that `broker.task` gives.

A quorum queue has no priorities before RabbitMQ 4, and since then two, which are not a strict order. Each
lane is a queue of its own, therefore. What is due later is in one more: a worker fetches many of these and
holds them until they are due, while of the others it fetches no more than it can start.

Publishing waits until RabbitMQ has a message safe, and never for long. py-amqp waits for any confirm, for
ever if need be, and takes it for that of the last message. A server with an alarm (its memory or disk is
full) reads nothing from a connection that publishes, and says nothing either.
"""

from collections.abc import Callable, Mapping
from typing import Any

from amqp.exceptions import RecoverableConnectionError
from amqp.protocol import queue_declare_ok_t
from kombu.exceptions import OperationalError
from kombu.transport import pyamqp

from scheduler_app.broker.backend import ONE_MORE_TRY
from scheduler_app.broker.malformed import MAX_MESSAGE_BYTES, Malformed, note_dropped, require
from scheduler_app.broker.task import PRIORITIES
from scheduler_app.broker_faults import TakesNoMessages
from scheduler_app.clock import monotonic
from scheduler_app.domain.action import Lane

#: Ends the name of what is due later. No name of a queue has a colon (`domain.action`).
AHEAD = "ahead"
#: In the order in which a worker asks for them.
LANES = (Lane.URGENT.value, Lane.FRESH.value, AHEAD, Lane.LATE.value)
#: Names that the server reserves for itself.
_RESERVED = "amq."


def name_prefix(database: str) -> str:
    """Returns what every queue and exchange of a deployment begins with: each has a MongoDB database of its
    own, and others may use the same virtual host. The colon ends it."""
    return database.replace("%", "%25").replace(":", "%3A") + ":"


def scoped(prefix: str, name: str) -> str:
    """The name in RabbitMQ of a queue or an exchange. The nameless ones, and the server's own, are shared."""
    return name if not name or name.startswith(_RESERVED) else prefix + name


def unscoped(prefix: str, name: str) -> str:
    """The name that `scoped` was given."""
    return name.removeprefix(prefix)


def lane_queue(prefix: str, queue: str, lane: str) -> str:
    """The queue in RabbitMQ that holds a lane of one of ours."""
    return f"{scoped(prefix, queue)}:{lane}"


def queue_of(prefix: str, lane_queue: str) -> str:
    """The queue of ours that a queue in RabbitMQ is a lane of."""
    name, _, lane = unscoped(prefix, lane_queue).rpartition(":")
    return name if lane in LANES else unscoped(prefix, lane_queue)


def lane_of(headers: Mapping[str, Any], priority: int | None) -> str:
    """The lane that a task's message goes to. Without a priority it is fresh."""
    if headers.get("eta") is not None:
        return AHEAD
    for lane, number in PRIORITIES.items():
        if number == priority:
            return lane.value
    return Lane.FRESH.value


def check_envelope(message: Any) -> None:
    """`message` is py-amqp's. Raises Malformed for one that no client of ours has sent."""
    properties = message.properties
    require(len(message.body) <= MAX_MESSAGE_BYTES, "too_large", f"it has {len(message.body)} bytes")
    headers = properties.get("application_headers")
    require(isinstance(headers, dict) and bool(headers), "envelope", "it has no headers")
    # Ours are never compressed; a few KB of a stranger's could become gigabytes.
    require(not headers.get("compression"), "compressed", "it is compressed")
    require(properties.get("content_type") == "application/json", "content_type", "it is not JSON in UTF-8")


class ConfirmingChannel(pyamqp.Channel):
    """Each message that goes straight to a queue is confirmed. Events and commands of Celery's are not waited
    for: nothing depends on them."""

    def __init__(self, connection: Any, *args: Any, **kwargs: Any) -> None:
        # The base class opens the channel, or asks whether it is to confirm.
        self._confirm_seconds: float = connection.confirm_seconds
        self._confirming = False
        self._sent = 0
        self._unconfirmed: set[int] = set()
        self._refused: set[int] = set()
        super().__init__(connection, *args, **kwargs)

    def publish_confirmed(self, message: Any, routing_key: str) -> bool:
        """Sends a message to a queue; returns whether there is such a queue. Raises OperationalError if the
        server refuses it, TimeoutError if it says nothing, and what else a lost connection raises."""
        if not self._confirming:
            self._confirming = True
            self.confirm_select()
        self._unroutable = False
        tag = self._send(message, "", routing_key, mandatory=True)
        self._wait_for(tag)
        if tag in self._refused:
            self._refused.clear()
            raise OperationalError(
                f"RabbitMQ refuses messages for {routing_key}: most members of this queue are away, or it did"
                " not survive a crash; if all nodes are up, `rabbitmqctl delete_queue` it: it is made again"
            )
        return not self._unroutable

    def publish_unconfirmed(self, message: Any, exchange: str, routing_key: str) -> None:
        """Sends a message to an exchange."""
        self._send(message, exchange, routing_key, mandatory=False)

    def _send(self, message: Any, exchange: str, routing_key: str, *, mandatory: bool) -> int:
        if self._confirming:  # from then on the server counts all that this channel sends
            self._sent += 1
            self._unconfirmed.add(self._sent)
        self._basic_publish(message, exchange, routing_key, mandatory)
        return self._sent

    def _wait_for(self, tag: int) -> None:
        deadline = monotonic() + self._confirm_seconds
        while tag in self._unconfirmed:
            connection = self.connection
            if connection is None:
                raise RecoverableConnectionError("the connection was closed before a message was confirmed")
            try:
                # Not 0, which is for ever.
                connection.drain_events(timeout=max(0.001, deadline - monotonic()))
            except TimeoutError:
                if monotonic() < deadline:
                    continue
                # Its messages may come later, which does no harm; but what it says next is not for the next
                # message. Closing it in order would wait for an answer, too.
                connection.collect()
                raise TakesNoMessages(
                    f"RabbitMQ confirmed no message in {self._confirm_seconds:g} s; it may have an alarm:"
                    " see `rabbitmq-diagnostics alarms`, and give it more memory or disk"
                ) from None

    def _on_basic_ack(self, delivery_tag: int, multiple: bool) -> None:
        self._confirmed(delivery_tag, multiple)

    def _on_basic_nack(self, delivery_tag: int, multiple: bool) -> None:
        self._refused |= self._confirmed(delivery_tag, multiple)

    def _on_basic_return(self, *_: Any) -> None:
        # Comes before the confirm of the same message, and only one at a time is waited for.
        self._unroutable = True

    def _confirmed(self, tag: int, multiple: bool) -> set[int]:
        found = {each for each in self._unconfirmed if each == tag or (multiple and each < tag)}
        self._unconfirmed -= found
        return found


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


class LaneConnection(pyamqp.Connection):
    """`name_prefix` begins each name; a message is confirmed within `confirm_seconds`, or not at all."""

    Channel = LaneChannel

    def __init__(self, *args: Any, name_prefix: str, confirm_seconds: float, **kwargs: Any) -> None:
        self.name_prefix = name_prefix
        self.confirm_seconds = confirm_seconds
        self.in_lanes: set[str] = set()
        # What kombu reads of the transport's options, it hands to the connection all the same.
        own = {name: value for name, value in kwargs.items() if name not in ONE_MORE_TRY}
        super().__init__(*args, confirm_publish=True, **own)


def _connection(**options: Any) -> pyamqp.Connection:
    """One of ours, or kombu's own to a broker of somebody else's application (CELERY_BROKERS), whose queues
    have other names and forms."""
    return LaneConnection(**options) if "name_prefix" in options else pyamqp.Connection(**options)


class LaneTransport(pyamqp.Transport):
    Connection = staticmethod(_connection)  # type: ignore[assignment]  # kombu only calls it


class LaneSSLTransport(pyamqp.SSLTransport):
    """The same by TLS, where the certificate has to be that of the host in the URL."""

    Connection = staticmethod(_connection)  # type: ignore[assignment]  # kombu only calls it

    def establish_connection(self) -> Any:
        client: Any = self.client
        host, given = client.hostname, client.ssl
        client.ssl = {"server_hostname": host, **(given if isinstance(given, dict) else {})}
        try:
            return super().establish_connection()
        finally:
            # kombu makes an address of `localhost`, which no certificate is for, and keeps that.
            client.hostname, client.ssl = host, given
