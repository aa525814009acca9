"""The signals that a supervisor waits for, as something that `select` can wait for too."""

import os
import signal
from types import FrameType, TracebackType
from typing import Any, Self

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """While it is entered: counts those that ask for an end, and wakes the reader of `fileno()`.

    SIGCHLD wakes it too, so that a death is seen at once.
    """

    def __init__(self) -> None:
        self.asked_to_end = 0
        self._before: dict[int, Any] = {}

    def fileno(self) -> int:
        return self._reader

    def clear(self) -> None:
        """Takes what has come off the pipe."""
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
        for number in _ENDING:
            # nohup ignores SIGHUP, and means it.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._count)
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        os.close(self._reader)
        os.close(self._writer)

    def _count(self, number: int, frame: FrameType | None) -> None:
        self.asked_to_end += 1
