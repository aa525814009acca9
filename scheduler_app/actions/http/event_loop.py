"""Waits for libcurl's sockets and timers, and tells it which of them are ready."""

import select
import socket
import time
import warnings
from contextlib import suppress

import pycurl

from scheduler_app.clock import monotonic

#: libcurl's word for what it waits for on a socket, in the kernel's.
_WATCHED = {
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}
# One in a while, for all transfers: see `_perform`.
warnings.filterwarnings("ignore", message="socket_all is deprecated", category=DeprecationWarning)
_READABLE, _WRITABLE = ~select.EPOLLOUT, ~(select.EPOLLIN | select.EPOLLPRI)
#: Sockets that one look at the kernel brings; the next look brings the others.
MAX_READY = 1_024
#: With this many sockets ready at once, and this share of all transfers, one call looks at all of them.
BUSY = 4
BUSY_SHARE = 4


class EventLoop:
    """Drives a multi handle by `curl_multi_socket_action`: what it costs follows what is ready.

    `curl_multi_perform` looks at every transfer each time: with 200 requests that wait for an answer it took
    19 % of a core, with 2,000 it took 71 %; this takes 3 to 4 %.

    While most transfers are ready together, as in a burst to a receiver that answers at once, it is the other
    way round: each action lets go of the interpreter's lock and has to win it back from the worker's other
    threads. Then `curl_multi_perform` moves all transfers in one call, until it finds that none has ended;
    `curl_multi_socket_all` tells which sockets the rest waits for. (In one run of such
    bursts a worker took 7 to 29 % less CPU for a callback with it.)
    """

    def __init__(self, multi: pycurl.CurlMulti) -> None:
        self._multi = multi
        self._epoll = select.epoll()
        self._woken, self._wake = socket.socketpair()
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        self._waker = self._woken.fileno()
        self._epoll.register(self._waker, select.EPOLLIN)
        self._timer: float | None = None
        self._is_busy = False
        """No socket is watched yet: `run` begins with a look at all transfers."""
        self._watched: dict[int, int] = {}
        multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)

    def wake(self) -> None:
        """Ends `run` at once. Any thread may call it."""
        with suppress(OSError):  # it is full: the loop has been told already; or closed: it has ended
            self._wake.send(b"w")

    def run(self, timeout: float, transfers: int) -> int:
        """Serves sockets and timers for at most `timeout` seconds, until fewer than `transfers` are running
        or `wake` is called. Returns how many are running."""
        deadline = monotonic() + timeout
        running = self._perform(transfers) if self._is_busy else transfers
        while running >= transfers:
            now = monotonic()
            if self._timer is not None and self._timer <= now:
                self._timer = None
                _, running = self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
                continue  # it may have set the timer again
            until = deadline if self._timer is None or self._timer > deadline else self._timer
            found = self._ready(until - now)
            woken = self._forget_wakes() if any(fd == self._waker for fd, _ in found) else False
            if len(found) >= BUSY and len(found) * BUSY_SHARE >= transfers:
                self._is_busy = True
                running = self._perform(transfers)
            else:
                running = self._act(found, running)
            if woken or monotonic() >= deadline:
                break
        return running

    def close(self) -> None:
        """To be called after the multi handle was closed."""
        self._epoll.close()
        self._woken.close()
        self._wake.close()

    def _act(self, found: list[tuple[int, int]], running: int) -> int:
        """Moves the transfers whose sockets are ready; returns how many are running."""
        for fd, events in found:
            if fd == self._waker:
                continue
            # An error or a hang-up is both: libcurl finds out by reading or by writing.
            ready = pycurl.CSELECT_IN if events & _READABLE else 0
            if events & _WRITABLE:
                ready |= pycurl.CSELECT_OUT
            _, running = self._multi.socket_action(fd, ready)
        return running

    def _perform(self, transfers: int) -> int:
        """Moves all transfers; returns how many are running."""
        running: int
        _, running = self._multi.perform()
        if running >= transfers:
            self._is_busy = False
            # It does not tell `_watch` of sockets, and then they would not be waited for. (pycurl calls
            # `socket_all` deprecated, as it looks at all transfers: here that is what it is called for.)
            _, running = self._multi.socket_all()
        return running

    def _ready(self, seconds: float) -> list[tuple[int, int]]:
        """The sockets that become ready within that many seconds."""
        milliseconds = int(seconds * 1000)
        if milliseconds > 0:
            # epoll counts whole milliseconds and rounds up, and a callback would be as late.
            return self._epoll.poll((milliseconds - 0.5) / 1000, MAX_READY)
        if seconds > 0:
            time.sleep(seconds)
        return self._epoll.poll(0, MAX_READY)

    def _forget_wakes(self) -> bool:
        with suppress(BlockingIOError):
            while self._woken.recv(4096):
                continue
        return True

    # What libcurl calls. An exception here would be printed and lost, so none may leave.

    def _watch(self, what: int, fd: int, multi: object, data: object) -> None:
        wanted, watched = _WATCHED.get(what, 0), self._watched.get(fd, 0)
        if wanted == watched:
            return
        if not wanted:  # POLL_REMOVE, POLL_NONE
            del self._watched[fd]
            self._epoll.unregister(fd)
            return
        self._watched[fd] = wanted
        if watched:
            self._epoll.modify(fd, wanted)
        else:
            self._epoll.register(fd, wanted)

    def _set_timer(self, milliseconds: int) -> None:
        if milliseconds < 0:
            self._timer = None
        else:
            # Mostly 0, "at once", after a request was added: that needs no look at the clock.
            self._timer = monotonic() + milliseconds / 1000 if milliseconds else 0.0
