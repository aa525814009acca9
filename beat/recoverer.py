"""The third duty of a tick: what a crash left is put right."""

from collections.abc import Callable
from datetime import datetime

from scheduler_app.domain.lane import QueueLengths
from scheduler_app.usecases.recovery import EVENTS_A_PAGE, Recovery


class Recoverer:
    def __init__(self, recovery: Recovery, queue_lengths: Callable[[], QueueLengths]) -> None:
        self._recovery = recovery
        self._queue_lengths = queue_lengths

    def run(self, now: Callable[[], datetime]) -> bool:
        """Repairs a page of each kind; True when there may be more.

        Messages last: the others need MongoDB alone, and go on while the broker is away. Raises a
        STORE_FAULT, or what the broker raises when it cannot be reached.
        """
        workers = self._recovery.recover_workers(now())
        dispatches = self._recovery.recover_dispatches(now())
        messages = self._recovery.recover_messages(now(), queue=self._queue_lengths())
        return max(workers.total, dispatches.total, messages.total) >= EVENTS_A_PAGE
