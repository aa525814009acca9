"""The one log of `scheduler up`: every line carries the name of the service that wrote it."""

import os
import sys
from collections.abc import Sequence
from itertools import chain, cycle
from typing import BinaryIO

#: The name in front of the supervisor's own lines.
OWN_NAME = "up"
_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
_BOLD = 1


class Console:
    """Writes `name    | line`, the line itself unchanged; coloured on a terminal unless NO_COLOR is set."""

    def __init__(self, names: Sequence[str], stream: BinaryIO | None = None) -> None:
        self._stream = sys.stdout.buffer if stream is None else stream
        coloured = self._stream.isatty() and not os.environ.get("NO_COLOR")
        width = max(map(len, (OWN_NAME, *names)))
        self._prefixes: dict[str, bytes] = {}
        for name, colour in zip((OWN_NAME, *names), chain((_BOLD,), cycle(_COLOURS)), strict=False):
            padded = name.ljust(width)
            prefix = f"\x1b[{colour}m{padded} |\x1b[0m " if coloured else f"{padded} | "
            self._prefixes[name] = prefix.encode()
        #: Whether the reader has closed the pipe (`scheduler up | head`).
        self.lost = False

    def lines(self, name: str, lines: Sequence[bytes]) -> None:
        prefix = self._prefixes[name]
        self._write(b"".join(prefix + line + b"\n" for line in lines))

    def say(self, sentence: str) -> None:
        self.lines(OWN_NAME, [sentence.encode()])

    def block(self, text: str) -> None:
        """Writes text without prefixes, so that it can be copied."""
        self._write(f"\n{text}\n\n".encode())

    def _write(self, data: bytes) -> None:
        if self.lost:
            return
        try:
            self._stream.write(data)
            self._stream.flush()
        except BrokenPipeError:
            self.lost = True
            # What is still buffered would raise again when the interpreter flushes it at exit.
            if self._stream is sys.stdout.buffer:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
