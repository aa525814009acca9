"""Clients that are slow in every way there is, over plain sockets."""

import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

HEAD = b"POST /api/schedules HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = HEAD + b"Content-Length: 500\r\n\r\n"


def half_header(port: int) -> socket.socket:
    return _sent(port, HEAD)


def half_body(port: int) -> socket.socket:
    return _sent(port, BODY + b'{"name": "half')


def byte_by_byte(port: int) -> socket.socket:
    """The rest comes from `crowd`, a byte a second."""
    return _sent(port, b"POST /api/sch")


def slow_reader(path: str) -> Callable[[int], socket.socket]:
    """Asks for `path` and reads nothing of the answer."""

    def connect(port: int) -> socket.socket:
        sock = socket.socket()
        # Small, so that the answer stays with the server.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(("127.0.0.1", port))
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return sock

    return connect


@contextmanager
def crowd(connect: Callable[[int], socket.socket], port: int, count: int) -> Iterator[list[socket.socket]]:
    """So many at once. Each that the server closes comes again; those of `byte_by_byte` send one a second."""
    sockets = [_connected(connect, port) for _ in range(count)]
    over = threading.Event()

    def keep_up() -> None:
        while not over.wait(1.0):
            for number, sock in enumerate(sockets):
                try:
                    if connect is byte_by_byte:
                        sock.send(b"x")
                    if connect in (half_header, half_body, byte_by_byte) and _is_closed(sock):
                        raise ConnectionError
                except OSError:
                    sock.close()
                    with suppress(OSError):
                        sockets[number] = connect(port)

    thread = threading.Thread(target=keep_up)
    thread.start()
    try:
        yield sockets
    finally:
        over.set()
        thread.join()
        for sock in sockets:
            sock.close()


def _connected(connect: Callable[[int], socket.socket], port: int) -> socket.socket:
    """Again where the server has closed it for a newer one: this process may have stood still between
    connecting and sending."""
    while True:
        with suppress(ConnectionError):
            return connect(port)


def answer_of(sock: socket.socket) -> bytes:
    """Everything that the server says until it closes."""
    said = b""
    with suppress(ConnectionResetError):
        while data := sock.recv(65536):
            said += data
    return said


def _sent(port: int, data: bytes) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.sendall(data)
    return sock


def _is_closed(sock: socket.socket) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0)) and not sock.recv(65536)
