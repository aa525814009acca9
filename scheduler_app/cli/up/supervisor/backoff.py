"""How long the supervisor waits before it restarts a service that died."""

#: All in seconds.
FIRST = 1.0
LONGEST = 30.0
HEALTHY = 60.0


class Backoff:
    """1 s, doubled with each death up to 30 s; back to 1 s once a service has lived for 60 s."""

    def __init__(self) -> None:
        self._next = FIRST

    def after(self, lived: float) -> float:
        """Returns the seconds to wait after a death that came `lived` seconds after the start."""
        if lived >= HEALTHY:
            self._next = FIRST
        delay = self._next
        self._next = min(LONGEST, 2 * delay)
        return delay
