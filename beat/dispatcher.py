"""The second duty of a tick: what is due within the horizon is sent to the workers, page by page."""

from collections.abc import Callable
from datetime import datetime

from scheduler_app.clock import monotonic
from scheduler_app.usecases.dispatch import Dispatch

#: No page is begun after that: a backlog must not keep beat from expanding what falls due next.
TURN_SECONDS = 1.0


class Dispatcher:
    def __init__(self, dispatch: Dispatch, ended: Callable[[], bool]) -> None:
        """`ended`: whether no further page is to be begun."""
        self._dispatch = dispatch
        self._ended = ended

    def run(self, now: Callable[[], datetime]) -> bool:
        """Dispatches what is due; True when there is more than fits into a turn.

        Raises a STORE_FAULT, or what the broker raises when it cannot be reached.
        """
        began = monotonic()
        while not self._ended():
            if not self._dispatch.dispatch_page(now()).full:
                return False
            if monotonic() - began >= TURN_SECONDS:
                return True
        return False
