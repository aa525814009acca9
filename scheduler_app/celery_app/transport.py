"""The first repair of the worker: it survives a Redis that dies while messages are unacknowledged.

On a lost connection kombu closes the channel, which tries to give unacknowledged messages back over that
same lost connection; what it raises then (an AttributeError, no connection error) ends the worker. So does a
task that ends after the reconnection and acknowledges its message on the channel that was closed. Here both
are logged: the messages come back when their visibility timeout is over, which does no harm, and recovery
does not wait for that.
"""

from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis

from scheduler_app.telemetry import get_logger

log = get_logger(__name__)


class SturdyQoS(redis.QoS):
    def restore_unacked_once(self, stderr: Any = None) -> None:
        try:
            super().restore_unacked_once(stderr)
        except Exception as error:  # whatever it is: the connection is being given up anyway
            log.warning(
                "broker.restore_failed",
                message="Unacknowledged messages could not be given back; recovery takes their events up",
                error=f"{type(error).__name__}: {error}",
            )

    def ack(self, delivery_tag: Any) -> None:
        if self._is_orphaned("acknowledged"):
            return
        super().ack(delivery_tag)

    def reject(self, delivery_tag: Any, requeue: bool = False) -> None:
        if self._is_orphaned("given back"):
            return
        super().reject(delivery_tag, requeue)

    def _is_orphaned(self, what: str) -> bool:
        """Whether the channel that the message came by is closed."""
        if self.channel.connection is not None:
            return False
        log.info(
            "broker.channel_gone", message=f"A message of a lost connection cannot be {what}; it comes again"
        )
        return True


class SturdyChannel(redis.Channel):
    QoS = SturdyQoS


class SturdyTransport(redis.Transport):
    Channel = SturdyChannel


def use_sturdy_transport() -> None:
    """Puts the repaired transport behind the URL schemes of Redis."""
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:{SturdyTransport.__name__}"
