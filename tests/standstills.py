"""How long this process stood still, for limits in seconds that a standing machine cannot keep."""

import threading
import time
from types import TracebackType
from typing import Self

PAUSE_SECONDS = 0.01
#: A thread that others keep waiting for less is what the product has to cope with.
LEAST_SECONDS = 0.2


class Standstills:
    """Measures it while it is entered; the thread that does so is late whenever others are."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """All of them together that lasted longer than `LEAST_SECONDS`."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._measure)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _measure(self) -> None:
        before = time.monotonic()
        while not self._over.wait(PAUSE_SECONDS):
            now = time.monotonic()
            late = now - before - PAUSE_SECONDS
            if late > LEAST_SECONDS:
                self.seconds += late
            before = now
