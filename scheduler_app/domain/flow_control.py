"""What workers ask of flow control, and what it answers. Durations are seconds."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from scheduler_app.domain.destination import Breaker

#: What a slot is held for beyond the request's timeout, should its worker die.
SLOT_GRACE_SECONDS = 15.0


class ReceiverAnswer(StrEnum):
    """What the end of a request says of its receiver."""

    WELL = "well"
    """It answered, and not that it is overloaded or broken."""
    FAILED = "failed"
    NOTHING = "nothing"
    """No request was made, or none that reached it."""


class FinishedRequest(NamedTuple):
    """A request that has ended."""

    event_id: str
    answer: ReceiverAnswer
    status_code: int | None = None
    took: float | None = None
    slow_down: bool = False
    """The receiver asked for fewer requests (429, 503)."""
    retry_after: float | None = None
    """For how long it asked not to be called."""


class Limited(Protocol):
    """What has limits: a destination, or who makes requests."""

    @property
    def id(self) -> str: ...
    @property
    def rate_per_second(self) -> float | None: ...
    @property
    def burst(self) -> int: ...
    @property
    def concurrency(self) -> int | None: ...
    @property
    def breaker(self) -> Breaker | None: ...


class FlowRequest(NamedTuple):
    """What a worker wants of one destination, or a process of the API for who calls it."""

    destination: Limited
    wanted: Sequence[str] = ()
    """Events that may start now, the first one first."""
    held: Sequence[str] = ()
    """Events of this worker that are in flight: their slots are renewed."""
    ended: Sequence[FinishedRequest] = ()
    reserve: int = 0
    """How many places in the line to take; below 0, how many unused ones to give back."""
    slot_seconds: float = SLOT_GRACE_SECONDS
    has_begun: bool = False
    """What is wanted has come already: nothing of a burst is kept back for what is under way."""


class WaitReason(StrEnum):
    """What an event waits for."""

    RATE = "its rate"
    CONCURRENCY = "a request in flight to end"
    BREAKER = "its breaker to close"
    ASKED = "the time that its receiver asked for"
    RESTART = "its limits to be counted again"
    PAUSED = "it to be resumed"
    UNKNOWN = "its limits: Redis does not answer"


class FlowGrant(NamedTuple):
    """The answer to a `FlowRequest`."""

    granted: int
    """How many of `wanted` may start now."""
    wait: float
    """After how long the others may ask again."""
    why: WaitReason | None
    """What they wait for."""
    first: float
    """When the first of the places that were taken is, from now."""
    step: float
    """How far apart they are."""
    is_open: bool
    """Whether the breaker is open, or tries whether it can close."""
    tokens: float | None = None
    """How many more may start at this instant by the rate; None without a rate."""


class PastAnswer(NamedTuple):
    """How a request ended."""

    seconds_ago: float
    status_code: int | None
    answer: ReceiverAnswer


@dataclass(frozen=True, slots=True)
class FlowState:
    """A destination's flow at a moment, for people."""

    breaker: str
    """`closed`, `open` or `half-open`."""
    failures: int
    """In a row."""
    in_flight: int
    tokens: float | None
    """How many requests may start at this instant by the rate; None without a rate."""
    open_for: float
    """How long until the next probe of an open breaker; 0 where it is closed."""
    asked_to_wait: float
    """How long the receiver asked not to be called; 0 where it did not."""
    line: float
    """How long the line of events that wait is, in time."""
    answers: tuple["PastAnswer", ...]
    """The last ones, newest first."""


class Limiter(Protocol):
    """Counts for all workers together. Its methods raise `unavailable`."""

    unavailable: tuple[type[Exception], ...]

    def decide(self, asks: Sequence[FlowRequest]) -> list[FlowGrant]:
        """Answers every ask, in one call for all of them."""
        ...

    def look(self, destination: Limited) -> FlowState:
        """Returns how a destination is, and changes nothing."""
        ...

    def close(self) -> None: ...
