"""When a failed callback is tried again, and when it is not."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

MAX_RETRIES = 50
MAX_BACKOFF_SECONDS = 86_400.0
#: Some two and a half hours in all: a receiver may be deployed, restarted and repaired meanwhile.
DEFAULT_MAX_RETRIES = 10
DEFAULT_BACKOFF_SECONDS = 10.0
DEFAULT_BACKOFF_MAX_SECONDS = 3_600.0
#: A receiver may ask for patience, but not for ever.
MAX_RETRY_AFTER_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Codes:
    """A set of HTTP statuses, as written: `("2xx", 304, "500-504")`."""

    written: tuple[int | str, ...]
    _ranges: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ranges", tuple(_range(item) for item in self.written))

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The lowest and the highest status of each entry."""
        return self._ranges

    def __contains__(self, status: int) -> bool:
        return any(low <= status <= high for low, high in self._ranges)


#: Of each schedule that is read or made; few are not among a handful.
@lru_cache(maxsize=1024)
def _range(item: int | str) -> tuple[int, int]:
    text = str(item).strip().lower()
    first, dash, last = text.partition("-")
    if len(text) == 3 and text.endswith("xx") and text[0] in "12345":
        low = int(text[0]) * 100
        return low, low + 99
    if first.isascii() and first.isdigit() and (not dash or (last.isascii() and last.isdigit())):
        low, high = int(first), int(last if dash else first)
        if 100 <= low <= high <= 599:
            return low, high
    raise ValueError(f'{item!r} is no HTTP status: write 503, "5xx" or "500-504"')


SUCCESS_CODES = Codes(("2xx",))
RETRY_CODES = Codes((408, 425, 429, "5xx"))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how fast a failed callback is tried again. Delays are seconds."""

    max_retries: int = DEFAULT_MAX_RETRIES
    backoff_seconds: float = DEFAULT_BACKOFF_SECONDS
    backoff_max_seconds: float = DEFAULT_BACKOFF_MAX_SECONDS
    codes: Codes = RETRY_CODES

    def ceiling(self, attempt: int) -> float:
        """The longest delay after attempt number `attempt` (from 1): exponential, capped."""
        return min(self.backoff_seconds * 2.0 ** min(attempt - 1, 64), self.backoff_max_seconds)

    def delay(
        self,
        attempt: int,
        *,
        retry_after: float | None = None,
        draw: Callable[[], float] = random.random,
    ) -> float:
        """The delay after attempt number `attempt`, drawn from the upper half of its range.

        The draw spreads the retries of events that failed together; the upper half keeps delays growing.
        A receiver's `Retry-After` is honoured when it asks for more.
        """
        ceiling = self.ceiling(attempt)
        delay = ceiling / 2 + ceiling / 2 * draw()
        return max(delay, min(retry_after, MAX_RETRY_AFTER_SECONDS)) if retry_after is not None else delay

    def spent(self, attempt: int) -> bool:
        """Whether attempt number `attempt` was the last one."""
        return attempt > self.max_retries


DEFAULT_RETRY = RetryPolicy()
