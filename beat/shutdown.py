"""How beat ends: after the page at hand, and before the next one."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

#: A page takes a second or so. One that takes longer waits for a server that is away.
PATIENCE_SECONDS = 2.0


class GracefulShutdown:
    """Hears SIGTERM and SIGINT. A second one, or one that comes between two ticks, ends beat at once.

    Celery's own handler ends the tick wherever it is: claimed schedules wait out their leases then, and what
    was published and not yet marked is published again. It also cleans up inside the handler, where a lock
    that the interrupted code holds would never come free.
    """

    def __init__(self) -> None:
        self._asked = False
        self._working = False

    def asked(self) -> bool:
        """Whether no further page is to be begun."""
        return self._asked

    def listen(self) -> None:
        """To be called in the main thread, after Celery has set its own handlers."""
        signal.signal(signal.SIGTERM, self._hear)
        signal.signal(signal.SIGINT, self._hear)
        signal.signal(signal.SIGALRM, _lose_patience)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Around a tick. Raises SystemExit after it when beat was asked to end meanwhile."""
        self._working = True
        try:
            yield
        finally:
            self._working = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        if self._asked:
            raise SystemExit

    def _hear(self, *_: object) -> None:
        if self._asked or not self._working:
            raise SystemExit
        self._asked = True
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)


def _lose_patience(*_: object) -> None:
    raise SystemExit
