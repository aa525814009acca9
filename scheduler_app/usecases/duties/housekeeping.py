"""Housekeeping: recover, inspect and prune.

Recover repairs what a crash left behind. Inspect finds documents that no duty's query would ever return.
Prune removes deleted schedules and calendars for good; MongoDB itself removes finished events, by a TTL
index.
"""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from scheduler_app.clock import Clock, clock, monotonic
from scheduler_app.domain.action import CALLBACKS, QueueLengths
from scheduler_app.domain.partitions import OwnedPartitions, all_partitions
from scheduler_app.store import Store
from scheduler_app.store.indexes import BY_DUE
from scheduler_app.store.recoveries import GRACE_SECONDS
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.version import INDEX_LEVEL

log = get_logger(__name__)

EVENTS_A_PAGE = 1_000
PAGES_AT_ONCE = 10
RETRY_DELAY_SECONDS = 2.0
#: A worker that is behind holds up the recovery of lost messages no longer than this.
MOST_GRACE_SECONDS = 120.0
#: Workers report every few seconds.
ASK_WORKERS_SECONDS = 2.0
#: With more messages than this in a lane of the queue, its overdue events wait in a backlog and are not lost.
NEARLY_EMPTY = 10
IDS_IN_A_LINE = 10


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """How many events were recovered, by what they had lost."""

    workers: int
    messages: int
    set_aside: int

    @property
    def total(self) -> int:
        return self.workers + self.messages + self.set_aside


class WorkersBehind:
    """Knows how far behind the workers of a queue are: what they hold is late, and not lost."""

    def __init__(self, store: Store) -> None:
        self._processes = store.processes
        self._asked_at = float("-inf")
        self._since: dict[str, datetime] = {}

    def grace_seconds(self, queue: str, now: datetime) -> float:
        """For how long an event of the queue may be overdue before its message counts as lost. Raises a
        STORE_FAULT."""
        if monotonic() - self._asked_at >= ASK_WORKERS_SECONDS:
            self._since = {}
            for worker in self._processes.alive():
                if worker.role == "worker" and worker.behind_since is not None:
                    for each in worker.queues:
                        self._since[each] = min(worker.behind_since, self._since.get(each, now))
            self._asked_at = monotonic()
        behind = (now - self._since.get(queue, now)).total_seconds()
        return min(MOST_GRACE_SECONDS, max(GRACE_SECONDS, behind + GRACE_SECONDS))


class Recovery:
    """Repairs each state that a crash can leave an event in (see `STATE_DESCRIPTIONS` in `domain.states`)."""

    def __init__(
        self, store: Store, clock: Clock = clock, partitions: OwnedPartitions = all_partitions
    ) -> None:
        """`clock` tells by how much mongod's clock has jumped; leases are judged by that clock. `partitions`
        says in which ones to look for what was lost."""
        self._partitions = partitions
        self._behind = WorkersBehind(store)
        self._store = store
        self._clock = clock
        self._recoveries = store.recoveries
        self._outbox = store.outbox

    def recover_workers(self, now: datetime) -> RecoveryResult:
        """Ends claims whose lease is over. Raises a STORE_FAULT."""
        # Leases may only look over: after a jump of mongod's clock, they end by as much later.
        again, spent = self._recoveries.recover_workers(
            now,
            delay_seconds=RETRY_DELAY_SECONDS,
            limit=EVENTS_A_PAGE,
            jumped_ahead_seconds=self._store.jumped_ahead_seconds(self._clock),
            partitions=self._partitions(),
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
        return RecoveryResult(workers=len(again), messages=0, set_aside=len(spent))

    def recover_dispatches(self, now: datetime) -> RecoveryResult:
        """Requeues events whose dispatcher died between marking and publishing. Raises a STORE_FAULT."""
        back = self._outbox.put_back_abandoned(now, limit=PAGES_AT_ONCE)
        if back:
            metrics.recovered.labels("dispatch").inc(back)
            log.warning(
                "recover.dispatches",
                message="A beat or an API died, was cut off or is slow; what it has not sent waits again",
                count=back,
            )
        return RecoveryResult(workers=0, messages=back, set_aside=0)

    def named_queues(self) -> list[str]:
        """The queues beside CALLBACKS in which messages may be lost. Raises a STORE_FAULT."""
        return self._outbox.named_queues()

    def recover_messages(
        self, now: datetime, *, queue: QueueLengths, name: str = CALLBACKS
    ) -> RecoveryResult:
        """Requeues overdue events of the queue of that name whose message must be lost: hardly any message
        waits in the lane that it was sent by, and no worker is so far behind that it may hold it; `queue` is
        its lengths. Raises a STORE_FAULT."""
        by_time, behind = queue.urgent + queue.fresh <= NEARLY_EMPTY, queue.late <= NEARLY_EMPTY
        if not by_time and not behind:
            return RecoveryResult(0, 0, 0)
        lost = self._recoveries.recover_messages(
            now,
            grace_seconds=self._behind.grace_seconds(name, now),
            limit=EVENTS_A_PAGE,
            sent_late=None if by_time and behind else behind,
            queue=name,
            partitions=self._partitions(),
        )
        if lost:
            metrics.recovered.labels("message").inc(len(lost))
            log.warning(
                "recover.messages",
                message="Messages were lost; their events are dispatched again",
                count=len(lost),
                event_ids=lost[:IDS_IN_A_LINE],
            )
        return RecoveryResult(workers=0, messages=len(lost), set_aside=0)


DOCUMENTS_A_PASS = 1_000
#: An event is looked at once, so long after its run time.
INSPECTED_AGE = timedelta(minutes=2)
#: A beat that was away looks back no further.
INSPECTION_LOOK_BACK = timedelta(hours=1)
#: Older than that, a last run is noted on its schedule: retention is a day at least, and a million schedules
#: are inspected within 17 hours by each beat.
LAST_RUNS_KEPT_AFTER = timedelta(hours=6)
#: Each schedule's last run is looked for once in so many passes, which are a minute apart: such a look is
#: some 0.2 ms of MongoDB's CPU.
PASSES_BETWEEN_LOOKS = 360
#: The inspection reads all waiting events, once an hour.
PASSES_A_LOOK_FOR_ARRAYS = 60


class Inspection:
    """Sets aside and reports what it finds. Any number of beats may do it at once."""

    def __init__(self, store: Store) -> None:
        self._inspections = store.inspections
        self._last_runs = store.last_runs
        self._schedule_id: Any = None
        self._page = self._pages_a_round = 0
        # A beat that has just started does not begin with those that the one before has looked at.
        self._rounds = random.randrange(PASSES_BETWEEN_LOOKS)  # noqa: S311
        self._seen_until: datetime | None = None
        self._passes = 0

    def inspect(self, now: datetime) -> int:
        """Makes one pass: everything that indexes can find, and one page of the schedules. Returns how many
        documents were found. Raises a STORE_FAULT."""
        found = self._arrays()
        found += self._inspections.misplaced_events(limit=DOCUMENTS_A_PASS)
        found += self._inspections.misplaced_schedules(limit=DOCUMENTS_A_PASS)
        ids, corrupt = self._inspections.schedules_after(self._schedule_id, limit=DOCUMENTS_A_PASS)
        self._keep_last_runs(ids, now)
        self._schedule_id = ids[-1] if len(ids) == DOCUMENTS_A_PASS else None
        if self._schedule_id is None:
            self._rounds, self._pages_a_round, self._page = self._rounds + 1, self._page, 0
        until = now - INSPECTED_AGE
        since = max(self._seen_until or now - INSPECTION_LOOK_BACK, now - INSPECTION_LOOK_BACK)
        forgotten = self._inspections.forgotten_events(since, until, limit=DOCUMENTS_A_PASS)
        if forgotten < DOCUMENTS_A_PASS:
            self._seen_until = until
        return found + corrupt + forgotten

    def _keep_last_runs(self, ids: list[Any], now: datetime) -> None:
        """Looks for the last runs of some of a page, of others in each round: with few schedules, the same
        ones come in each pass."""
        self._page += 1
        apart = max(1, PASSES_BETWEEN_LOOKS // max(self._page, self._pages_a_round))
        self._last_runs.keep(ids[self._rounds % apart :: apart], now - LAST_RUNS_KEPT_AFTER)

    def _arrays(self) -> int:
        """Finds events with an array where an index expects one value. The index goes on reporting arrays
        when the events are gone, so that only the first pass looks for them, and then one pass of many."""
        passes, self._passes = self._passes, self._passes + 1
        if passes % PASSES_A_LOOK_FOR_ARRAYS:
            return 0
        fields = self._inspections.array_fields()
        if not fields:
            self._passes = 0
            return 0
        log.error(
            "index.arrays",
            message=f"An event has, or had, an array in a field of the index {BY_DUE}, which is slower until"
            " it is rebuilt: stop the beats and workers, drop it, and start them again",
            fields=fields,
        )
        return self._inspections.events_with_arrays(fields, limit=DOCUMENTS_A_PASS)


PRUNED_SCHEDULES_A_PAGE = 500
PRUNED_CALENDARS_A_PAGE = 100
#: No request that has read a calendar just before its deletion writes its schedule later than this after it.
CALENDAR_GRACE = timedelta(minutes=10)


class Retention:
    """Removes deleted schedules once their last event is gone."""

    def __init__(self, store: Store, *, retention_days: int) -> None:
        """`retention_days`: how long finished events are kept, as in RETENTION_DAYS."""
        self._store = store
        self._retention = timedelta(days=retention_days)

    def prune_page(self, now: datetime) -> None:
        """Removes up to a page of deleted schedules. Raises a STORE_FAULT.

        Schedules that were deleted within the retention are not even looked at: their events may exist for
        that long.
        """
        for schedule_id in self._store.schedules.deleted_before(
            now - self._retention, limit=PRUNED_SCHEDULES_A_PAGE
        ):
            if not self._store.events.any_of_schedule(schedule_id):
                self._store.backfills.remove(schedule_id)
                self._store.schedules.remove(schedule_id)
                log.info("schedule.pruned", message="A deleted schedule was removed", schedule_id=schedule_id)

    def prune_calendars(self, now: datetime) -> None:
        """Removes deleted calendars. One that a schedule observes, which was written at the moment of the
        deletion, is there again. Raises a STORE_FAULT."""
        calendars = self._store.calendars
        for calendar_id in calendars.deleted_before(now - CALENDAR_GRACE, limit=PRUNED_CALENDARS_A_PAGE):
            if calendars.users(calendar_id):
                calendars.restore(calendar_id)
                log.warning(
                    "calendar.restored",
                    message="A calendar is back: a schedule began to observe it while it was deleted",
                    calendar=calendar_id,
                )
            else:
                calendars.remove(calendar_id)
                log.info("calendar.pruned", message="A deleted calendar was removed", calendar=calendar_id)


def drop_replaced_indexes(store: Store) -> None:
    """Drops the indexes that this release has replaced, when no process of an older one is left that asks for
    them by name. Raises a STORE_FAULT."""
    if all(each.index_level >= INDEX_LEVEL for each in store.processes.alive()):
        store.drop_replaced_indexes()
