"""How far a long command is: a bar on the terminal, once it takes longer than a second."""

import sys
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Self, TextIO, TypeVar

from scheduler_app.clock import monotonic

Row = TypeVar("Row")

AFTER_SECONDS = 1.0
_WIDTH = 30


class Progress:
    """Writes `label [####    ] 1,200 of 5,000` again and again to one line of a terminal, and clears it at
    the end; to anything but a terminal it writes nothing."""

    def __init__(
        self,
        label: str,
        total: int | None = None,
        *,
        stream: TextIO | None = None,
        seconds: Callable[[], float] = monotonic,
    ) -> None:
        """`total` is None if it is not known."""
        self._label, self._total = label, total
        self._stream = stream or sys.stderr
        self._seconds = seconds
        self._from = seconds()
        self._written = 0

    def __call__(self, done: int) -> None:
        """Says that this many more are done."""
        if not self._stream.isatty() or self._seconds() - self._from < AFTER_SECONDS:
            return
        line = f"{self._label} {self._bar(done)}{done:,}" + (f" of {self._total:,}" if self._total else "")
        self._write(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._written:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()

    def _bar(self, done: int) -> str:
        if not self._total:
            return ""
        full = min(_WIDTH, _WIDTH * done // self._total)
        return f"[{'#' * full}{' ' * (_WIDTH - full)}] "

    def _write(self, line: str) -> None:
        self._stream.write(f"\r{line.ljust(self._written)}")
        self._stream.flush()
        self._written = len(line)


def counted(rows: Iterable[Row], label: str) -> Iterator[Row]:
    """Passes rows on that come page by page, and says how many there are so far."""
    with Progress(label) as progress:
        for number, row in enumerate(rows, 1):
            progress(number)
            yield row
