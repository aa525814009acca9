"""Reports outcomes that MongoDB has: in the log, in metrics, and as the last run of each schedule."""

import threading
from collections.abc import Callable, Sequence
from datetime import datetime

from scheduler_app.clock import monotonic
from scheduler_app.domain.event import State
from scheduler_app.store import STORE_FAULTS, Store, within
from scheduler_app.store.events.outcomes import Record
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.telemetry.unexpected import UnexpectedErrors
from scheduler_app.worker.failure_log import FailureLog
from scheduler_app.worker.failures import Failures
from scheduler_app.worker.last_runs import LastRunQueue
from scheduler_app.worker.origin_counts import OriginCounts

log = get_logger(__name__)

TURN_SECONDS = 1.0
#: How long a worker that is ending still writes the runs that wait, in seconds.
LAST_SECONDS = 3.0


class Reports(threading.Thread):
    """One thread a process for work that must not hold up the recorder."""

    def __init__(
        self,
        store: Store,
        *,
        now: Callable[[], datetime],
        judge_failures: Callable[[str, datetime], bool] | None = None,
    ) -> None:
        """`judge_failures` pauses a schedule whose last events all failed; without it none is paused."""
        super().__init__(name="reports", daemon=True)
        self._now = now
        self._unexpected = UnexpectedErrors(
            metrics.worker_failures,
            "reports.failed",
            "A step of the reports failed; the other steps continue",
            monotonic=monotonic,
        )
        self.schedule_failures = Failures(judge_failures, self._unexpected)
        self.last_runs = LastRunQueue(store.last_runs, self._unexpected)
        self.failures = FailureLog()
        self.origins = OriginCounts()
        self._ended = threading.Event()

    def note(self, records: Sequence[Record]) -> None:
        """Takes attempts that were recorded; it never raises."""
        # An event that its receiver still works on has not ended.
        ended = [record for record in records if record.state is not State.RUNNING]
        for step, take in (
            ("origins", self.origins.note),
            ("last_runs", self.last_runs.note),
            ("failure_log", self._log_failures),
            ("failure_pausing", self.schedule_failures.note),
        ):
            try:
                take(ended)
            except Exception as error:  # the outcomes are written: a report of them must not undo that
                self._unexpected.note(step, error)

    def _log_failures(self, records: Sequence[Record]) -> None:
        self.failures.note(records, monotonic())

    def run(self) -> None:
        while not self._ended.wait(TURN_SECONDS):
            self._turn()
        until = monotonic() + LAST_SECONDS
        while (len(self.last_runs) or self.schedule_failures) and monotonic() < until and self._turn():
            pass
        self.failures.close_window(float("inf"))

    def _turn(self) -> bool:
        """Writes a second's share of what waits; returns whether MongoDB took it."""
        self._close_window()
        try:
            with within(LAST_SECONDS):
                self.last_runs.write()
                if self.schedule_failures:
                    self.schedule_failures.judge(self._now())
        except STORE_FAULTS as error:
            # The recorder says what MongoDB's absence means; this is only tried again.
            log.debug("last_runs.delayed", message="Last runs cannot be written yet", error=str(error)[:300])
            return False
        return True

    def _close_window(self) -> None:
        try:
            self.failures.close_window(monotonic())
        except Exception as error:  # last runs are written, and failures judged, whatever the log does
            self._unexpected.note("failure_log", error)

    def stop(self) -> None:
        """Ends the thread after a last turn."""
        self._ended.set()
