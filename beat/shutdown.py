"""How beat stops at SIGTERM or SIGINT: after the current page, and before the next one."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

#: A page takes about a second. A page that takes longer waits for a server that does not answer.
GRACE_SECONDS = 2.0


class GracefulShutdown:
    """Handles SIGTERM and SIGINT. A second signal, or one between two ticks, ends beat at once.

    Celery's own handler interrupts a tick anywhere: claimed schedules would then wait until their leases end,
    and events that were published but not yet marked would be published again. It also cleans up inside the
    signal handler, where it could wait forever for a lock that the interrupted code holds.
    """

    def __init__(self) -> None:
        self._requested = False
        self._in_tick = False

    def requested(self) -> bool:
        """Whether no further page is to be begun."""
        return self._requested

    def install(self) -> None:
        """Sets the handlers. Must be called in the main thread, after Celery has set its own."""
        signal.signal(signal.SIGTERM, self._handle)
        signal.signal(signal.SIGINT, self._handle)
        signal.signal(signal.SIGALRM, _exit)

    @contextmanager
    def around_tick(self) -> Iterator[None]:
        """Encloses a tick. Raises SystemExit at its end when the shutdown was requested meanwhile."""
        self._in_tick = True
        try:
            yield
        finally:
            self._in_tick = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        if self._requested:
            raise SystemExit

    def _handle(self, *_: object) -> None:
        if self._requested or not self._in_tick:
            raise SystemExit
        self._requested = True
        signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)


def _exit(*_: object) -> None:
    raise SystemExit
