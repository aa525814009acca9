"""Ends the transactions of processes that died in the middle of one, before what they hold makes others late.

It works in a thread of its own: a tick may be what waits for one of these documents.
"""

import threading
from typing import Final

from scheduler_app.clock import monotonic
from scheduler_app.store import REJECTED, STORE_FAULTS, Store
from scheduler_app.store.transactions import IdleTransaction
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

LOOK_SECONDS: Final = 1.0
#: Between two commands of a transaction some milliseconds pass; a process that stands still for longer than
#: this makes it anew. With the time between two looks it is shorter than what is dispatched ahead.
IDLE_SECONDS: Final = 2.0


class AbandonedTransactions:
    """What one beat knows of open transactions. `start` looks from now on, in a thread."""

    def __init__(self, store: Store, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._store = store
        self._idle_seconds = idle_seconds
        self._idle_since: dict[IdleTransaction, float] = {}
        self._failing = False
        self._ended = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._keep, name="transactions", daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def look(self) -> int:
        """Ends those in which nothing was done for too long; returns how many. Raises a STORE_FAULT, or a
        rejection."""
        now, known = monotonic(), self._idle_since
        idle = self._store.transactions.idle()
        self._idle_since = {each: known.get(each, now) for each in idle}
        over = [each for each in idle if each in known and now - known[each] >= self._idle_seconds]
        if over:
            self._store.transactions.end(over)
            log.warning(
                "transactions.ended",
                message="Processes began transactions and did not go on with them, which held up others; they"
                " are undone",
                count=len(over),
                clients=sorted({each.client for each in over})[:10],
            )
        return len(over)

    def _keep(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            try:
                self.look()
            except (*STORE_FAULTS, *REJECTED) as error:
                if not self._failing:
                    log.warning(
                        "transactions.unknown",
                        message="This beat cannot look for transactions of processes that died; mongod ends"
                        " them when its transactionLifetimeLimitSeconds are over",
                        error=str(error)[:300],
                    )
                self._failing = True
            else:
                self._failing = False
