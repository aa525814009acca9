"""A receiver that answers at once and notes when each callback came: a process of its own.

It reads only what it must of a request: the key and the run time in its headers. A POST to `/wait/MS` is
answered after so many ms, one to `/silent` never; the answer to `/drip` begins with its headers at once and
then has a byte a second. `GET /report` gives the notes as JSON and forgets them, `GET /held` the number of
connections that wait for a silent or a dripping answer. It listens on as many ports as its argument says
(one by default) and prints them: each is an origin.

It stands on epoll itself: over asyncio each callback takes 7 µs more of the cores that are
measured.
"""

import gc
import heapq
import itertools
import json
import select
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
END = b"\r\n\r\n"
KEY, RUN_TIME, LENGTH = b"webhook-id: ", b"X-Scheduler-Run-Time: ", b"Content-Length: "
PLAIN, WAIT, SILENT, DRIP = b"POST / ", b"POST /wait/", b"POST /silent ", b"POST /drip "
REPORT, HELD = b"GET /report ", b"GET /held "
#: Longer than any timeout at a byte a second.
DRIP_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
DRIP_SECONDS = 1.0
READ_BYTES = 64 * 1024


@dataclass(slots=True)
class Peer:
    socket: socket.socket
    rest: bytes = b""
    held: bool = False


class Sink:
    def __init__(self, listeners: Sequence[socket.socket]) -> None:
        self._listeners = {listener.fileno(): listener for listener in listeners}
        self._peers: dict[int, Peer] = {}
        self._seen: list[tuple[float, bytes, bytes]] = []
        self._waiting: list[tuple[float, int, Peer, bytes]] = []
        self._order = itertools.count()
        self._poll = select.epoll()
        for descriptor in self._listeners:
            self._poll.register(descriptor, select.EPOLLIN)

    def serve(self) -> None:
        while True:
            for descriptor, _ in self._poll.poll(self._pause()):
                if (peer := self._peers.get(descriptor)) is not None:
                    self._read(peer)
                else:
                    self._accept(self._listeners[descriptor])
            while self._waiting and self._waiting[0][0] <= time.monotonic():
                _, _, peer, data = heapq.heappop(self._waiting)
                self._write(peer, data)
                if peer.held:
                    self._later(DRIP_SECONDS, peer, data)

    def _pause(self) -> float:
        return max(0.0, self._waiting[0][0] - time.monotonic()) if self._waiting else -1

    def _later(self, seconds: float, peer: Peer, data: bytes) -> None:
        heapq.heappush(self._waiting, (time.monotonic() + seconds, next(self._order), peer, data))

    def _accept(self, listener: socket.socket) -> None:
        accepted, _ = listener.accept()
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peers[accepted.fileno()] = Peer(accepted)
        self._poll.register(accepted, select.EPOLLIN)

    def _read(self, peer: Peer) -> None:
        try:
            read = peer.socket.recv(READ_BYTES)
        except ConnectionError:  # a worker that was killed leaves answers unread
            read = b""
        at = time.time()
        if not read:
            del self._peers[peer.socket.fileno()]
            peer.socket.close()
            peer.held = False
            return
        data = peer.rest + read
        answers = b""
        while (end := data.find(END)) >= 0:
            head, follows = data[:end], end + 4
            if length := value(head, LENGTH):
                follows += int(length)
                if len(data) < follows:
                    break
            data = data[follows:]
            answers += self._answer(head, at, peer)
        peer.rest = data
        if answers:
            self._write(peer, answers)

    def _write(self, peer: Peer, answers: bytes) -> None:
        with suppress(OSError):  # nobody is there any more: the next read, or an earlier one, says so
            peer.socket.sendall(answers)

    def _answer(self, head: bytes, at: float, peer: Peer) -> bytes:
        """What is to be said at once."""
        if key := value(head, KEY):
            self._seen.append((at, key, value(head, RUN_TIME)))
        if head.startswith(PLAIN):
            return ANSWER
        if head.startswith(WAIT):
            self._later(int(head[len(WAIT) : head.index(b" ", len(WAIT))]) / 1000, peer, ANSWER)
            return b""
        if head.startswith(SILENT):
            peer.held = True
            return b""
        if head.startswith(DRIP):
            peer.held = True
            self._later(DRIP_SECONDS, peer, b".")
            return DRIP_HEAD
        if head.startswith(REPORT):
            return self._report()
        return _json(self._held()) if head.startswith(HELD) else ANSWER

    def _report(self) -> bytes:
        rows = [[at, key.decode(), run_time.decode()] for at, key, run_time in self._seen]
        self._seen.clear()
        return _json(rows)

    def _held(self) -> int:
        return sum(peer.held for peer in self._peers.values())


def _json(content: object) -> bytes:
    body = json.dumps(content).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def value(head: bytes, name: bytes) -> bytes:
    start = head.find(name)
    if start < 0:
        return b""
    end = head.find(b"\r\n", start)
    return head[start + len(name) : end if end >= 0 else None]


def main(ports: int) -> None:
    gc.disable()
    with ExitStack() as stack:
        listeners = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=4096)) for _ in range(ports)
        ]
        print(*(listener.getsockname()[1] for listener in listeners), flush=True)
        Sink(listeners).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
