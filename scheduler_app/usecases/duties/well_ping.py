"""Call a URL of somebody else's while all is well: he rings when the calls do not come any more."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from scheduler_app.actions.kind import Outcome, Verdict
from scheduler_app.domain.event import Event
from scheduler_app.domain.http_action import HttpAction
from scheduler_app.domain.message import Message
from scheduler_app.domain.schedule import Deliverable
from scheduler_app.domain.states import Kind
from scheduler_app.telemetry import get_logger, metrics

log = get_logger(__name__)


@dataclass(frozen=True)
class WellPing:
    """`attempt` makes a request and waits for its answer. `trouble` says what is not well, None if all is; it
    may raise a STORE_FAULT."""

    url: str
    attempt: Callable[[Event, Deliverable, datetime], Verdict]
    trouble: Callable[[], str | None]

    def ping(self, now: datetime) -> bool:
        """Calls the URL unless something is wrong; whether it was called and has answered."""
        if (found := self.trouble()) is not None:
            log.warning("witness.not_well", message="WITNESS_PING_URL is not called", found=found)
            return False
        message = Message(action=HttpAction(self.url, "GET"))
        event = Event("msg_well-ping", "", 1, run_time=now, due_at=now, kind=Kind.MESSAGE, message=message)
        verdict = self.attempt(event, message, now)
        is_answered = verdict.outcome is Outcome.SUCCESS
        metrics.witness_pings.labels("answered" if is_answered else "failed").inc()
        if not is_answered:
            log.warning(
                "witness.ping_failed", message="WITNESS_PING_URL does not answer", reason=verdict.reason
            )
        return is_answered
