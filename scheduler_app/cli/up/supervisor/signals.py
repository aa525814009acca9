"""Turns signals into a file descriptor, so that `select` can wait for them beside the services' pipes."""

import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

_END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """While entered, counts the signals that ask for the end, and makes `fileno()` readable.

    SIGCHLD makes it readable too, so that a death is seen at once.
    """

    def __init__(self) -> None:
        self.asked_to_end = 0
        self._previous: dict[int, Callable[[int, FrameType | None], Any] | int | None] = {}

    def fileno(self) -> int:
        return self._reader

    def clear(self) -> None:
        """Empties the pipe."""
        try:
            while os.read(self._reader, 4096):
                continue
        except BlockingIOError:
            return

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in _END_SIGNALS:
            # Under nohup SIGHUP is ignored, and has to stay so.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._count)
        self._previous[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        os.close(self._reader)
        os.close(self._writer)

    def _count(self, number: int, frame: FrameType | None) -> None:
        self.asked_to_end += 1
