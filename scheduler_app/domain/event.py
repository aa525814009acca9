"""An event: an occurrence made durable.

Who says that an event's work is done is its `completion`: the response to its request, or its receiver,
which calls back with a token. Jitter is how much later than its occurrence a callback falls due, the same
each time it is asked: an event's id and run time stay those of its occurrence; only `due_at` carries the
jitter.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Literal, NamedTuple

from scheduler_app.domain.action import CALLBACKS, UNKNOWN_ORIGIN
from scheduler_app.domain.ids import compact, event_id, instant_of, manual_event_id, partition_of, tenant_of
from scheduler_app.domain.message import Message, UnreadableMessage
from scheduler_app.domain.states import FINAL, Kind, State


class CompletionToken(str):
    """What a receiver shows to say how its work went. It is shown in no log: its `repr` is a mask."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "CompletionToken('***')"


def new_completion_token() -> CompletionToken:
    """192 random bits."""
    return CompletionToken(secrets.token_urlsafe(24))


class Event(NamedTuple):
    """What delivery and dispatch need to know of an event. The history stays in the store."""

    id: str
    schedule_id: str
    """Empty for a message, which has none."""
    revision: int
    run_time: datetime
    due_at: datetime
    kind: Kind = Kind.SCHEDULED
    attempt: int = 0
    """Attempts made so far."""
    attempts_before: int = 0
    """Those of them made before the last redrive, which gave it a new budget of retries."""
    lost_leases: int = 0
    """Claims of it whose workers did not report: it may have been sent."""
    postponed_from: datetime | None = None
    """When it was due before it was postponed, or its worker was lost; None if neither has happened."""
    origin: str = UNKNOWN_ORIGIN
    """Of the URL that its schedule had when it was made. For sharing and counting: an edit may have changed
    the URL since, and what is known by its id alone has none."""
    hops: int = 0
    """Callbacks of ours, one after another, that led to the request that made it."""
    queue: str = CALLBACKS
    """Its message travels in it, and only workers that serve it claim the event."""
    due_since: datetime | None = None
    """Since when it counts as late, where that is not its run time: a redrive starts the time again."""
    completion_token: CompletionToken | None = None
    """With which its receiver says how its work went; None if the response does, and where no request is
    about to be made."""
    message: Message | UnreadableMessage | None = None
    """What a message delivers; None for an occurrence, and where only the event itself was read."""

    @property
    def tenant(self) -> str:
        """Whose it is; its id says so."""
        return tenant_of(self.id)

    @property
    def partition(self) -> int:
        """That of its schedule; a message has its own."""
        return partition_of(self.schedule_id or self.id)


def scheduled(
    schedule_id: str,
    revision: int,
    run_time: datetime,
    origin: str = UNKNOWN_ORIGIN,
    queue: str = CALLBACKS,
) -> Event:
    """The event of one occurrence of a schedule's rule, due when it runs."""
    return Event(
        id=event_id(schedule_id, revision, run_time),
        schedule_id=schedule_id,
        revision=revision,
        run_time=run_time,
        due_at=run_time,
        origin=origin,
        queue=queue,
    )


def from_id(own_id: str) -> Event | None:
    """The event that `scheduled` made under this id; None if the id says that it was not made by it."""
    schedule_id, _, rest = own_id.rpartition("-")
    schedule_id, _, revision = schedule_id.rpartition("-")
    run_time = instant_of(rest)
    if run_time is None or not schedule_id or not (revision.isascii() and revision.isdigit()):
        return None
    return Event(own_id, schedule_id, int(revision), run_time, run_time)


def manual(
    schedule_id: str,
    revision: int,
    now: datetime,
    request_seed: str | None = None,
    *,
    origin: str = UNKNOWN_ORIGIN,
    queue: str = CALLBACKS,
    hops: int = 0,
) -> Event:
    """The event of a trigger: due at once."""
    return Event(
        id=manual_event_id(schedule_id, request_seed),
        schedule_id=schedule_id,
        revision=revision,
        run_time=now,
        due_at=now,
        kind=Kind.MANUAL,
        origin=origin,
        queue=queue,
        hops=hops,
    )


Completion = Literal["response", "callback"]

DEFAULT_COMPLETION_TIMEOUT = 3_600.0
LEAST_COMPLETION_TIMEOUT = 1.0
MAX_COMPLETION_TIMEOUT = 604_800.0
#: The tokens of this many attempts are known: a receiver may keep the one that it was sent first.
KEPT_TOKENS = 10
MAX_REASON = 500


def token_digest(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_known_token(token: str, digests: Iterable[str]) -> bool:
    """Whether it is one of the tokens; the time that it takes says nothing of them."""
    given = token_digest(token)
    # All of them are compared, whichever fits.
    return sum(hmac.compare_digest(given, each) for each in digests) > 0


class CompletionReport(NamedTuple):
    """What was said of an attempt, or that its time was over."""

    how: Literal["completed", "failed", "timed_out"]
    attempt: int
    at: datetime


class AwaitedEvent(NamedTuple):
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
    report: CompletionReport | None
    last_message: str
    """Of its history."""
    receiver: str = UNKNOWN_ORIGIN
    """The key of the receiver that it was made for."""
    attempts_before: int = 0
    """Attempts made before the last redrive."""


def why_report_is_too_late(awaited: AwaitedEvent, how: Literal["completed", "failed"]) -> str | None:
    """Why it is too late to say so; None if it is not. It is empty where the same was said before."""
    report = awaited.report
    said_before = report is not None and report.attempt == awaited.attempt and report.how == how
    if awaited.state is State.RUNNING:
        return None
    if awaited.state in FINAL:
        again = said_before or (awaited.state is State.COMPLETED and how == "completed")
        return "" if again else f"the event is {awaited.state}: {awaited.last_message}"
    if report is None or report.attempt != awaited.attempt:
        # Its worker was lost, or did not get the answer; the receiver knows better.
        return None
    return "" if said_before else f"this attempt is over: {awaited.last_message}"


#: A day: more than that is another rule.
MAX_JITTER_SECONDS = 86_400.0
_FRACTIONS = 2**64


def jitter_of(schedule_id: str, run_time: datetime, seconds: float) -> timedelta:
    """The jitter of one occurrence: from zero up to but not including `seconds`, in whole milliseconds.

    A hash of the schedule's id, with its tenant, and of the instant: neither a preview nor an edit of
    something else moves it, and the occurrences of many schedules at one instant spread evenly.
    """
    if not seconds:
        return timedelta()
    drawn = blake2b(f"{schedule_id} {compact(run_time)}".encode(), digest_size=8).digest()
    return timedelta(milliseconds=int.from_bytes(drawn) * round(seconds * 1000) // _FRACTIONS)


def due(schedule_id: str, run_time: datetime, seconds: float) -> datetime:
    """When the callback of an occurrence falls due."""
    return run_time + jitter_of(schedule_id, run_time, seconds)


def jittered(events: Sequence[Event], seconds: float) -> list[Event]:
    """The events of occurrences, due with their jitter."""
    if not seconds:
        return list(events)
    return [each._replace(due_at=due(each.schedule_id, each.run_time, seconds)) for each in events]
