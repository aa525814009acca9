"""Gives attempts a lease that is as long as their timeouts: the claim knew no timeouts."""

from collections.abc import Iterator, Sequence

from scheduler_app.store import STORE_FAULTS
from scheduler_app.telemetry import get_logger
from scheduler_app.worker.attempt import Attempt
from scheduler_app.worker.lease import Lease, Leases, timeout_class

log = get_logger(__name__)


class TimeoutLeases:
    """Threads share it."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases

    def by_class(
        self, attempts: Sequence[Attempt], lease: Lease
    ) -> Iterator[tuple[Lease, Sequence[Attempt]]]:
        """The attempts of each timeout class with their lease: `lease` itself, or one split off from it."""
        by_class: dict[float, list[Attempt]] = {}
        for attempt in attempts:
            by_class.setdefault(timeout_class(attempt.deliverable.timeout_seconds), []).append(attempt)
        for seconds, group in by_class.items():
            yield self._lease(lease, seconds, group), group

    def _lease(self, lease: Lease, seconds: float, attempts: Sequence[Attempt]) -> Lease:
        if seconds <= lease.timeout_seconds:
            return lease
        longer = lease.split((attempt.event.id for attempt in attempts), seconds)
        self._leases.add(longer)
        try:
            self._leases.renew(longer)
        except STORE_FAULTS as error:
            # No attempt starts under it until the thread of `Leases` has renewed it.
            log.warning(
                "lease.not_renewed", message="A longer lease was not granted yet", error=str(error)[:300]
            )
        return longer
