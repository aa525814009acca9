"""Gathers the last run of each schedule, and writes them in small batches beside the deliveries."""

import threading
from collections.abc import Iterable
from itertools import islice

from scheduler_app.store import STORE_FAULTS
from scheduler_app.store.events.outcomes import Record
from scheduler_app.store.schedules.last_runs import LastRuns, Run
from scheduler_app.telemetry import get_logger
from scheduler_app.telemetry.unexpected import UnexpectedErrors

log = get_logger(__name__)

#: Schedules in one write, and in each of a second's writes as long as few wait. A write is some 75 µs of
#: mongod's for each schedule, and 130 where it begins or ceases to fail: some 2 % of a core.
AT_ONCE = 200
#: Where more than AT_ONCE a second would be needed, all that wait are written within about this many seconds.
DRAIN_SECONDS = 40
#: Schedules that wait. Beyond that bound, a schedule shows its next run instead.
MAX_WAITING = 50_000


class LastRunQueue:
    """The newest run of each schedule that is not written yet: a schedule that runs each second, or whose
    events are retried, is one write for all that came meanwhile. Threads share it.

    It is memory: the runs of a worker's last seconds are missing where that was killed, until the next ones.
    """

    def __init__(self, store: LastRuns, unexpected: UnexpectedErrors) -> None:
        self._store = store
        self._unexpected = unexpected
        self._waiting: dict[str, Run] = {}
        self._dropped = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def note(self, records: Iterable[Record]) -> None:
        """Takes attempts that were recorded."""
        with self._lock:
            for record in records:
                event = record.event
                if event is not None and event.schedule_id:
                    self._keep(
                        Run(event.schedule_id, event.run_time, record.state, event.id, record.ended_at)
                    )

    def _keep(self, run: Run) -> None:
        known = self._waiting.get(run.schedule_id)
        if known is None and len(self._waiting) >= MAX_WAITING:
            self._dropped += 1
        elif known is None or known.order < run.order:
            self._waiting[run.schedule_id] = run

    def write(self) -> None:
        """A second's share of what waits, the longest-waiting first. Raises a STORE_FAULT; nothing is lost
        then. Runs that cannot be written at all are dropped: each schedule shows its next one."""
        left = max(AT_ONCE, len(self._waiting) // DRAIN_SECONDS)
        while left > 0 and (taken := self._take(min(left, AT_ONCE))):
            left -= len(taken)
            try:
                self._store.write(taken)
            except STORE_FAULTS:
                with self._lock:
                    for run in taken:
                        self._keep(run)
                raise
            except Exception as error:  # kept, they would hold up the runs of all others in each turn
                self._unexpected.note(
                    "last_runs", error, schedule_ids=[run.schedule_id for run in taken[:10]]
                )
        with self._lock:
            dropped, self._dropped = self._dropped, 0
        if dropped:
            log.warning(
                "last_runs.dropped",
                message="More schedules run than last runs can be written; the others show an older run",
                count=dropped,
            )

    def _take(self, count: int) -> list[Run]:
        with self._lock:
            ids = list(islice(self._waiting, count))
            return [self._waiting.pop(each) for each in ids]
