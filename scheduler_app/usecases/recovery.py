"""Recover: repair what a crash left behind."""

from dataclasses import dataclass
from datetime import datetime

from scheduler_app.clock import Clock, clock
from scheduler_app.domain.lane import QueueLengths
from scheduler_app.domain.queues import CALLBACKS
from scheduler_app.store import Store
from scheduler_app.telemetry import get_logger, metrics

log = get_logger(__name__)

EVENTS_A_PAGE = 1_000
PAGES_AT_ONCE = 10
RETRY_DELAY_SECONDS = 2.0
GRACE_SECONDS = 10.0
#: With more messages than this in a lane of the queue, its overdue events wait in a backlog and are not lost.
NEARLY_EMPTY = 10
IDS_IN_A_LINE = 10


@dataclass(frozen=True, slots=True)
class Recovered:
    """How many events were recovered, by what they had lost."""

    workers: int
    messages: int
    set_aside: int

    @property
    def total(self) -> int:
        return self.workers + self.messages + self.set_aside


class Recovery:
    """Repairs each state that a crash can leave an event in (see `LIFE` in `domain.event`)."""

    def __init__(self, store: Store, clock: Clock = clock) -> None:
        """`clock` tells by how much mongod's clock has jumped; leases are judged by that clock."""
        self._store = store
        self._clock = clock
        self._recoveries = store.recoveries
        self._outbox = store.outbox

    def recover_workers(self, now: datetime) -> Recovered:
        """Ends claims whose lease is over. Raises a STORE_FAULT."""
        if not self._recoveries.any_lease_over():
            return Recovered(0, 0, 0)
        # Leases may only look over: after a jump of mongod's clock, they end by as much later.
        again, spent = self._recoveries.recover_workers(
            now,
            delay_seconds=RETRY_DELAY_SECONDS,
            limit=EVENTS_A_PAGE,
            jumped_ahead_seconds=self._store.jumped_ahead_seconds(self._clock),
        )
        if again:
            metrics.recovered.labels("worker").inc(len(again))
            log.warning(
                "recover.workers",
                message="Leases ran out: a worker died or hangs; its events are sent again",
                count=len(again),
                event_ids=again[:IDS_IN_A_LINE],
            )
        if spent:
            metrics.recovered.labels("poison").inc(len(spent))
            log.error(
                "recover.set_aside",
                message="No worker reports on these events; they are in error, for a redrive",
                count=len(spent),
                event_ids=spent[:IDS_IN_A_LINE],
            )
        return Recovered(workers=len(again), messages=0, set_aside=len(spent))

    def recover_dispatches(self, now: datetime) -> Recovered:
        """Requeues events whose dispatcher died between marking and publishing. Raises a STORE_FAULT."""
        back = self._outbox.put_back_abandoned(now, limit=PAGES_AT_ONCE)
        if back:
            metrics.recovered.labels("dispatch").inc(back)
            log.warning(
                "recover.dispatches",
                message="A beat or an API died, was cut off or is slow; what it has not sent waits again",
                count=back,
            )
        return Recovered(workers=0, messages=back, set_aside=0)

    def named_queues(self) -> list[str]:
        """The queues beside CALLBACKS in which messages may be lost. Raises a STORE_FAULT."""
        return self._outbox.named_queues()

    def recover_messages(self, now: datetime, *, queue: QueueLengths, name: str = CALLBACKS) -> Recovered:
        """Requeues overdue events of the queue of that name whose message must be lost: hardly any message
        waits in the lane that it was sent by; `queue` is its lengths. Raises a STORE_FAULT."""
        by_time, behind = queue.urgent + queue.fresh <= NEARLY_EMPTY, queue.late <= NEARLY_EMPTY
        if not by_time and not behind:
            return Recovered(0, 0, 0)
        lost = self._recoveries.recover_messages(
            now,
            grace_seconds=GRACE_SECONDS,
            limit=EVENTS_A_PAGE,
            sent_late=None if by_time and behind else behind,
            queue=name,
        )
        if lost:
            metrics.recovered.labels("message").inc(len(lost))
            log.warning(
                "recover.messages",
                message="Messages were lost; their events are dispatched again",
                count=len(lost),
                event_ids=lost[:IDS_IN_A_LINE],
            )
        return Recovered(workers=0, messages=len(lost), set_aside=0)
