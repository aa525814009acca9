"""Notes which schedules have to be judged because an event of theirs ended in `error`."""

import threading
from collections.abc import Callable, Iterable
from datetime import datetime

from scheduler_app.domain.event import State
from scheduler_app.store import STORE_FAULTS
from scheduler_app.store.events.outcomes import Record
from scheduler_app.telemetry.unexpected import UnexpectedErrors

#: Schedules that wait to be judged. One beyond is judged after its next failure.
MAX_WAITING = 10_000
#: Judged in one turn: each is a question, and a cut where it is paused.
AT_ONCE = 50


class Failures:
    """Only notes schedules with `pause_after_failures`. Threads share it."""

    def __init__(self, judge: Callable[[str, datetime], bool] | None, unexpected: UnexpectedErrors) -> None:
        """Without `judge` failures are not judged."""
        self._judge = judge
        self._unexpected = unexpected
        self._waiting: dict[str, None] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def note(self, records: Iterable[Record]) -> None:
        """Takes attempts that were recorded."""
        for record in records:
            if record.pauses_on_failure and record.state is State.ERROR and record.event is not None:
                with self._lock:
                    if len(self._waiting) < MAX_WAITING:
                        self._waiting[record.event.schedule_id] = None

    def judge(self, now: datetime) -> None:
        """Judges some of the schedules that wait. Raises a STORE_FAULT; nothing is forgotten then. A schedule
        that cannot be judged at all is judged again after its next failure."""
        if self._judge is None:
            return
        for schedule_id in list(self._waiting)[:AT_ONCE]:
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
