"""The first duty of a tick: schedules are filled with events, page by page."""

from collections.abc import Callable
from datetime import datetime

from scheduler_app.expansion import Expansion

#: After so many pages the tick ends, so that signals are served; the next one follows at once.
PAGES_A_TICK = 20


class Expander:
    def __init__(self, expansion: Expansion, between_pages: Callable[[], object]) -> None:
        """`between_pages`: dispatch, so that a large expansion holds up nothing that is due."""
        self._expansion = expansion
        self._between_pages = between_pages

    def run(self, now: Callable[[], datetime]) -> bool:
        """Expands what wants it; True when there is more than a tick should take. Raises a STORE_FAULT."""
        self._expansion.finish_ended(now())
        for _ in range(PAGES_A_TICK):
            if not self._expansion.expand_page(now()).full:
                return False
            self._between_pages()
        return True
