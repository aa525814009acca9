"""When a failed callback is tried again, and when it is not."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Final

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.resource_fields import NOT_GIVEN, NotGiven

MAX_RETRIES = 50
MAX_BACKOFF_SECONDS = 86_400.0
#: How long one attempt may take.
MAX_TIMEOUT_SECONDS = 300
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
        # A loop, because each attempt asks: a generator for `any` takes twice as long.
        for low, high in self._ranges:  # noqa: SIM110
            if low <= status <= high:
                return True
        return False


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

    def changed_by(self, said: "RetryDraft | RetryOverride") -> "RetryPolicy":
        """The policy with what `said` says of it."""
        said_of = {each.name: getattr(said, _ELSEWHERE.get(each.name, each.name)) for each in fields(self)}
        changes = {name: value for name, value in said_of.items() if value not in (None, NOT_GIVEN)}
        return replace(self, **changes) if changes else self

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

#: The fields of a policy that have another name where they do not stand in one.
_ELSEWHERE: Final = {"codes": "retry_codes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOverride:
    """What a destination says of the retries of all that name it; None leaves that to them."""

    max_retries: int | None = None
    backoff_seconds: float | None = None
    backoff_max_seconds: float | None = None
    retry_codes: Codes | None = None

    def overridden(self, policy: RetryPolicy) -> RetryPolicy:
        """The policy that holds for what has `policy` itself."""
        found = policy.changed_by(self)
        return replace(found, backoff_max_seconds=max(found.backoff_seconds, found.backoff_max_seconds))


# No slots: of the bases of a class one alone may have some.
@dataclass(frozen=True, kw_only=True)
class RetryDraft:
    """What a request gives of retries; None, which only that for a destination may give, takes it away."""

    max_retries: int | NotGiven | None = NOT_GIVEN
    backoff_seconds: float | NotGiven | None = NOT_GIVEN
    backoff_max_seconds: float | NotGiven | None = NOT_GIVEN
    retry_codes: Codes | NotGiven | None = NOT_GIVEN

    def new_retry(self, max_retries: int) -> RetryPolicy:
        """The policy of something new; `max_retries` is for a draft that names none. Of the two delays, the
        default of neither contradicts the one that is given. Raises InvalidField."""
        first, longest = DEFAULT_BACKOFF_SECONDS, DEFAULT_BACKOFF_MAX_SECONDS
        if isinstance(self.backoff_max_seconds, int | float):
            first = min(first, self.backoff_max_seconds)
        if isinstance(self.backoff_seconds, int | float):
            longest = max(longest, self.backoff_seconds)
        return self.edited_retry(
            RetryPolicy(max_retries=max_retries, backoff_seconds=first, backoff_max_seconds=longest)
        )

    def edited_retry(self, old: RetryPolicy) -> RetryPolicy:
        """`old` with what is given. Raises InvalidField."""
        policy = old.changed_by(self)
        if policy.backoff_max_seconds < policy.backoff_seconds:
            raise InvalidField("retry_backoff_max_seconds", "must not be less than retry_backoff_seconds")
        return policy
