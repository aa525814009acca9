"""Reports outcomes that MongoDB has: in metrics, as the last run of each schedule, to the judgement of
schedules whose events ended in `error`, and in the log: one line for each failure up to a bound, and a
summary of the rest.
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice

from prometheus_client.metrics_core import Metric

from scheduler_app.clock import monotonic
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.masking import one_line
from scheduler_app.domain.states import State
from scheduler_app.store import STORE_FAULTS, Store, within
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.store.schedules.last_runs import LastRuns, RunResult
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.telemetry.logs import UnexpectedErrors
from scheduler_app.usecases.cause_counts import CauseCounts
from scheduler_app.usecases.figure_counts import FigureCounts

log = get_logger(__name__)

WINDOW_SECONDS = 10.0
#: Lines in a window, for one origin and for all: as many for attempts that are tried again as for dead
#: letters.
LINES_OF_ORIGIN = 20
LINES = 100
#: Origins that a window counts by their names, and those that its last line names: the most frequent ones.
ORIGINS_COUNTED = 200
ORIGINS_NAMED = 10
OTHER = "other"
ERROR_CHARACTERS = 300

_MESSAGES = {
    State.RETRYING: ("attempt.failed", "A callback failed; it is tried again"),
    State.ERROR: ("attempt.dead_letter", "A callback failed for good; its event is a dead letter"),
}


class FailureLog:
    """Logs each failure until the lines of a window are used up, then counts, and logs a summary of the
    omitted ones when the window ends. Thread-safe.

    A line has ids, the origin, and the status or the error: no path, query, header, body or snippet.
    """

    def __init__(self) -> None:
        self._told: Counter[tuple[State, str]] = Counter()
        self._omitted: Counter[tuple[State, str]] = Counter()
        self._lines: Counter[State] = Counter()
        self._ends_at: float | None = None
        self._lock = threading.Lock()

    def note(self, records: Iterable[OutcomeRecord], now: float) -> None:
        """Takes attempts that were recorded. `now` is monotonic."""
        failed = [record for record in records if record.state in _MESSAGES]
        if not failed:
            return
        self.close_window(now)
        with self._lock:
            self._ends_at = self._ends_at or now + WINDOW_SECONDS
            logged = [record for record in failed if self._has_line(record)]
        for record in logged:
            _tell(record)

    def close_window(self, now: float) -> None:
        """Says what was left out, if the window is over."""
        with self._lock:
            if self._ends_at is None or now < self._ends_at:
                return
            omitted, self._omitted = self._omitted, Counter()
            self._told.clear()
            self._lines.clear()
            self._ends_at = None
        if omitted:
            _tell_omitted(omitted)

    def _has_line(self, record: OutcomeRecord) -> bool:
        key = record.state, record.origin
        if self._lines[record.state] < LINES and self._told[key] < LINES_OF_ORIGIN:
            self._lines[record.state] += 1
            self._told[key] += 1
            return True
        if key not in self._omitted and len(self._omitted) >= ORIGINS_COUNTED:
            key = record.state, OTHER
        self._omitted[key] += 1
        return False


def _tell(record: OutcomeRecord) -> None:
    name, message = _MESSAGES[record.state]
    attempt, status = record.attempt, record.attempt.get("status_code")
    facts = {
        "schedule_id": (record.event.schedule_id or None) if record.event else None,
        "event_id": record.event_id,
        "origin": record.origin,
        "status_code": status,
        # A receiver's answer speaks for itself; what it says beside that may be anybody's.
        "error": None if status is not None else one_line(str(attempt.get("error")))[:ERROR_CHARACTERS],
        "attempt": attempt.get("number"),
        "attempts_allowed": record.attempts_allowed,
        "next_at": shown_instant(record.due_at) if record.due_at else None,
    }
    log.warning(name, message=message, **{key: value for key, value in facts.items() if value is not None})


def _tell_omitted(omitted: "Counter[tuple[State, str]]") -> None:
    by_origin: Counter[str] = Counter()
    for (_, origin), count in omitted.items():
        by_origin[origin] += count
    named = dict(by_origin.most_common(ORIGINS_NAMED))
    if rest := by_origin.total() - sum(named.values()):
        named[OTHER] = named.get(OTHER, 0) + rest
    log.warning(
        "attempts.omitted",
        message="More callbacks failed than are told one by one",
        window_seconds=WINDOW_SECONDS,
        failed=sum(count for (state, _), count in omitted.items() if state is State.RETRYING),
        dead_letters=sum(count for (state, _), count in omitted.items() if state is State.ERROR),
        by_origin=named,
    )


#: Schedules that wait to be judged. One beyond is judged after its next failure.
MAX_FAILED_SCHEDULES = 10_000
#: Judged in one turn: each is a question, and a cut where it is paused.
JUDGED_AT_ONCE = 50


class FailedSchedules:
    """Only notes schedules with `pause_after_failures`. Threads share it."""

    def __init__(self, judge: Callable[[str, datetime], bool] | None, unexpected: UnexpectedErrors) -> None:
        """Without `judge` failures are not judged."""
        self._judge = judge
        self._unexpected = unexpected
        self._waiting: dict[str, None] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def note(self, records: Iterable[OutcomeRecord]) -> None:
        """Takes attempts that were recorded."""
        for record in records:
            if record.pauses_on_failure and record.state is State.ERROR and record.event is not None:
                with self._lock:
                    if len(self._waiting) < MAX_FAILED_SCHEDULES:
                        self._waiting[record.event.schedule_id] = None

    def judge(self, now: datetime) -> None:
        """Judges some of the schedules that wait. Raises a STORE_FAULT; nothing is forgotten then. A schedule
        that cannot be judged at all is judged again after its next failure."""
        if self._judge is None:
            return
        for schedule_id in list(self._waiting)[:JUDGED_AT_ONCE]:
            # Taken out first: a failure that is recorded meanwhile is judged again.
            with self._lock:
                del self._waiting[schedule_id]
            try:
                self._judge(schedule_id, now)
            except STORE_FAULTS:
                with self._lock:
                    self._waiting[schedule_id] = None
                raise
            except Exception as error:  # kept, it would fail in each turn
                self._unexpected.note("failure_pausing", error, schedule_id=schedule_id)


#: Schedules in one write, and in each of a second's writes as long as few wait. A write is some 130 µs of
#: mongod's for each schedule that begins or ceases to fail; of the others mongod looks at the outcome alone.
LAST_RUNS_AT_ONCE = 200
#: Where more than AT_ONCE a second would be needed, all that wait are written within about this many seconds.
DRAIN_SECONDS = 40
#: Schedules that wait. Beyond that bound, a schedule shows its next run instead.
MAX_LAST_RUNS = 50_000


class LastRunQueue:
    """The newest run of each schedule that is not written yet: a schedule that runs each second, or whose
    events are retried, is one write for all that came meanwhile. Threads share it.

    It is memory: the runs of a worker's last seconds are missing where that was killed, until the next ones.
    """

    def __init__(self, store: LastRuns, unexpected: UnexpectedErrors) -> None:
        self._store = store
        self._unexpected = unexpected
        self._waiting: dict[str, RunResult] = {}
        self._dropped = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def note(self, records: Iterable[OutcomeRecord]) -> None:
        """Takes attempts that were recorded."""
        with self._lock:
            for record in records:
                event = record.event
                if event is not None and event.schedule_id:
                    self._keep(
                        RunResult(event.schedule_id, event.run_time, record.state, event.id, record.ended_at)
                    )

    def _keep(self, run: RunResult) -> None:
        known = self._waiting.get(run.schedule_id)
        if known is None and len(self._waiting) >= MAX_LAST_RUNS:
            self._dropped += 1
        elif known is None or known.order < run.order:
            self._waiting[run.schedule_id] = run

    def write(self) -> None:
        """A second's share of what waits, the longest-waiting first. Raises a STORE_FAULT; nothing is lost
        then. Runs that cannot be written at all are dropped: each schedule shows its next one."""
        left = max(LAST_RUNS_AT_ONCE, len(self._waiting) // DRAIN_SECONDS)
        while left > 0 and (taken := self._take(min(left, LAST_RUNS_AT_ONCE))):
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

    def _take(self, count: int) -> list[RunResult]:
        with self._lock:
            ids = list(islice(self._waiting, count))
            return [self._waiting.pop(each) for each in ids]


#: Origins that a worker counts by their names: the first ones that it calls. The rest is `other`.
MAX_ORIGINS = 100
OTHER_ORIGINS = "other"


class OriginCounts:
    """Counts a worker's attempts by outcome, and how long they took. Threads share it."""

    def __init__(self) -> None:
        self._attempts: dict[str, dict[str, int]] = {}
        self._seconds: dict[str, float] = {}
        self._lock = threading.Lock()

    def note(self, records: Iterable[OutcomeRecord]) -> None:
        """Takes attempts that were recorded."""
        ended: defaultdict[tuple[str, State], int] = defaultdict(int)
        took_ms: defaultdict[str, float] = defaultdict(float)
        for record in records:
            ended[record.origin, record.state] += 1
            took_ms[record.origin] += record.attempt.get("duration_ms", 0.0)
        with self._lock:
            for (name, state), count in ended.items():
                counts = self._attempts.setdefault(self._shown(name), {})
                counts[state.value] = counts.get(state.value, 0) + count
            for name, milliseconds in took_ms.items():
                origin = self._shown(name)
                self._seconds[origin] = self._seconds.get(origin, 0.0) + milliseconds / 1000

    def _shown(self, origin: str) -> str:
        known = origin in self._attempts or len(self._attempts) < MAX_ORIGINS
        return origin if known else OTHER_ORIGINS

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            counted = {
                (origin, outcome): count
                for origin, counts in self._attempts.items()
                for outcome, count in counts.items()
            }
            seconds = dict(self._seconds)
        yield metrics.origin_attempts.family(counted)
        yield metrics.origin_seconds.family(seconds)


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
        self.schedule_failures = FailedSchedules(judge_failures, self._unexpected)
        self.last_runs = LastRunQueue(store.last_runs, self._unexpected)
        self.causes = CauseCounts(store.causes)
        self.figures = FigureCounts(store.figure_counters)
        self.failures = FailureLog()
        self.origins = OriginCounts()
        self._ended = threading.Event()

    def note(self, records: Sequence[OutcomeRecord]) -> None:
        """Takes attempts that were recorded; it never raises."""
        # An event that its receiver still works on has not ended.
        ended = [record for record in records if record.state is not State.RUNNING]
        for step, take in (
            ("origins", self.origins.note),
            ("last_runs", self.last_runs.note),
            ("causes", self.causes.note),
            ("figures", self.figures.note),
            ("failure_log", self._log_failures),
            ("failure_pausing", self.schedule_failures.note),
        ):
            try:
                take(ended)
            except Exception as error:  # the outcomes are written: a report of them must not undo that
                self._unexpected.note(step, error)

    def _log_failures(self, records: Sequence[OutcomeRecord]) -> None:
        self.failures.note(records, monotonic())

    def run(self) -> None:
        while not self._ended.wait(TURN_SECONDS):
            self._turn()
        until = monotonic() + LAST_SECONDS
        while self._has_work() and monotonic() < until and self._turn(is_last=True):
            pass
        self.failures.close_window(float("inf"))

    def _has_work(self) -> bool:
        waiting = (self.last_runs, self.schedule_failures, self.causes, self.figures)
        return any(len(each) for each in waiting)

    def _turn(self, *, is_last: bool = False) -> bool:
        """Writes a second's share of what waits; returns whether MongoDB took it."""
        self._close_window()
        try:
            with within(LAST_SECONDS):
                self.causes.write()
                self.last_runs.write()
                if self.schedule_failures:
                    self.schedule_failures.judge(self._now())
                self.figures.write(at_once=is_last)
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
