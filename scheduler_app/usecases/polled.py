"""A state that each process polls, because it may change at any moment and is read all the time."""

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from scheduler_app.clock import monotonic
from scheduler_app.store import STORE_FAULTS, within
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

T = TypeVar("T")

#: A look that takes longer is given up, and the last known state holds.
ANSWER_SECONDS: Final = 0.5


class Polled(Generic[T]):
    """The state as one process knows it. Threads may share it. While MongoDB does not answer, the last known
    state holds."""

    def __init__(self, read: Callable[[], T], first: T, *, name: str, seconds: float) -> None:
        """`first` is known before the first look; `name` begins the names of log events; what is known is
        looked at again when it is `seconds` old."""
        self._read = read
        self._known = first
        self._name = name
        self.seconds = seconds
        self._lock = threading.Lock()
        self.looked_at = float("-inf")
        """When the last look began, in monotonic seconds."""
        self.is_away = False
        """Whether MongoDB did not answer it."""
        self.has_answer = False
        """Whether MongoDB has answered any look: before that, nothing is known."""

    @property
    def known(self) -> T:
        """The state at the last look, for callers that must not wait."""
        return self._known

    @property
    def is_old(self) -> bool:
        return monotonic() - self.looked_at >= self.seconds

    def current(self) -> T:
        """No older than `seconds`, where MongoDB answers."""
        if self.is_old:
            with self._lock:
                if self.is_old:
                    self.look()
        return self._known

    def look(self) -> None:
        """Reads it; it raises no STORE_FAULT."""
        began = monotonic()
        try:
            with within(ANSWER_SECONDS):
                found = self._read()
        except STORE_FAULTS as error:
            if not self.is_away:
                log.warning(
                    f"{self._name}.unknown",
                    message="This cannot be read from MongoDB; as it was last known, it holds",
                    error=str(error)[:300],
                )
            self.is_away = True
        else:
            self.is_away, self.has_answer = False, True
            if found != self._known:
                log.warning(
                    f"{self._name}.changed", message="Other ones hold than before", now=str(found)[:500]
                )
            self._known = found
        self.looked_at = began
