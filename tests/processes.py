"""Programs run for a test: their output, their end, and whatever they may leave behind."""

import os
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

_MARK = "TEST_RUN_MARK"
#: How long a thread waits that pytest-timeout cannot interrupt, and a program without pytest: longer than
#: pytest-timeout leaves to nearly all tests. A lower limit would only fail on a machine that stands still.
PATIENCE_SECONDS = 600.0


def wait_until(condition: Callable[[], bool], what: str, *, pause: float = 0.02) -> None:
    """Returns as soon as `condition()` holds. A test that waits in vain is ended by pytest-timeout, whose
    failure then says `what` was waited for; a program without pytest fails after `PATIENCE_SECONDS`.

    `pause` are the seconds between two questions: more where asking takes time from what is waited for.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    try:
        while not condition():
            assert time.monotonic() < deadline, f"{PATIENCE_SECONDS:.0f} s have passed"
            time.sleep(pause)
    except BaseException as error:
        error.add_note(f"while waiting for {what}")
        raise


def freeze(pid: int) -> None:
    """Stops a process (SIGSTOP), and returns when all its threads stand still: until then it may answer."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: all(map(_stands_still, Path(f"/proc/{pid}/task").iterdir())), "it to stand still")


def _stands_still(thread: Path) -> bool:
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0] in "TZ"
    except OSError:  # it has ended since the threads were listed
        return True


class Program:
    """A command in a process group of its own, as a shell starts it; its output goes to a file.

    Everything it starts inherits a mark in its environment, by which it is found wherever it has gone.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        mark = secrets.token_hex(8)
        self._mark = f"{_MARK}={mark}".encode()
        self._output = folder / f"output-{mark}"
        with self._output.open("wb") as output:
            self._popen = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, **(environment or {}), _MARK: mark},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self._output.read_text(errors="replace")

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Until a line of the output matches; gives the match."""
        expression = re.compile(pattern, re.MULTILINE)

        def is_there() -> bool:
            assert expression.search(self.output) or self._popen.poll() is None, (
                f"ended before it wrote {pattern!r}:\n{self.output}"
            )
            return expression.search(self.output) is not None

        try:
            wait_until(is_there, repr(pattern), pause=0.05)
        except BaseException as error:
            error.add_note(self.output)
            raise
        match = expression.search(self.output)
        assert match is not None
        return match

    def signal(self, number: signal.Signals, *, to_group: bool = False) -> None:
        """`to_group` is what a terminal does at Ctrl-C."""
        if to_group:
            os.killpg(self._popen.pid, number)
        else:
            os.kill(self._popen.pid, number)

    def wait(self) -> int:
        """Its exit status, as soon as it has ended."""
        try:
            return self._popen.wait(PATIENCE_SECONDS)
        except BaseException as error:
            error.add_note(f"while waiting for the end of:\n{self.output}")
            raise

    def wait_for_nothing_left(self) -> None:
        """Until itself and all that came of it have ended."""
        # Each question reads the environment of every process on this machine.
        wait_until(lambda: self.processes() == [], "everything to end", pause=0.2)

    def processes(self) -> list[psutil.Process]:
        """Itself and all that came of it and lives, orphans too."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def kill(self) -> None:
        """Everything, at once: the last resort of a test that failed."""
        for process in self.processes():
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        self._popen.wait()

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.status() != psutil.STATUS_ZOMBIE and self._mark in (
                Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
            )
        except (OSError, psutil.NoSuchProcess):
            return False
