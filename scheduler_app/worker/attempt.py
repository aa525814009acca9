"""One attempt for a claimed event: what is asked, and what its end means for the event."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from scheduler_app.actions.http import Answer, Request, headers_for, parse_retry_after, redacted
from scheduler_app.domain.event import Event, State
from scheduler_app.domain.instants import shown_instant, whole_milliseconds
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store.events.outcomes import Record
from scheduler_app.telemetry import metrics

COMPLETED = "Event successfully processed"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request that may start at `event.due_at`, under the claim `token`."""

    event: Event
    schedule: Schedule = field(repr=False)
    token: str
    worker: str

    @property
    def number(self) -> int:
        return self.event.attempt + 1

    def request(self, now: datetime) -> Request:
        """The HTTP request; `now` is when it starts, in UTC."""
        action, signing = self.schedule.action, self.schedule.signing
        body = action.body.data if action.body else None
        return Request(
            key=self.event.id,
            url=action.url,
            method=action.method,
            headers=headers_for(
                event_id=self.event.id,
                schedule_id=self.event.schedule_id,
                run_time=self.event.run_time,
                attempt=self.number,
                now=now,
                user_headers=action.headers,
                body=body,
                hops=max(self.event.hops, self.schedule.hops),
                signing_secrets=signing.secrets(now) if signing else (),
            ),
            body=body,
            timeout_seconds=self.schedule.timeout_seconds,
        )

    def lag(self, started_at: datetime) -> float:
        """Seconds between the attempt's due time and its start; what postponed it does not count as due."""
        due_at = self.event.postponed_from or self.event.due_at
        return (started_at - due_at).total_seconds()

    def record(self, answer: Answer, started_at: datetime, origin: str) -> Record:
        """What the answer of `origin` means: success, another attempt at its time, or the end. Secrets that
        the receiver echoed are not in it."""
        answer = redacted(answer, self.schedule.action)
        ended_at = started_at + timedelta(milliseconds=int(answer.duration_ms))
        state, due_at, message = self._judge(answer, ended_at)
        entry: dict[str, Any] = {
            "number": self.number,
            "started_at": started_at,
            "duration_ms": round(answer.duration_ms, 3),
            "lag_ms": round(self.lag(started_at) * 1000, 3),
            "status_code": answer.status,
            "error": answer.error,
            "snippet": answer.snippet,
            "worker": self.worker,
        }
        return Record(
            *(self.event.id, self.token, state, message, due_at, entry, ended_at),
            event=self.event,
            origin=origin,
            attempts_allowed=self.event.attempts_before + 1 + self.schedule.retry.max_retries,
        )

    def _judge(self, answer: Answer, ended_at: datetime) -> tuple[State, datetime | None, str]:
        policy, status = self.schedule.retry, answer.status
        if status is not None and status in self.schedule.success:
            return State.COMPLETED, None, COMPLETED
        said = answer.error or f"HTTP {status}"
        if answer.ours:  # and so not permanent: it is retried, perhaps by a worker that allows it
            metrics.refused.inc()
        if answer.permanent or (status is not None and status not in policy.codes):
            return State.ERROR, None, f"Attempt {self.number} failed for good: {said}"
        tries = self.number - self.event.attempts_before
        if policy.spent(tries):
            return State.ERROR, None, f"Attempt {self.number} failed, and it was the last one: {said}"
        wanted = parse_retry_after(answer.retry_after, ended_at) if answer.retry_after else None
        due_at = ended_at + timedelta(seconds=policy.delay(tries, retry_after=wanted))
        due_at = whole_milliseconds(due_at)
        return (
            State.RETRYING,
            due_at,
            f"Attempt {self.number} failed: {said}; the next follows at {shown_instant(due_at)}",
        )


def set_aside(event: Event, token: str, worker: str, reason: str, now: datetime) -> Record:
    """The end of an event that cannot even be asked: its schedule is bent, or our own code raised."""
    entry = {"number": event.attempt + 1, "started_at": now, "error": reason, "worker": worker}
    message = f"Set aside: {reason}"
    return Record(event.id, token, State.ERROR, message, None, entry, now, event, event.origin)
