"""The seam between delivery and the kinds of actions: a worker starts attempts, and later gets verdicts."""

from collections.abc import Sequence
from datetime import datetime
from enum import Enum, auto
from typing import NamedTuple, Protocol

from scheduler_app.domain.deliverable import Deliverable
from scheduler_app.domain.event import Event


class Outcome(Enum):
    """What an attempt means for its event."""

    SUCCESS = auto()
    RETRY = auto()
    """Another attempt may succeed: it follows if the schedule's retries are not spent."""
    PERMANENT = auto()
    """No attempt can succeed until the schedule is changed."""


class Verdict(NamedTuple):
    """How an attempt ended. Secrets of its action are in none of the fields: the executor removes them.

    `error`, `snippet`, `status_code` and `duration_ms` (milliseconds) are kept in the event's history.
    `status_code` is the number by which the receiver told how it went: an HTTP status, a process's exit
    status. `error` says in one sentence why there is none, or what was wrong. `snippet` is the beginning of
    what came back, on one line. `reason` is what people are told of an attempt that failed; it is not used
    after a success. `retry_after` is for how many seconds the receiver asked not to be called again.
    `output` is what a program has printed, its beginning and its end.
    """

    event_id: str
    outcome: Outcome
    status_code: int | None
    error: str | None
    snippet: str
    duration_ms: float
    reason: str = ""
    retry_after: float | None = None
    output: str | None = None


class Executor(Protocol):
    """Runs attempts of one kind of action beside each other, any number of them at once.

    All methods but `wake` are called by one thread, the courier's, which serves every receiver: none of them
    may block, but for `wait`, which may for its timeout. Whatever has to block belongs into threads or
    processes of the executor's own.

    `concurrency` is how many attempts with one isolation key a worker may have in flight.
    """

    @property
    def concurrency(self) -> int: ...

    def start(self, event: Event, deliverable: Deliverable, now: datetime) -> None:
        """Begins the attempt that follows `event.attempt`; `now` (UTC) is when it starts.

        It ends after `deliverable.timeout_seconds` at the latest, and yields exactly one verdict. What is
        wrong with the action is a verdict, too. An exception is an error in our own code: the caller ends the
        event with it, and no verdict may follow. The event has no other attempt in flight.
        """
        ...

    def wait(self, timeout: float) -> Sequence[Verdict]:
        """Returns the verdicts that there are; waits up to `timeout` seconds while there is none, and less
        after `wake`."""
        ...

    def wake(self) -> None:
        """Ends the present `wait`, or the next one, at once. Any thread may call it."""
        ...

    def interrupt(self) -> None:
        """Ends every attempt in flight; none of them yields a verdict. The executor can be used again."""
        ...

    def close(self) -> None:
        """Interrupts, and frees what the executor holds: connections, threads, processes."""
        ...
