"""The second duty of a tick: what is due within the horizon is sent to the workers, page by page."""

from collections.abc import Callable
from datetime import datetime

from scheduler_app.dispatch import Dispatch

PAGES_A_TICK = 50


class Dispatcher:
    def __init__(self, dispatch: Dispatch, ended: Callable[[], bool]) -> None:
        """`ended`: whether no further page is to be begun."""
        self._dispatch = dispatch
        self._ended = ended

    def run(self, now: Callable[[], datetime]) -> bool:
        """Dispatches what is due; True when there is more than a tick should take.

        Raises a STORE_FAULT, or what the broker raises when it cannot be reached.
        """
        return all(
            not self._ended() and self._dispatch.dispatch_page(now()).full for _ in range(PAGES_A_TICK)
        )
