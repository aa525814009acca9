"""The place of one part in the set: which process has it now, or when the next one will."""

import time

from scheduler_app.cli.up.supervisor.backoff import Backoff
from scheduler_app.cli.up.supervisor.process import Process
from scheduler_app.cli.up.supervisor.service import Part

_ASK_EVERY = 0.1


class Seat:
    """Empty until it is first filled."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.process: Process | None = None
        self.deaths = 0
        self._ready = False
        self._ask_at = 0.0
        self._again_at: float | None = None
        self._backoff = Backoff()

    def fill(self) -> Process:
        self._again_at = None
        self.process = Process(self.part)
        return self.process

    def vacate(self) -> float:
        """After a death: the seconds until it is to be filled again."""
        assert self.process is not None  # noqa: S101
        delay = self._backoff.after(time.monotonic() - self.process.started)
        self._again_at = time.monotonic() + delay
        self.process = None
        self.deaths += 1
        self._ready = False
        return delay

    def is_due(self) -> bool:
        return self._again_at is not None and time.monotonic() >= self._again_at

    def is_ready(self) -> bool:
        """Whether its process has been ready once; asks it now and then until it is."""
        if not self._ready and self.process is not None and time.monotonic() >= self._ask_at:
            self._ready = self.part.ready()
            self._ask_at = time.monotonic() + _ASK_EVERY
        return self._ready
