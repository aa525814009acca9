"""A service: its description, its running process in a session of its own, and the pipe that it writes to,
cut into lines.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from scheduler_app.embedded import with_parent_death_signal


def _always() -> bool:
    return True


@dataclass(frozen=True)
class Service:
    """`tier` gives the order: a tier starts when all services below it are ready, and ends before them."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    tier: int
    #: Seconds between SIGTERM and SIGKILL.
    grace: float
    #: Called a few times a second until it returns True; each call takes about a second at most.
    ready: Callable[[], bool] = _always
    #: The file that gets every line, for a service of which the console shows only errors.
    #: `error_line` returns the text to show for a line, None for a line that reports no error.
    log: Path | None = None
    error_line: Callable[[str], str | None] | None = None


#: Bytes. A longer line is shown in pieces, so that no program can fill the supervisor's memory.
MAX_LINE_BYTES = 64 * 1024


class LineBuffer:
    """Keeps an unfinished line until the next read completes it."""

    def __init__(self) -> None:
        self._unfinished = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the lines that `data` completes, without their line ends."""
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        if len(self._unfinished) > MAX_LINE_BYTES:
            lines.append(self._unfinished)
            self._unfinished = b""
        return [line.removesuffix(b"\r") for line in lines]

    def rest(self) -> list[bytes]:
        """Returns the text after the last line end, if any, and forgets it."""
        unfinished, self._unfinished = self._unfinished, b""
        return [unfinished] if unfinished else []


#: Bytes. A log that is larger at a start is kept as `.log.1`, and a new one begun.
_LARGE_LOG = 10_000_000


class Process:
    """Starts the process at once. Must be created in the main thread (see `embedded.parent_death`)."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.started = time.monotonic()
        self._lines = LineBuffer()
        self._log = None if service.log is None else _open_log(service.log)
        # In a session of its own: Ctrl-C on the terminal reaches the supervisor alone, which ends the
        # services in order, and a signal to the process group reaches the service's own children.
        self._popen = subprocess.Popen(  # noqa: S603
            with_parent_death_signal(service.command),
            env=dict(service.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._popen.stdout is not None  # noqa: S101
        self._pipe = self._popen.stdout.fileno()
        os.set_blocking(self._pipe, False)

    def fileno(self) -> int:
        return self._pipe

    @property
    def pid(self) -> int:
        return self._popen.pid

    def ended(self) -> bool:
        return self._popen.poll() is not None

    def how_it_ended(self) -> str:
        status = self._popen.returncode
        return f"exit status {status}" if status >= 0 else f"killed by {signal.Signals(-status).name}"

    def read(self) -> tuple[list[bytes], bool]:
        """Returns the new lines to show, and whether the service has closed its end of the pipe."""
        try:
            data = os.read(self._pipe, 256 * 1024)
        except BlockingIOError:
            return [], False
        return self._shown(self._lines.feed(data)), not data

    def rest(self) -> list[bytes]:
        """Returns the last lines to show of a process that has ended."""
        lines = []
        while True:
            more, closed = self.read()
            lines += more
            # A child that left the process group may hold the pipe open: an empty pipe is the end, too.
            if closed or not more:
                return lines + self._shown(self._lines.rest())

    def terminate(self) -> None:
        """Sends SIGTERM to the service itself, which ends its own children in its own order."""
        self._popen.terminate()

    def kill(self) -> None:
        """Sends SIGKILL to the rest of its process group, also when the service itself has ended."""
        try:
            os.killpg(self._popen.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def close(self) -> None:
        assert self._popen.stdout is not None  # noqa: S101
        self._popen.stdout.close()
        if self._log is not None:
            self._log.close()

    def _shown(self, lines: list[bytes]) -> list[bytes]:
        if self._log is not None:
            self._log.write(b"".join(line + b"\n" for line in lines))
        if self.service.error_line is None:
            return lines
        errors = (self.service.error_line(line.decode(errors="replace")) for line in lines)
        return [error.encode() for error in errors if error]


def _open_log(path: Path) -> BinaryIO:
    if path.exists() and path.stat().st_size > _LARGE_LOG:
        path.replace(path.with_suffix(".log.1"))
    return path.open("ab", buffering=0)
