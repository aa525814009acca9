"""How many requests a second a tenant, or a key, may make of the API."""

import math
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, NamedTuple

LEAST_REQUEST_RATE: Final = 0.01
MAX_REQUEST_RATE: Final = 10_000.0
#: What may come at once after a quiet time, in seconds of the rate.
BURST_SECONDS: Final = 5


@dataclass(frozen=True, slots=True)
class RequestRate:
    """A limit that flow control counts as it counts that of a destination."""

    kind: Literal["tenant", "key"]
    of: str
    """The tenant, or the id of the key."""
    per_second: float

    concurrency: ClassVar[None] = None
    breaker: ClassVar[None] = None

    @property
    def id(self) -> str:
        """No destination's name has a slash."""
        return f"requests/{self.kind}/{self.of}"

    @property
    def rate_per_second(self) -> float:
        return self.per_second

    @property
    def burst(self) -> int:
        return max(1, math.ceil(self.per_second * BURST_SECONDS))

    @property
    def window_seconds(self) -> int:
        """In which as many as the burst are made at the rate."""
        return math.ceil(self.burst / self.per_second)

    @property
    def whose(self) -> str:
        return f"the tenant {self.of}" if self.kind == "tenant" else "this key"


class RateState(NamedTuple):
    """A limit after a request was counted."""

    rate: RequestRate
    wait: float
    """How long this request has to wait, in seconds; 0: it may be made now."""
    remaining: int
    """How many more may be made at once."""

    @property
    def reset_seconds(self) -> int:
        """Until as many as the burst may be made at once, if none comes meanwhile."""
        return math.ceil((self.rate.burst - self.remaining) / self.rate.per_second)
