"""How long to wait before a part that died is started again."""

FIRST = 1.0
LONGEST = 30.0
HEALTHY = 60.0


class Backoff:
    """1 s, doubled each time up to 30 s; a part that lived for 60 s begins anew. All in seconds."""

    def __init__(self) -> None:
        self._next = FIRST

    def after(self, lived: float) -> float:
        """The wait after a death, `lived` seconds after the start."""
        if lived >= HEALTHY:
            self._next = FIRST
        delay = self._next
        self._next = min(LONGEST, 2 * delay)
        return delay
