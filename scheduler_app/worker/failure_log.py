"""Logs failed attempts and dead letters: one line each, up to a bound, and a summary of the rest."""

import threading
from collections import Counter
from collections.abc import Iterable

from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.states import State
from scheduler_app.domain.text import one_line
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.telemetry import get_logger

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
