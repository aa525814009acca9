"""The API's worker in this process, over real sockets, with an application of the tests."""

import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

from gunicorn.config import Config
from gunicorn.glogging import Logger

from scheduler_app.webserver.worker import Channel, WaitressWorker
from tests.processes import PATIENCE_SECONDS

PIECES = [bytes([number % 256]) * (number * 37 % 5000) for number in range(2000)]


class Served:
    """A worker whose loop runs only while a test waits for something, and whose application echoes bodies."""

    def __init__(self, **settings: object) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.gate = threading.Event()
        self._clients: list[socket.socket] = []
        cfg = Config()
        for name, value in {"threads": 1, "keepalive": 30, **settings}.items():
            cfg.set(name, value)
        sockets = [SimpleNamespace(sock=self._listener)]
        self.worker = WaitressWorker(0, os.getpid(), sockets, None, 30, cfg, Logger(cfg))
        self.worker.wsgi = self._answer
        self.worker.begin()

    def connect(self, data: bytes = b"") -> tuple[Channel, socket.socket]:
        """A new connection, of which the worker has read all that was sent."""
        known = set(self.worker.channels.values())
        client = socket.create_connection(("127.0.0.1", self.port))
        self._clients.append(client)
        self.wait_until(lambda: bool(set(self.worker.channels.values()) - known))
        [channel] = set(self.worker.channels.values()) - known
        self.send(client, data)
        return channel, client

    def send(self, client: socket.socket, data: bytes) -> None:
        """Sends, and has the worker read it."""
        while data:
            data = data[client.send(data[:10_000]) :]
            self.read()

    def read(self) -> None:
        """Lets the worker do what it can do at once, without its look at deadlines."""
        for _ in range(5):
            self.worker.poll(0.001)

    def wait_until(self, fulfilled: Callable[[], bool]) -> None:
        """Without a limit of its own: on a busy machine a thread may stand still while the loop turns."""
        while not fulfilled():
            self.worker.poll(0.01)

    def answer_to(self, client: socket.socket) -> bytes:
        """All that the client gets until the worker closes."""
        said = b""
        client.setblocking(False)
        while True:
            self.worker.poll(0.01)
            with suppress(BlockingIOError):
                try:
                    data = client.recv(65536)
                except ConnectionResetError:
                    data = b""
                if not data:
                    return said
                said += data

    def close(self) -> None:
        self.gate.set()
        for each in self.worker.channels.copy().values():
            each.handle_close()
        self.worker.threads.stop()
        self.wait_until(lambda: not self.worker.threads.threads)
        for each in [*self.worker.map.values(), *self._clients, self._listener]:
            each.close()

    def _answer(self, environ: dict[str, Any], start: Callable[..., object]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/wait":
            self.gate.wait()
        if path == "/nothing":
            start("204 No Content", [])
            return []
        if path == "/pieces":
            start("200 OK", [("Content-Type", "text/plain")])
            return iter(PIECES)
        if path == "/short":  # less than it says
            start("200 OK", [("Content-Length", "9")])
            return [b"abc"]
        if path == "/fails":
            raise ValueError("of the test")
        body = b"x" * 20_000_000 if path == "/large" else b"[" + environ["wsgi.input"].read() + b"]"
        start("200 OK", [("Content-Length", str(len(body)))])
        return [body]


@contextmanager
def served(**settings: object) -> Iterator[Served]:
    made = Served(**settings)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def running() -> Iterator[int]:
    """The port of one whose loop runs in a thread, and which finds no client slow: a test may stand still."""
    with served(keepalive=int(PATIENCE_SECONDS)) as made:
        made.worker.slow_seconds = PATIENCE_SECONDS
        over = threading.Event()

        def run() -> None:
            while not over.is_set():
                made.worker.turn(0.05)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield made.port
        finally:
            over.set()
            thread.join()
