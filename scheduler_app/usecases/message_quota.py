"""How many messages a tenant may have that are scheduled for later."""

import threading
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from scheduler_app.clock import monotonic
from scheduler_app.store import Store

#: A count is used for so long, and for so many times the time that it took: counting takes 2 % of a thread.
LEAST_SECONDS = 1.0
TIMES_ITS_COST = 50
#: Tenants whose counts are kept; with more of them all counts are dropped.
MOST_TENANTS = 1_000


class _Count(NamedTuple):
    number: int
    until: float


class MessageQuota:
    """The room that tenants have, from a count that is some seconds old, and what this process made since.

    Several processes may together exceed the quota by what they make in those seconds. Threads share it.
    """

    def __init__(self, store: Store, most: int, *, elapsed: Callable[[], float] = monotonic) -> None:
        """`most` messages for each tenant; 0: as many as they like, and nothing is counted. `elapsed` gives
        seconds."""
        self._messages = store.messages
        self.most = most
        self._elapsed = elapsed
        self._counts: dict[str, _Count] = {}
        self._lock = threading.Lock()

    def take(self, tenant: str, wanted: int, now: datetime) -> int:
        """Returns how many of `wanted` messages for later there is room for, and counts them as made. Raises
        a STORE_FAULT."""
        if not self.most:
            return wanted
        found = self._counts.get(tenant)
        if found is None or self._elapsed() >= found.until:
            began = self._elapsed()
            number = self._messages.scheduled_for_later(now, tenant=tenant, most=self.most)
            ended = self._elapsed()
            found = _Count(number, ended + max(LEAST_SECONDS, TIMES_ITS_COST * (ended - began)))
        with self._lock:
            if len(self._counts) >= MOST_TENANTS:
                self._counts = {}
            newer = self._counts.get(tenant)
            if newer is not None and newer.until >= found.until:
                found = newer
            taken = max(0, min(wanted, self.most - found.number))
            self._counts[tenant] = found._replace(number=found.number + taken)
        return taken

    def give_back(self, tenant: str, number: int) -> None:
        """Takes back what `take` has counted for messages that were not made."""
        with self._lock:
            found = self._counts.get(tenant)
            if found is not None:
                self._counts[tenant] = found._replace(number=max(0, found.number - number))
