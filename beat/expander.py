"""The first duty of a tick: schedules are filled with events, page by page."""

from collections.abc import Callable
from datetime import datetime

from scheduler_app.clock import monotonic
from scheduler_app.usecases.expansion import Expansion

#: No page is begun after that: the other duties have their turn, and the next tick follows at once.
TURN_SECONDS = 3.0


class Expander:
    def __init__(
        self, expansion: Expansion, between_pages: Callable[[], object], ended: Callable[[], bool]
    ) -> None:
        """`between_pages`: dispatch, so that a large expansion holds up nothing that is due.
        `ended`: whether no further page is to be begun."""
        self._expansion = expansion
        self._between_pages = between_pages
        self._ended = ended

    def run(self, now: Callable[[], datetime]) -> bool:
        """Expands what wants it; True when there is more than fits into a turn. Raises a STORE_FAULT."""
        began = monotonic()
        self._expansion.finish_ended(now())
        while not self._ended():
            if not self._expansion.expand_page(now()).full:
                return False
            self._between_pages()
            if monotonic() - began >= TURN_SECONDS:
                return True
        return False
