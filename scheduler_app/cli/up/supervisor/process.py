"""A running part: its process, in a session of its own, and the pipe it writes to."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import BinaryIO

from scheduler_app.cli.up.supervisor.line_buffer import Lines
from scheduler_app.cli.up.supervisor.service import Part
from scheduler_app.embedded import tethered

_LARGE_LOG = 10_000_000


class Process:
    """Started at once. To be made in the main thread (see `embedded.parent_death`)."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.started = time.monotonic()
        self._lines = Lines()
        self._log = None if part.log is None else _open_log(part.log)
        # A session of its own: Ctrl-C on the terminal reaches the supervisor alone, which ends the
        # parts in order, and a signal to the group reaches what the part has forked.
        self._popen = subprocess.Popen(  # noqa: S603
            tethered(part.command),
            env=dict(part.environment),
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
        """The lines to show that have come, and whether the pipe was closed at the other end."""
        try:
            data = os.read(self._pipe, 256 * 1024)
        except BlockingIOError:
            return [], False
        return self._shown(self._lines.feed(data)), not data

    def rest(self) -> list[bytes]:
        """The last lines to show of a process that has ended."""
        lines = []
        while True:
            more, closed = self.read()
            lines += more
            # Something that left the group may hold the pipe open: then there is only nothing for now.
            if closed or not more:
                return lines + self._shown(self._lines.rest())

    def terminate(self) -> None:
        """SIGTERM to the part itself, which ends what it has forked in its own order."""
        self._popen.terminate()

    def kill(self) -> None:
        """SIGKILL to all that is left of its group, also when the part itself is gone."""
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
        if self.part.complaint is None:
            return lines
        complaints = (self.part.complaint(line.decode(errors="replace")) for line in lines)
        return [complaint.encode() for complaint in complaints if complaint]


def _open_log(path: Path) -> BinaryIO:
    if path.exists() and path.stat().st_size > _LARGE_LOG:
        path.replace(path.with_suffix(".log.1"))
    return path.open("ab", buffering=0)
