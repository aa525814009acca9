"""Asks MongoDB until it answers or the worker ends."""

import itertools
import threading
from collections.abc import Callable
from typing import TypeVar

from scheduler_app.store import STORE_FAULTS
from scheduler_app.telemetry import get_logger
from scheduler_app.worker.capacity import Stopping

log = get_logger(__name__)

Answer = TypeVar("Answer")

BACKOFF_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


class Retrying:
    """Threads share it."""

    def __init__(self) -> None:
        self._ending = threading.Event()

    def stop(self) -> None:
        """From now on a question that MongoDB does not answer at once is given up."""
        self._ending.set()

    def until_answered(self, ask: Callable[[], Answer]) -> Answer:
        """What `ask` returns, as soon as it raises no STORE_FAULT. Raises Stopping after `stop`."""
        for pause in itertools.chain(BACKOFF_SECONDS, itertools.repeat(BACKOFF_SECONDS[-1])):
            try:
                return ask()
            except STORE_FAULTS as error:
                log.warning(
                    "deliver.delayed",
                    message="MongoDB does not give what claimed events need; the worker asks again",
                    retry_in_seconds=pause,
                    error=str(error)[:300],
                )
            if self._ending.wait(pause):
                raise Stopping
        raise AssertionError("unreachable")
