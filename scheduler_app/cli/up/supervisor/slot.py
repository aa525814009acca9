"""A service's slot in the supervisor: its running process, or when the next one starts."""

import time

from scheduler_app.cli.up.supervisor.backoff import Backoff
from scheduler_app.cli.up.supervisor.process import Process
from scheduler_app.cli.up.supervisor.service import Service

#: Seconds between two checks.
_CHECK_EVERY = 0.1


class Slot:
    """Empty until `fill` starts the first process."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.process: Process | None = None
        self.deaths = 0
        self._ready = False
        self._check_at = 0.0
        self._again_at: float | None = None
        self._backoff = Backoff()

    def fill(self) -> Process:
        self._again_at = None
        self.process = Process(self.service)
        return self.process

    def vacate(self) -> float:
        """Empties the slot after a death, and returns the seconds until it is to be filled again."""
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
        """Whether its process has been ready once; checks at intervals until it has."""
        if not self._ready and self.process is not None and time.monotonic() >= self._check_at:
            self._ready = self.service.ready()
            self._check_at = time.monotonic() + _CHECK_EVERY
        return self._ready
