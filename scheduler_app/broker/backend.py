"""The seam between us and a broker: what differs between Redis and the others."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from kombu.exceptions import ChannelError
from kombu.transport import TRANSPORT_ALIASES

from scheduler_app.broker.task import PRIORITIES, QUEUE
from scheduler_app.config import Settings
from scheduler_app.domain.action import Lane, QueueLengths
from scheduler_app.domain.flow_control import Limiter
from scheduler_app.health.check import Check, fine

#: Publishing to a broker that is away: one more try at once, and no more, which an API call would wait for.
#: (The worker's own connection is tried for ever.)
ONE_MORE_TRY: Mapping[str, int] = MappingProxyType(
    {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}
)


class Backend:
    """A row of the registry. This class itself is what kombu and Celery do, without any promise of ours.

    A broker that is supported has a subclass, which passes `tests/conformance/broker`.

    Methods that take a channel get one of kombu's, which is connected; they raise what its transport raises.
    """

    #: As people are told of it, and as `doctor` names its check.
    title = "Broker"
    check_name = "broker"
    #: Our transports, kombu's classes, by the schemes of URLs that it serves.
    transports: ClassVar[Mapping[str, type]] = {}
    #: The number that puts a message into a lane.
    priorities: Mapping[Lane, int] = PRIORITIES
    #: Steps of a worker's blueprint, Celery's classes.
    worker_steps: frozenset[type] = frozenset()

    def install(self) -> None:
        """Puts our transports behind their schemes. It may be called more than once."""
        for scheme, used in self.transports.items():
            TRANSPORT_ALIASES[scheme] = f"{used.__module__}:{used.__name__}"

    def transport_options(self, settings: Settings) -> dict[str, Any]:
        """Returns kombu's `transport_options`. Two deployments on one server must not share messages: what
        keeps them apart is `settings.mongo_database`."""
        return {}

    def impatient_options(self, seconds: float) -> dict[str, Any]:
        """Returns options that let each step of a connection fail after that many seconds."""
        return {"read_timeout": seconds, "write_timeout": seconds}

    def limiter(self, settings: Settings, *, seconds: float = 2.0) -> Limiter | None:
        """Returns what counts for all workers what destinations may be sent; it waits `seconds` for an
        answer. None: this broker cannot, and destinations with limits are not served."""
        return None

    #: Which settings lead to it.
    remedy = "start it, or see that BROKER_URL is right"

    def check_publishing(self, connection: Any) -> None:
        """Raises what publishing raises, for a broker that may answer questions and yet take no messages.
        `connection` asks for nothing else: such a broker reads nothing more from it."""

    def queue_length(self, channel: Any, queue: str = QUEUE) -> int:
        """Returns how many messages of a queue no worker has fetched."""
        try:
            return int(channel.queue_declare(queue, passive=True).message_count)
        except ChannelError:
            return 0  # the queue does not exist before its first message

    def queue_lengths(self, channel: Any, queue: str = QUEUE) -> QueueLengths:
        """Returns the same by lane. A broker that does not tell the lanes apart counts all as fresh."""
        return QueueLengths(fresh=self.queue_length(channel, queue))

    def checks(self, channel: Any, address: str) -> list[Check]:
        """Returns what `doctor` shows of a broker that answers; `address` has no password."""
        return [fine(self.check_name, f"answers at {address}")]
