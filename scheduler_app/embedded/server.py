"""The base of the embedded servers: a folder, a port of 127.0.0.1, one process."""

import errno
import os
import random
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections import deque
from pathlib import Path
from typing import Self

from scheduler_app.embedded.parent_death import with_parent_death_signal

LOOPBACK = "127.0.0.1"

# Below the range from which systems assign ports to outgoing connections: such a connection must not occupy
# the port of a server that is being restarted.
RANGE = range(20_000, 30_000)
#: The ports that `free_port` returned last: their callers may not listen on them yet.
_given: deque[int] = deque(maxlen=64)


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether a server could listen on `host` and `port` now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As servers do: connections in TIME_WAIT do not occupy the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def free_port() -> int:
    """Returns a port of 127.0.0.1 that was free a moment ago (another process may still take it first), and
    another one each time. Raises OSError where all are taken."""
    for port in random.sample(RANGE, len(RANGE)):
        if port not in _given and is_free(port):
            _given.append(port)
            return port
    raise OSError(errno.EADDRINUSE, f"no port of {LOOPBACK} from {RANGE[0]} to {RANGE[-1]} is free")


def listens(port: int) -> bool:
    """Whether a process accepts connections on 127.0.0.1 and `port`."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


_PORTS_TO_TRY = 5
#: RabbitMQ starts in some seconds; on a machine that has much else to do it took more than a minute.
START_SECONDS = 300.0


class DidNotStart(Exception):
    """The server ended, or was not ready in time; the message holds the errors in its log."""


class Server(ABC):
    """A server on 127.0.0.1 that keeps its data in `directory`.

    With `port` None each start takes a free port; the data do not depend on it. With a `password` (URL-safe
    text) the server refuses everybody who does not give it; without one every user of this machine may use
    the server. Data written without a password can be served with one, and the other way round. A supervisor
    calls `prepare()`, runs `command()` itself and asks `ready()`; `start()` and `stop()` do all of that.
    """

    name: str

    def __init__(self, directory: Path, port: int | None = None, *, password: str | None = None) -> None:
        self.directory = directory
        self._password = password
        self._given_port = port
        self.port = free_port() if port is None else port
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Creates the folder, private to its owner, and the files that `command()` names."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.directory.chmod(0o700)

    @abstractmethod
    def command(self) -> list[str]:
        """The command line, logging to stdout. Raises `NoBinary`."""

    @abstractmethod
    def ready(self) -> bool:
        """Takes the next step towards readiness, and returns whether the server is ready, within seconds."""

    @abstractmethod
    def error_line(self, line: str) -> str | None:
        """Returns what to show for a line of the log that reports an error, None for any other line."""

    @property
    def log(self) -> Path:
        return self.directory / f"{self.name}.log"

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self, *, timeout: float = START_SECONDS) -> Self:
        """Starts it and waits until it is ready, at most `timeout` seconds. Raises `NoBinary`, `DidNotStart`.

        Must be called from the main thread (see `parent_death`).
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
        """Ends it in order, or by SIGKILL after `timeout` seconds. A second call does nothing."""
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
        """Ends it by SIGKILL, like a crash."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _works_here(self, directory: str) -> bool:
        """Whether `directory`, where the server that answered works, is this one's."""
        return Path(directory).resolve() == self.directory.resolve()

    def _spawn(self) -> None:
        if self._process is not None:
            raise RuntimeError(f"{self.name} is already running")
        self.prepare()
        with self.log.open("wb") as log:
            # In a session of its own: Ctrl-C reaches its owner only, which then ends it in order.
            self._process = subprocess.Popen(  # noqa: S603
                with_parent_death_signal(self.command()),
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
        errors = [error for line in lines if (error := self.error_line(line))]
        return "; ".join(errors or lines[-1:]) or "it was not ready in time"


def write_private(path: Path, text: str) -> None:
    """Replaces a file atomically by one that only its owner may read, whatever mode the old one had."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
