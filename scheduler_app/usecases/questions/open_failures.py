"""How many failures are open, for the frame that every page has."""

import threading
from dataclasses import dataclass, field
from typing import Final

from scheduler_app.clock import monotonic
from scheduler_app.store import Store

#: A number is kept for so long, for all who ask: each page asks.
KEPT_SECONDS: Final = 5.0
#: Of more, “99+” says enough.
MOST_COUNTED: Final = 100
#: Tenants whose numbers a process keeps.
MOST_TENANTS: Final = 1_000


@dataclass(frozen=True, slots=True)
class OpenFailures:
    """The numbers by tenant; safe for threads."""

    store: Store
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _kept: dict[str, tuple[float, int]] = field(default_factory=dict)

    def count(self, tenant: str) -> int:
        """`MOST_COUNTED` at most. Raises a STORE_FAULT."""
        began = monotonic()
        with self._lock:
            counted_at, count = self._kept.get(tenant, (float("-inf"), 0))
        if began - counted_at < KEPT_SECONDS:
            return count
        count = self.store.causes.count_open(tenant, most=MOST_COUNTED)
        with self._lock:
            if len(self._kept) >= MOST_TENANTS:
                self._kept.clear()
            self._kept[tenant] = began, count
        return count

    def forget(self, tenant: str) -> None:
        """Counts at the next question, after a change that this process has made."""
        with self._lock:
            self._kept.pop(tenant, None)
