"""Gives attempts tokens where receivers say later how their work went."""

from collections.abc import Sequence

from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.telemetry import get_logger
from scheduler_app.worker.attempt import Attempt
from scheduler_app.worker.awaited import with_tokens
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.recorder import GivenBack, Recorder

log = get_logger(__name__)


class CompletionTokens:
    """Threads share it."""

    def __init__(self, store: Store, recorder: Recorder) -> None:
        self._completions = store.completions
        self._recorder = recorder

    def added_to(self, attempts: Sequence[Attempt], lease: Lease) -> Sequence[Attempt]:
        """The attempts, with tokens where their schedules ask for them; most do not. Gives back the events
        whose tokens could not be stored."""
        if not any(attempt.completion_seconds is not None for attempt in attempts):
            return attempts
        try:
            ready = with_tokens(self._completions, attempts)
        except STORE_FAULTS as error:
            log.warning(
                "deliver.not_expected",
                message="Tokens for receivers could not be stored; their events are given back",
                error=str(error)[:300],
            )
            ready = [attempt for attempt in attempts if attempt.completion_seconds is None]
        left = {attempt.event.id for attempt in attempts} - {attempt.event.id for attempt in ready}
        if left:
            self._recorder.put([GivenBack(event_id, lease) for event_id in left])
        return ready
