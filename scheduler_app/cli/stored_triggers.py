"""The occurrences of a schedule that is there, or of one as a file describes it: by previews of the API."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from scheduler_app.client import TRIGGERS, Json, Scheduler, TriggerFields

#: Fields of a schedule that say when it runs.
TRIGGER_FIELDS: Final = tuple(TriggerFields.__annotations__)


def trigger_of(schedule: Mapping[str, Any]) -> Json:
    """What a preview needs of a schedule as the API shows it: the recurrence that its trigger has become, by
    which intervals and phrases are counted from the time that they were given."""
    beside = {name: schedule[name] for name in ("timezone", "gap", "overlap") if name in schedule}
    closed = {name: schedule[name] for name in ("calendar", "on_holiday") if schedule.get(name) is not None}
    if schedule.get("recurrence"):
        return {"rrule": schedule["recurrence"]} | beside | closed
    given = {name: schedule[name] for name in TRIGGER_FIELDS if schedule.get(name) is not None}
    if "delay_seconds" in given:
        return {"run_at": schedule["next_run_at"]} if schedule.get("next_run_at") else {}
    return given | beside | closed


def upcoming(
    scheduler: Scheduler,
    schedule: Mapping[str, Any],
    limit: int,
    *,
    after: datetime | str | None = None,
    until: datetime | str | None = None,
) -> Sequence[Json]:
    """The occurrences of a schedule after `after` (default: now), none after `until`."""
    fields = trigger_of(schedule)
    if not any(name in fields for name in TRIGGERS) or "on_demand" in fields:
        return []
    found = scheduler.preview(fields.pop("rrule", None), after=after, until=until, limit=limit, **fields)
    return [dict(each) for each in found["occurrences"]]
