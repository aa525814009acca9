"""What the embedded servers have in common: a folder, a port, one process."""

import os
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

from scheduler_app.embedded.parent_death import tethered
from scheduler_app.embedded.ports import free_port

_PORTS_TO_TRY = 5


class DidNotStart(Exception):
    """The server ended, or was not ready in time; the message holds the errors in its log."""


class Server(ABC):
    """A server on 127.0.0.1 that keeps its data in `directory`.

    `port` None takes a free one at each start; the data does not mind. With a `password` (URL-safe text) the
    server refuses whoever does not know it; without one every user of this machine may use it. Data written
    without a password is served with one, and the other way round. A supervisor may call `prepare()`, run
    `command()` itself and ask `ready()`; `start()` and `stop()` do it all.
    """

    name: str

    def __init__(self, directory: Path, port: int | None = None, *, password: str | None = None) -> None:
        self.directory = directory
        self._password = password
        self._given_port = port
        self.port = free_port() if port is None else port
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Makes the folder, for its owner alone, and the files that `command()` names."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.directory.chmod(0o700)

    @abstractmethod
    def command(self) -> list[str]:
        """The command line, logging to stdout. Raises `NoBinary`."""

    @abstractmethod
    def ready(self) -> bool:
        """Takes the next step towards being usable, and tells whether it is. Answers within seconds."""

    @abstractmethod
    def complaint(self, line: str) -> str | None:
        """What a line of the log says to people if it tells of an error; None for the rest."""

    @property
    def log(self) -> Path:
        return self.directory / f"{self.name}.log"

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self, *, timeout: float = 60) -> Self:
        """Starts it and waits until it is ready, at most `timeout` seconds. Raises `NoBinary`, `DidNotStart`.

        To be called from the main thread (see `parent_death`).
        """
        tries = _PORTS_TO_TRY if self._given_port is None else 1
        deadline = time.monotonic() + timeout
        while True:
            tries -= 1
            self._spawn()
            if self._wait(deadline):
                return self
            self.stop()
            # Between finding a free port and listening on it, another process may have taken it.
            reason = self._reason()
            if tries == 0 or "address already in use" not in reason.lower():
                raise DidNotStart(f"{self.name} did not start: {reason}")
            self.port = free_port()

    def stop(self, *, timeout: float = 10) -> None:
        """Ends it in order, or by SIGKILL after `timeout` seconds. Stopping twice is nothing."""
        process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """kill -9, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _is_ours(self, directory: str) -> bool:
        """Whether a server that answers on our port works in our folder."""
        return Path(directory).resolve() == self.directory.resolve()

    def _spawn(self) -> None:
        if self._process is not None:
            raise RuntimeError(f"{self.name} is already running")
        self.prepare()
        with self.log.open("wb") as log:
            # In a session of its own: Ctrl-C reaches its owner, who then ends it in order.
            self._process = subprocess.Popen(  # noqa: S603
                tethered(self.command()),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _wait(self, deadline: float) -> bool:
        assert self._process is not None  # noqa: S101
        while self._process.poll() is None and time.monotonic() < deadline:
            if self.ready():
                return True
            time.sleep(0.02)
        return False

    def _reason(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        complaints = [complaint for line in lines if (complaint := self.complaint(line))]
        return "; ".join(complaints or lines[-1:]) or "it was not ready in time"


def write_private(path: Path, text: str) -> None:
    """Replaces a file in one step by one that its owner alone may read, whatever mode the old one had."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
