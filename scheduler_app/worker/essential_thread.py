"""A thread whose death ends the process."""

import os
import threading
from abc import abstractmethod

from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

EXIT_STATUS = 70


class EssentialThread(threading.Thread):
    """An unhandled exception in `work` ends the process: without this thread the worker would go on claiming
    events and deliver none. Its supervisor starts another worker, and recovery requeues the events when their
    leases end."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)

    @abstractmethod
    def work(self) -> None:
        """Does the work of the thread; returning ends the thread, and not the process."""

    def run(self) -> None:
        try:
            self.work()
        except BaseException:
            log.critical("thread.died", message="An essential thread died; the process ends", exc_info=True)
            os._exit(EXIT_STATUS)
