"""Publishing that waits until RabbitMQ has a message safe, and never for long.

py-amqp waits for any confirm, for ever if need be, and takes it for that of the last message. A server with
an alarm (its memory or disk is full) reads nothing from a connection that publishes, and says nothing either.
"""

from typing import Any

from amqp.exceptions import RecoverableConnectionError
from kombu.exceptions import OperationalError
from kombu.transport import pyamqp

from scheduler_app.broker_faults import TakesNoMessages
from scheduler_app.clock import monotonic


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
        self._unroutable = False
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
