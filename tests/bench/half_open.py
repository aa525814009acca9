"""Connections to an HTTP server that stop in the middle, and are opened again when it ends them."""

import select
import socket
import threading
from urllib.parse import urlsplit

#: How often those that the server has ended are replaced.
PAUSE_SECONDS = 0.5
_HOST = b"Host: 127.0.0.1\r\n"
#: Half a header; a body that does not come; answers that nobody reads, more than the buffers between hold.
KINDS = (
    b"POST /api/schedules HTTP/1.1\r\n" + _HOST + b"Content-Ty",
    b"POST /api/schedules HTTP/1.1\r\n"
    + _HOST
    + b'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"name": ',
    (b"GET /docs/openapi.yml HTTP/1.1\r\n" + _HOST + b"\r\n") * 5,
)
#: Small, so that answers stay with the server.
RECEIVE_BUFFER_BYTES = 4096


class HalfOpenConnections:
    """Holds so many of them while it is entered, a third of each kind."""

    def __init__(self, url: str, count: int) -> None:
        self._address = (str(urlsplit(url).hostname), urlsplit(url).port or 80)
        self._wanted = [KINDS[number % len(KINDS)] for number in range(count)]
        self._open: dict[int, tuple[socket.socket, bytes]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._hold)
        self.opened = 0

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *details: object) -> None:
        self._ended.set()
        self._thread.join()

    def _hold(self) -> None:
        with select.epoll() as poll:
            try:
                while not self._ended.is_set():
                    for descriptor, _ in poll.poll(0):
                        connection, kind = self._open.pop(descriptor)
                        connection.close()
                        self._wanted.append(kind)
                    self._wanted = [kind for kind in self._wanted if not self._connect(poll, kind)]
                    self._ended.wait(PAUSE_SECONDS)
            finally:
                for connection, _ in self._open.values():
                    connection.close()

    def _connect(self, poll: select.epoll, kind: bytes) -> bool:
        """Whether it worked; a server whose backlog is full is asked again."""
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        connection.settimeout(PAUSE_SECONDS)
        try:
            connection.connect(self._address)
            connection.sendall(kind)
        except OSError:
            connection.close()
            return False
        self.opened += 1
        self._open[connection.fileno()] = connection, kind
        # Not what can be read, for that is left where it is: only that the other side has ended it.
        poll.register(connection, select.EPOLLRDHUP)
        return True
