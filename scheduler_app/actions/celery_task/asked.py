"""What the executor asks a broker's thread for, and what the thread tells back."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from scheduler_app.actions.celery_task.validation import arguments_of
from scheduler_app.actions.executor import Outcome
from scheduler_app.domain.celery_task_action import CeleryTaskAction
from scheduler_app.domain.event import Event


class Asked(NamedTuple):
    """An attempt that is to begin."""

    serial: int
    """Tells attempts of one event apart: what comes of an earlier one is dropped."""
    event: Event
    action: CeleryTaskAction
    until: float
    """The monotonic time at which the attempt ends."""

    @property
    def may_have_been_sent(self) -> bool:
        """Whether an attempt before this one may have sent the task."""
        return bool(self.event.attempt or self.event.lost_leases)


class Told(NamedTuple):
    """How an attempt ended."""

    serial: int
    event_id: str
    outcome: Outcome
    reason: str = ""
    snippet: str = ""


def arguments_for(asked: Asked) -> tuple[list[object], dict[str, object]]:
    """The task's arguments, with the event where it is wanted. Raises InvalidField."""
    args, kwargs = arguments_of(asked.action)
    if asked.action.event_kwarg is not None:
        kwargs[asked.action.event_kwarg] = _described(asked.event)
    return args, kwargs


def headers_for(asked: Asked) -> Mapping[str, Any]:
    """The message's headers: `self.request.headers` in the task."""
    told = {f"scheduler_{name}": value for name, value in _described(asked.event).items()}
    if asked.event.completion_token is not None:
        # A plain text: what a broker serialises is no class of ours.
        told["scheduler_completion_token"] = str(asked.event.completion_token)
    return dict(asked.action.headers) | told


def _described(event: Event) -> dict[str, object]:
    return {
        "event_id": event.id,
        "schedule_id": event.schedule_id,
        "run_time": _utc(event.run_time),
        "attempt": event.attempt + 1,
    }


def _utc(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
