"""A thread that its process cannot do without."""

import os
import threading
from abc import abstractmethod

from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

EXIT_STATUS = 70


class EssentialThread(threading.Thread):
    """Its death is the process's: a worker that is alive but deaf would hold events for ever. The supervisor
    starts another, and leases bring back what this one held."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)

    @abstractmethod
    def work(self) -> None:
        """What the thread does; returning is an orderly end."""

    def run(self) -> None:
        try:
            self.work()
        except BaseException:
            log.critical("thread.died", message="An essential thread died; the process ends", exc_info=True)
            os._exit(EXIT_STATUS)
