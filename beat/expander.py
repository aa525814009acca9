"""The first duty of a tick: schedules are filled with events, page by page."""

from collections.abc import Callable
from datetime import datetime

from scheduler_app.expansion import Expansion

#: After so many pages the other duties have their turn; the next tick follows at once.
PAGES_A_TICK = 20


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
        """Expands what wants it; True when there is more than a tick should take. Raises a STORE_FAULT."""
        self._expansion.finish_ended(now())
        for _ in range(PAGES_A_TICK):
            if self._ended() or not self._expansion.expand_page(now()).full:
                return False
            self._between_pages()
        return True
