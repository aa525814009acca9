"""A transport that survives a Redis which dies, or is full, while messages are unacknowledged.

On a lost connection kombu closes the channel, which tries to give unacknowledged messages back over that
same lost connection; what it raises then (an AttributeError, no connection error) ends the worker. So does a
task that ends after the reconnection and acknowledges its message on the channel that was closed, and a
Redis at its `maxmemory`, which refuses the transaction of an acknowledgement. Here all of these are logged:
the messages come back when their visibility timeout is over, which does no harm, and recovery does not wait
for that.

A malformed message (see `malformed`) is dropped before it reaches Celery.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Empty
from typing import Any

from kombu.transport import redis, virtual
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import loads
from redis.exceptions import ResponseError

from scheduler_app.broker.malformed import MAX_MESSAGE_BYTES, Malformed, note_dropped, require
from scheduler_app.telemetry import get_logger

_MISSING = type(None)


def check_envelope(payload: Any) -> None:
    """Raises Malformed for anything else: the channel would end with an error, and the worker with it."""
    require(isinstance(payload, dict), "envelope", "it is no map")
    properties = payload.get("properties")
    require(isinstance(properties, dict), "envelope", "its properties are no map")
    tag = properties.get("delivery_tag")
    require(isinstance(tag, str) and bool(tag), "envelope", "its delivery tag is no text")
    where = properties.get("delivery_info")
    require(isinstance(where, dict), "envelope", "its delivery info is no map")
    require(
        isinstance(where.get("exchange"), str) and isinstance(where.get("routing_key"), str),
        "envelope",
        "its delivery info names no exchange and routing key",
    )
    require(isinstance(payload.get("headers"), dict), "envelope", "its headers are no map")
    require(isinstance(payload.get("body"), (str, _MISSING)), "envelope", "its body is no text")
    require(
        properties.get("body_encoding") in (None, "base64"), "envelope", "its body is encoded in another way"
    )
    # Ours are never compressed; a few KB of a stranger's could become gigabytes.
    require(not payload["headers"].get("compression"), "compressed", "it is compressed")


log = get_logger(__name__)


#: How it shows that what is kept of a held message was not written by kombu. Not AttributeError: that is how
#: a connection shows which is gone.
_NOT_KOMBUS = (Malformed, ValueError, TypeError, KeyError)


class ResilientQoS(redis.QoS):
    def held(self) -> list[Any]:
        """The tags of the messages that were taken and not acknowledged."""
        self._flush()
        return list(self._delivered)

    def restore_unacked_once(self, stderr: Any = None) -> None:
        try:
            super().restore_unacked_once(stderr)
        except Exception as error:  # whatever it is: the connection is being given up anyway
            log.warning(
                "broker.restore_failed",
                message="Unacknowledged messages could not be given back; recovery takes their events up",
                error=f"{type(error).__name__}: {error}",
            )

    def restore_by_tag(self, tag: Any, client: Any = None, leftmost: bool = False) -> None:
        try:
            with self.channel.conn_or_acquire(client) as asked:
                if (kept := asked.hget(self.unacked_key, tag)) is not None:
                    _loaded(kept)
            super().restore_by_tag(tag, client, leftmost)
        except _NOT_KOMBUS as error:  # left there, it would stop each sweep
            note_dropped(Malformed("unacked", f"{type(error).__name__}: {error}"[:200]), tag)
            self._remove_from_indices(tag).execute()

    def append(self, message: Any, delivery_tag: Any) -> None:
        # It has left the queue already. Unknown to Redis it is worked on all the same: the claim is in
        # MongoDB, and recovery takes up what dies with this worker.
        with self._refusals("noted as held"):
            super().append(message, delivery_tag)
            return
        virtual.QoS.append(self, message, delivery_tag)

    def ack(self, delivery_tag: Any) -> None:
        if self._is_orphaned("acknowledged"):
            return
        with self._refusals("acknowledged"):
            super().ack(delivery_tag)
            return
        virtual.QoS.ack(self, delivery_tag)

    def reject(self, delivery_tag: Any, requeue: bool = False) -> None:
        if self._is_orphaned("given back"):
            return
        with self._refusals("given back"):
            super().reject(delivery_tag, requeue)
            return
        virtual.QoS.ack(self, delivery_tag)

    @contextmanager
    def _refusals(self, what: str) -> Iterator[None]:
        try:
            yield
        except ResponseError as error:
            log.warning(
                "broker.refused", message=f"Redis refuses that a message be {what}", error=str(error)[:300]
            )

    def _is_orphaned(self, what: str) -> bool:
        """Whether the channel that the message came by is closed."""
        if self.channel.connection is not None:
            return False
        log.info(
            "broker.channel_gone", message=f"A message of a lost connection cannot be {what}; it comes again"
        )
        return True


class CheckedMessage(virtual.Message):
    """A message that has the form which kombu and Celery rely on. Making one of another raises Malformed."""

    def __init__(self, payload: Any, channel: Any = None, **kwargs: Any) -> None:
        check_envelope(payload)
        try:
            super().__init__(payload, channel=channel, **kwargs)
        except Exception as error:  # of its decoders, which raise what they like
            raise Malformed("body", f"its body cannot be decoded: {type(error).__name__}") from None


class ResilientChannel(redis.Channel):
    QoS = ResilientQoS
    Message = CheckedMessage
    _shared: Any = None

    def _brpop_read(self, **options: Any) -> bool:
        """As kombu's own, but an item that is not a message is dropped, and what follows it is read."""
        client = self.client
        try:
            # Where it cannot be read, redis-py gives the connection up: the next round connects again.
            found = client.parse_response(client.connection, "BRPOP", **options)
            if not found:
                raise Empty
            key, item = found
            queue = bytes_to_str(key).rsplit(self.sep, 1)[0]
            self._queue_cycle.rotate(queue)
            try:
                self.connection._deliver(_decoded(item), queue)
            except Malformed as error:
                note_dropped(error, item)
            return True
        finally:
            self._in_poll = None  # type: ignore[assignment]  # as kombu has it
            self._flush_brpop_reauth()

    def _deliver_fanout_message(self, message: Any, exchange: str) -> bool:
        try:
            delivered: bool = super()._deliver_fanout_message(message, exchange)
        except Malformed as error:
            note_dropped(error, message)
            return True
        return delivered

    def _do_restore_message(
        self, payload: Any, exchange: Any, routing_key: Any, pipe: Any, leftmost: bool = False
    ) -> None:
        # kombu logs what it cannot put back, all of it.
        check_envelope(payload)
        super()._do_restore_message(payload, exchange, routing_key, pipe, leftmost)

    def _has_queue(self, queue: str, **kwargs: Any) -> bool:
        # kombu asks by EXISTS, to which it gives no prefix. Redis keeps no empty lists.
        return bool(self._size(queue))

    def _create_client(self, asynchronous: bool = False) -> Any:
        """One client for as long as its pool of connections is the channel's.

        kombu makes one for each thing it asks, three in a message's life. Each copies the commands' table,
        0.13 ms of CPU where nothing else runs. It holds nothing but the pool, and threads may share it.
        """
        if asynchronous:
            return super()._create_client(asynchronous=True)
        if self._shared is None or self._shared.connection_pool is not self.pool:
            self._shared = super()._create_client()
        return self._shared

    def sizes(self, queue: str) -> dict[int, int]:
        """The messages of a queue by their priority, in one round trip."""
        with self.conn_or_acquire() as client, client.pipeline() as pipe:
            for step in self.priority_steps:
                pipe.llen(self._q_for_pri(queue, step))
            return dict(zip(self.priority_steps, pipe.execute(), strict=True))

    def return_all_but(self, but: set[Any]) -> None:
        """Puts all messages but those with these tags back to where they were taken from."""
        if self._in_poll:
            # Redis still owes this connection a message for up to a second: it would take what is given
            # back. Without a consumer, kombu gives it back too.
            with suppress(Empty):
                self._brpop_read()
        for tag in [tag for tag in self.qos.held() if tag not in but]:
            self.basic_reject(tag, requeue=True)


def _decoded(item: Any) -> Any:
    """A message as it lies in Redis. Raises Malformed."""
    if len(item) > MAX_MESSAGE_BYTES:
        raise Malformed("too_large", f"it has {len(item)} bytes")
    return _loaded(item)


def _loaded(item: Any) -> Any:
    try:
        return loads(bytes_to_str(item))
    except (Exception, RecursionError) as error:  # kombu's decoders of types raise what they like
        raise Malformed("not_json", f"it is not JSON: {type(error).__name__}") from None


class ResilientTransport(redis.Transport):
    Channel = ResilientChannel


class ResilientSentinelChannel(ResilientChannel, redis.SentinelChannel):
    """The same where Sentinel says which Redis is the master."""


class ResilientSentinelTransport(redis.SentinelTransport):
    Channel = ResilientSentinelChannel
