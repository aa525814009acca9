"""Who says that an event's work is done: the response to its request, or its receiver, which calls back."""

import hashlib
import hmac
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from scheduler_app.domain.event import FINAL, State

Completion = Literal["response", "callback"]

DEFAULT_TIMEOUT_SECONDS = 3_600.0
LEAST_TIMEOUT_SECONDS = 1.0
MAX_TIMEOUT_SECONDS = 604_800.0
#: The tokens of this many attempts are known: a receiver may keep the one that it was sent first.
KEPT_TOKENS = 10
MAX_REASON = 500


def digest(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_known(token: str, digests: Iterable[str]) -> bool:
    """Whether it is one of the tokens; the time that it takes says nothing of them."""
    given = digest(token)
    # All of them are compared, whichever fits.
    return sum(hmac.compare_digest(given, each) for each in digests) > 0


class Told(NamedTuple):
    """What was said of an attempt, or that its time was over."""

    how: Literal["completed", "failed", "timed_out"]
    attempt: int
    at: datetime


class Awaited(NamedTuple):
    """What is known of an event whose receiver says how its work went."""

    event_id: str
    schedule_id: str
    run_time: datetime
    state: State
    owner: str | None
    """The claim's token, while a worker has it, or may still record."""
    attempt: int
    """Attempts recorded so far."""
    number: int
    """The attempt that the newest token was made for."""
    digests: tuple[str, ...]
    seconds: float
    """For how long it is waited for."""
    retry_in: timedelta | None
    """What follows that attempt's failure; None: it is the last one."""
    awaiting: bool
    """The request was answered, and the work goes on."""
    told: Told | None
    last_message: str
    """Of its history."""


def objection(awaited: Awaited, how: Literal["completed", "failed"]) -> str | None:
    """Why it is too late to say so; None if it is not. It is empty where the same was said before."""
    told = awaited.told
    said_before = told is not None and told.attempt == awaited.attempt and told.how == how
    if awaited.state is State.RUNNING:
        return None
    if awaited.state in FINAL:
        again = said_before or (awaited.state is State.COMPLETED and how == "completed")
        return "" if again else f"the event is {awaited.state}: {awaited.last_message}"
    if told is None or told.attempt != awaited.attempt:
        # Its worker was lost, or did not get the answer; the receiver knows better.
        return None
    return "" if said_before else f"this attempt is over: {awaited.last_message}"
