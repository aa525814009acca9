"""Which duties of a beat have something to do: one look for all that mostly have nothing."""

from datetime import datetime
from typing import Final

from scheduler_app.clock import monotonic
from scheduler_app.store import REJECTED, STORE_FAULTS, Store
from scheduler_app.store.waiting_work import Work

#: How old a look may be: each tick makes one of its own, ticks that follow at once share one.
LOOK_SECONDS: Final = 0.5
#: After a look that failed, every duty looks for itself for so long, and says what is wrong.
WITHOUT_LOOKS_SECONDS: Final = 5.0


class WaitingWorkView:
    """What one beat knows. Of one thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: frozenset[Work] = frozenset(Work)
        self._look_at = float("-inf")

    def has(self, work: Work, now: datetime) -> bool:
        """Whether there may be work of that kind at `now`. It raises no STORE_FAULT."""
        if monotonic() >= self._look_at:
            self._look(now)
        return work in self._known

    def _look(self, now: datetime) -> None:
        try:
            self._known = self._store.waiting_work.kinds(now)
            self._look_at = monotonic() + LOOK_SECONDS
        except (*STORE_FAULTS, *REJECTED):
            self._known = frozenset(Work)
            self._look_at = monotonic() + WITHOUT_LOOKS_SECONDS
