"""Clocks that stand still: of the day while a test prepares what is to happen before an event is due, and of
seconds, which a test moves."""

from datetime import datetime

from scheduler_app.clock import clock


class HeldClock:
    """The real clock, but between `hold` and `go_on`: what is due later stays so, however long this machine
    takes for the steps in between."""

    def __init__(self) -> None:
        self._held_at: datetime | None = None

    def __call__(self) -> datetime:
        return self._held_at or clock.now()

    def hold(self) -> datetime:
        """Returns the time at which it stands."""
        self._held_at = clock.now()
        return self._held_at

    def stand_at(self, instant: datetime) -> None:
        self._held_at = instant

    def go_on(self) -> None:
        self._held_at = None


class Seconds:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.passed = 1_000.0

    def __call__(self) -> float:
        return self.passed
