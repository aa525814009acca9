"""Marks suspects: events that lost several workers, and may be what killed them."""

from collections.abc import Sequence

from scheduler_app.domain.event import SUSPECT_AFTER
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.telemetry import get_logger
from scheduler_app.worker.attempt import Attempt
from scheduler_app.worker.job import Job
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.recorder import GivenBack, Recorder

log = get_logger(__name__)


class Isolation:
    """Threads share it."""

    def __init__(self, store: Store, recorder: Recorder) -> None:
        self._claims = store.claims
        self._recorder = recorder

    def jobs(self, attempts: Sequence[Attempt], lease: Lease) -> list[Job]:
        """The attempts as jobs; those of suspects are isolated, so that the next loss tells whether the event
        was its cause. Gives back the suspects that could not be marked.

        The mark is written before the request: a worker that dies of the event leaves it.
        """
        found: list[Job] = []
        for attempt in attempts:
            is_suspect = attempt.event.lost_leases >= SUSPECT_AFTER
            if is_suspect and not self._marked(attempt, lease):
                self._recorder.put([GivenBack(attempt.event.id, lease)])
            else:
                found.append(Job(attempt, lease, attempt.deliverable.action.isolation_key, is_suspect))
        return found

    def _marked(self, attempt: Attempt, lease: Lease) -> bool:
        try:
            return self._claims.isolate(attempt.event.id, lease.token)
        except STORE_FAULTS as error:
            log.warning(
                "deliver.not_isolated",
                message="An event that lost several workers could not be marked; it is given back",
                event_id=attempt.event.id,
                error=str(error)[:300],
            )
            return False
