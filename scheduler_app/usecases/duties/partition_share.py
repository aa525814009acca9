"""A beat's share of the partitions: it renews its lease each second, gives up what is more than its share,
and takes what is free. There is no leader. A beat that is alone renews it every other second: a write, and
what it waits for, are a tenth of what an idle installation costs.

Nothing but the number of reads and messages rests on it: a beat that cannot learn what it owns reads
everything.
"""

import threading
from collections.abc import Callable
from typing import Final

from scheduler_app.clock import monotonic
from scheduler_app.domain.ids import PARTITIONS
from scheduler_app.domain.partitions import fair_share
from scheduler_app.store import REJECTED, STORE_FAULTS, Store
from scheduler_app.store.mongo import new_token
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

RENEW_SECONDS: Final = 1.0
MOST_LEASE_SECONDS: Final = 10.0
#: What a dead beat has not dispatched falls due no sooner than this after its lease.
SPARE_SECONDS: Final = 1.0
_NEVER: Final = float("-inf")


def lease_seconds(*, horizon_seconds: float, ticker_seconds: float) -> float:
    """For how long a beat that died keeps its partitions."""
    return min(MOST_LEASE_SECONDS, max(SPARE_SECONDS, horizon_seconds - ticker_seconds - SPARE_SECONDS))


class PartitionShare:
    """The partitions that one beat owns. `start` renews their lease in a thread; without it, in an API and in
    a worker, nobody asks for any."""

    def __init__(self, store: Store, *, lease_seconds: float) -> None:
        self._store = store
        self._lease_seconds = lease_seconds
        self._beat = f"b{new_token()}"
        self._own: frozenset[int] | None = None
        self._renewed_at = _NEVER
        self._is_alone = False
        self._failing = False
        self._ended = threading.Event()

    def owned(self) -> frozenset[int] | None:
        """The partitions to read now; None for all of them, when it is unknown which ones."""
        if monotonic() - self._renewed_at > self._lease_seconds:
            return None
        return self._own

    def start(self, stuck: Callable[[], bool]) -> None:
        """Takes a share, and renews it from now on. `stuck`: whether this beat's ticks do not end, so that
        others have to take over."""
        self._renew()
        threading.Thread(target=self._keep, args=(stuck,), name="partitions", daemon=True).start()

    def stop(self) -> None:
        """Ends the renewals, and frees what this beat owns if MongoDB answers at once."""
        self._ended.set()
        if self._own is not None and not self._failing:
            try:
                self._store.partition_owners.leave(self._beat)
            except STORE_FAULTS as error:
                log.debug(
                    "partitions.kept",
                    message="What this beat owns stays its own until the lease is over",
                    error=str(error)[:200],
                )

    def refresh(self) -> None:
        """Renews the lease, and gives up or takes what is due. Raises a STORE_FAULT, or a rejection."""
        asked_at, owners = monotonic(), self._store.partition_owners
        seen = owners.renew(self._beat, lease_seconds=self._lease_seconds)
        own, fair = seen.of(self._beat), fair_share(seen, self._beat)
        # What is given up is no longer read before others may take it.
        self._own, self._renewed_at = own & fair, asked_at
        is_settled = own == fair and not seen.over()
        self._is_alone = is_settled and seen.beats.keys() <= {self._beat}
        if is_settled:
            return
        epochs = [count + (number in fair - own) for number, count in enumerate(seen.epochs)]
        if owners.change(seen, self._beat, fair, epochs=epochs, lease_seconds=self._lease_seconds):
            self._own = fair
            log.info(
                "partitions.owned",
                message="This beat's share of the partitions has changed",
                owned=len(fair),
                of=PARTITIONS + 1,
            )

    def _keep(self, stuck: Callable[[], bool]) -> None:
        while not self._ended.wait(RENEW_SECONDS):
            if not stuck() and not self._may_skip_a_turn():
                self._renew()

    def _may_skip_a_turn(self) -> bool:
        """Whether nobody waits for what a renewal would say, and the next turn comes well before the lease is
        over. A beat that comes meanwhile looks each second itself, and gets its share a second later."""
        age = monotonic() - self._renewed_at
        return self._is_alone and age + 1.5 * RENEW_SECONDS <= min(self._lease_seconds, 3 * RENEW_SECONDS)

    def _renew(self) -> None:
        try:
            self.refresh()
        except (*STORE_FAULTS, *REJECTED) as error:
            if not self._failing:
                log.warning(
                    "partitions.unknown",
                    message="This beat cannot renew what it owns; until it can, it reads everything",
                    error=str(error)[:300],
                )
            self._failing = True
        else:
            self._failing = False
