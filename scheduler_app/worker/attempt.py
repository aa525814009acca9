"""One attempt for a claimed event, what its verdict means for the event, and the results of events whose
requests are not made: postponed, or set aside.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from zlib import crc32

from scheduler_app.actions.kind import Outcome, Verdict
from scheduler_app.domain.cause import failing_key
from scheduler_app.domain.event import Event
from scheduler_app.domain.instants import shown_instant, whole_milliseconds
from scheduler_app.domain.notification import OwedNotification, owed_notification
from scheduler_app.domain.schedule import Deliverable, Schedule
from scheduler_app.domain.states import State
from scheduler_app.store.events.claims import Postponement
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.recorder import AttemptResult, Delayed

COMPLETED = "Event successfully processed"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that may start at `event.due_at`, under the claim `token`, in the worker of that name."""

    event: Event
    deliverable: Deliverable = field(repr=False)
    token: str
    worker: str
    destination_version: int | None = None
    """Of the destination that was applied; None if the action names none."""
    judged_again_at: datetime | None = None
    """After this instant it may be too late to start it; None: never."""

    @property
    def number(self) -> int:
        return self.event.attempt + 1

    def may_be_late(self, now: datetime) -> bool:
        """Whether a policy may forbid at `now` what it allowed when the event was judged."""
        return self.judged_again_at is not None and now > self.judged_again_at

    @property
    def completion_seconds(self) -> float | None:
        """How long the receiver may work before it says how that went; None if its response says it."""
        if not isinstance(self.deliverable, Schedule) or self.deliverable.completion != "callback":
            return None
        return self.deliverable.completion_timeout_seconds

    @property
    def is_awaited(self) -> bool:
        """Whether other runs of its schedule are judged by how this one ends."""
        return isinstance(self.deliverable, Schedule) and self.deliverable.run_overlap != "allow"

    def lag(self, started_at: datetime) -> float:
        """Seconds between the attempt's due time and its start; what postponed it does not count as due."""
        due_at = self.event.postponed_from or self.event.due_at
        return (started_at - due_at).total_seconds()

    def record(self, verdict: Verdict, started_at: datetime, origin: str) -> OutcomeRecord:
        """Returns what is written of the attempt: its place in the history, and what follows from `verdict`
        for the event. `origin` is the isolation key that the attempt counted for."""
        ended_at = started_at + timedelta(milliseconds=int(verdict.duration_ms))
        state, due_at, message = self._judge(verdict, ended_at)
        entry: dict[str, Any] = {
            "number": self.number,
            "started_at": started_at,
            "duration_ms": round(verdict.duration_ms, 3),
            "lag_ms": round(self.lag(started_at) * 1000, 3),
            "status_code": verdict.status_code,
            "error": verdict.error,
            "snippet": verdict.snippet,
            "worker": self.worker,
        }
        if verdict.output is not None:
            entry["output"] = verdict.output
        return OutcomeRecord(
            *(self.event.id, self.token, state, message, due_at, entry, ended_at),
            event=self.event,
            origin=origin,
            attempts_allowed=self.event.attempts_before + 1 + self.deliverable.retry.max_retries,
            pauses_on_failure=(
                isinstance(self.deliverable, Schedule) and self.deliverable.pause_after_failures is not None
            ),
            owed=owed_by(self.deliverable, self.event, state, ended_at),
            **self._why(verdict, origin),
        )

    def _why(self, verdict: Verdict, receiver: str) -> dict[str, Any]:
        """What the record says of its schedule, and that of a failed attempt of its cause."""
        tags = self.deliverable.tags if isinstance(self.deliverable, Schedule) else ()
        if verdict.outcome is Outcome.SUCCESS:
            return {"tags": tags}
        key = failing_key(self.event.id, receiver, verdict.status_code, verdict.error or verdict.reason)
        return {"cause": key, "tags": tags}

    def _judge(self, verdict: Verdict, ended_at: datetime) -> tuple[State, datetime | None, str]:
        if verdict.outcome is Outcome.SUCCESS and self.completion_seconds is not None:
            until = whole_milliseconds(ended_at + timedelta(seconds=self.completion_seconds))
            status = "" if verdict.status_code is None else f" with status {verdict.status_code}"
            message = (
                f"Accepted{status}: it runs until its receiver says how it went,"
                f" until {shown_instant(until)} at the latest"
            )
            return State.RUNNING, until, message
        if verdict.outcome is Outcome.SUCCESS:
            return State.COMPLETED, None, COMPLETED
        if verdict.outcome is Outcome.PERMANENT:
            return State.ERROR, None, f"Attempt {self.number} failed for good: {verdict.reason}"
        policy, tries = self.deliverable.retry, self.number - self.event.attempts_before
        if policy.spent(tries):
            return (
                State.ERROR,
                None,
                f"Attempt {self.number} failed, and it was the last one: {verdict.reason}",
            )
        due_at = ended_at + timedelta(seconds=policy.delay(tries, retry_after=verdict.retry_after))
        due_at = whole_milliseconds(due_at)
        too_late = self.deliverable.lateness.too_late_for(self.event, due_at)
        if too_late is not None:
            return State.EXPIRED, None, f"Expired: attempt {self.number} failed: {verdict.reason}; {too_late}"
        return (
            State.RETRYING,
            due_at,
            f"Attempt {self.number} failed: {verdict.reason}; the next follows at {shown_instant(due_at)}",
        )


def owed_by(
    deliverable: Deliverable, event: Event, state: State, ended_at: datetime
) -> OwedNotification | None:
    """The notification that is due when `event` ends in `state`; None if the deliverable names no receiver
    for it."""
    if deliverable.on_success is None and deliverable.on_failure is None:
        return None
    hops = max(event.hops, deliverable.hops)
    return owed_notification(deliverable.on_success, deliverable.on_failure, state, ended_at, hops)


def set_aside_record(
    event: Event,
    token: str,
    worker: str,
    reason: str,
    now: datetime,
    deliverable: Deliverable | None = None,
) -> OutcomeRecord:
    """Returns the end of an event that cannot be attempted: its schedule is corrupt, or our code raised.
    `deliverable`, where it is known, says who is told."""
    entry = {"number": event.attempt + 1, "started_at": now, "error": reason, "worker": worker}
    message = f"Set aside: {reason}"
    owed = owed_by(deliverable, event, State.ERROR, now) if deliverable else None
    cause = failing_key(event.id, event.origin, None, reason)
    return OutcomeRecord(
        *(event.id, token, State.ERROR, message, None, entry, now, event, event.origin),
        owed=owed,
        cause=cause,
    )


class Job(NamedTuple):
    """An attempt, the lease that it is made under, and the origin that it counts for."""

    attempt: Attempt
    lease: Lease
    origin: str
    isolated: bool = False
    """Its event may be what killed its last workers: no other such event starts beside it."""
    has_slot: bool = False
    """It has one of the slots of its tenant."""


#: An event that has to wait for another one comes again within a part of the time that it has waited.
WAITED_SHARE = 4
SHORTEST_DELAY, LONGEST_DELAY = timedelta(seconds=2), timedelta(seconds=60)


def postponed(
    event: Event,
    lease: Lease,
    due_at: datetime,
    reason: str,
    *,
    queue: str | None = None,
    queue_by_destination: bool = False,
) -> Delayed:
    """Makes an event due at `due_at`; its history gives the reason. It moves to `queue`, if one is given,
    which may be what its destination says."""
    due_at = whole_milliseconds(due_at)
    message = f"Postponed to {shown_instant(due_at)}: {reason}"
    since = event.postponed_from or event.due_at
    postponement = Postponement(
        event.id, lease.token, due_at, since, message, queue, queue_by_destination=queue_by_destination
    )
    return Delayed(postponement, lease)


def postponed_for_another(event: Event, lease: Lease, reason: str, now: datetime) -> Delayed:
    """Postpones an event that waits for another one for an unknown time: by a part of the time that it has
    waited already. Many that wait for one come at times of their own, not together."""
    waited = now - (event.postponed_from or event.due_at)
    longest = min(max(waited / WAITED_SHARE, SHORTEST_DELAY), LONGEST_DELAY)
    share = crc32(event.id.encode()) / 2**32
    return postponed(event, lease, now + SHORTEST_DELAY + (longest - SHORTEST_DELAY) * share, reason)


def set_aside(
    event: Event,
    lease: Lease,
    worker: str,
    reason: str,
    now: datetime,
    deliverable: Deliverable | None = None,
) -> AttemptResult:
    """Ends an event that cannot be attempted, as `attempt.set_aside` says."""
    return AttemptResult(set_aside_record(event, lease.token, worker, reason, now, deliverable), lease)
