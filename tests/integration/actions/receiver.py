"""A real receiver of callbacks on a free port of loopback, which answers what the test says."""

import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO


@dataclass
class Seen:
    """One request as it arrived; `connection` counts the connections from 1."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


# Answers one request on the open connection; True keeps the connection for another one.
Behaviour = Callable[[Seen, socket.socket], bool]


def says(status: str = "200 OK", *headers: str, body: bytes = b"ok") -> Behaviour:
    """Answers every request so, and keeps the connection."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"

    def behave(seen: Seen, connection: socket.socket) -> bool:
        connection.sendall(head if seen.method == "HEAD" else head + body)
        return True

    return behave


def writes(*pieces: bytes) -> Behaviour:
    """Writes these bytes, whatever they are, and closes."""

    def behave(seen: Seen, connection: socket.socket) -> bool:
        for piece in pieces:
            connection.sendall(piece)
        return False

    return behave


def streams(head: bytes, forever: bytes) -> Behaviour:
    """Writes `head`, then `forever` again and again until the other side closes."""

    def behave(seen: Seen, connection: socket.socket) -> bool:
        connection.sendall(head)
        while True:
            connection.sendall(forever)

    return behave


def hangs(seen: Seen, connection: socket.socket) -> bool:
    """Never answers: waits until the other side has given up."""
    connection.recv(1)
    return False


def first_answers_then(behave: Behaviour) -> Behaviour:
    """Answers the first request, for which the connection is opened, and does that with all that follow."""
    opened = threading.Event()

    def behave_then(seen: Seen, connection: socket.socket) -> bool:
        if opened.is_set():
            return behave(seen, connection)
        opened.set()
        return says()(seen, connection)

    return behave_then


@dataclass
class Receiver:
    """Serves each connection in a thread of its own; `seen` and `connections` may be read at any time."""

    behave: Behaviour
    host: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0

    def __post_init__(self) -> None:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        self._listener = socket.create_server((self.host, 0), family=family, backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        # A test that failed before `close` keeps no process from ending.
        self._threads = [threading.Thread(target=self._listen, daemon=True)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://localhost:{self.port}/hook"

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        for connection in tuple(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # its own thread was faster
        for thread in self._threads:
            thread.join()
            assert not thread.is_alive()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.add(connection)
            thread = threading.Thread(target=self._serve, args=(connection, self.connections), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        wrapped = connection
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls:
                wrapped = self.tls.wrap_socket(connection, server_side=True)  # takes the descriptor over
                self._open.add(wrapped)
            with wrapped.makefile("rb") as stream:
                while (seen := read_request(stream, number)) is not None:
                    self.seen.append(seen)
                    if not self.behave(seen, wrapped):
                        break
        except OSError:
            pass  # the sender gave up, which is what many tests want of it
        finally:
            self._open -= {connection, wrapped}
            wrapped.close()


def read_request(stream: BinaryIO, number: int) -> Seen | None:
    """The next request on a connection, or None where it was closed."""
    first = stream.readline().decode().split()
    if len(first) != 3:
        return None
    headers: dict[str, str] = {}
    while line := stream.readline().decode().rstrip("\r\n"):
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = stream.read(int(headers.get("content-length", 0)))
    return Seen(first[0], first[1], headers, body, number)
