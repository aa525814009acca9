"""What a schedule's document says of overlapping runs and of completion; it is left out where it is the
default."""

from collections.abc import Mapping
from typing import Any, TypedDict, cast, get_args

from scheduler_app.domain import completion
from scheduler_app.domain.completion import Completion
from scheduler_app.domain.field_types import number, one_of, whole
from scheduler_app.domain.overlap import DEFAULT_QUEUE_LIMIT, MAX_QUEUE_LIMIT, OverlapScope, RunOverlap
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store.collection import Document

_RUN_OVERLAPS, _SCOPES, _COMPLETIONS = get_args(RunOverlap), get_args(OverlapScope), get_args(Completion)


class OverlapFields(TypedDict, total=False):
    """Those that differ from the defaults."""

    run_overlap: RunOverlap
    overlap_scope: OverlapScope
    queue_limit: int
    completion: Completion
    completion_timeout_seconds: float


def overlap_document(schedule: Schedule) -> Document:
    """The fields that `read_overlap` reads; None if they are the default."""
    found: Document = {
        "run_overlap": (schedule.run_overlap, "allow"),
        "overlap_scope": (schedule.overlap_scope, "event"),
        "queue_limit": (schedule.queue_limit, DEFAULT_QUEUE_LIMIT),
        "completion": (schedule.completion, "response"),
        "completion_timeout_seconds": (
            schedule.completion_timeout_seconds,
            completion.DEFAULT_TIMEOUT_SECONDS,
        ),
    }
    return {name: None if value == default else value for name, (value, default) in found.items()}


def read_overlap(row: Mapping[str, Any]) -> OverlapFields:
    """Raises Corrupt."""
    found = OverlapFields()
    # Most schedules have none of them.
    if (value := row.get("run_overlap")) is not None:
        found["run_overlap"] = cast(RunOverlap, one_of(value, "run_overlap", _RUN_OVERLAPS))
    if (value := row.get("overlap_scope")) is not None:
        found["overlap_scope"] = cast(OverlapScope, one_of(value, "overlap_scope", _SCOPES))
    if (value := row.get("queue_limit")) is not None:
        found["queue_limit"] = whole(value, "queue_limit", least=1, most=MAX_QUEUE_LIMIT)
    if (value := row.get("completion")) is not None:
        found["completion"] = cast(Completion, one_of(value, "completion", _COMPLETIONS))
    if (value := row.get("completion_timeout_seconds")) is not None:
        found["completion_timeout_seconds"] = number(
            value,
            "completion_timeout_seconds",
            least=completion.LEAST_TIMEOUT_SECONDS,
            most=completion.MAX_TIMEOUT_SECONDS,
        )
    return found
