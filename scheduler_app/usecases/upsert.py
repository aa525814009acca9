"""PUT as HTTP has it: a schedule is changed, or created where there is none."""

from dataclasses import dataclass
from datetime import datetime

from scheduler_app.domain.draft import Draft
from scheduler_app.domain.errors import Conflict, NotFound, StaleVersion
from scheduler_app.domain.not_given import NOT_GIVEN
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.triggers import ONE_OF, names_a_trigger
from scheduler_app.usecases.creation import Creation
from scheduler_app.usecases.schedule_changes import TRIES
from scheduler_app.usecases.schedules import ScheduleService


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a change or a creation."""

    version: int | None = None
    """The version that the schedule must have; None for any."""
    present: bool = False
    """Whether there must be a schedule."""
    absent: bool = False
    """Whether the id must be free."""


def put(
    creation: Creation,
    manager: ScheduleService,
    schedule_id: str,
    draft: Draft,
    now: datetime,
    *,
    tenant: str,
    conditions: Conditions,
    hops: int = 0,
) -> tuple[Schedule, bool]:
    """The schedule, and whether it was created. Raises StaleVersion where `conditions` are not met, NotFound
    where there is no schedule and the draft lacks fields that a new one needs, InvalidField, Conflict."""
    for _ in range(TRIES):
        try:
            if conditions.absent:
                manager.get(schedule_id, tenant=tenant)
                raise StaleVersion(f"there is a schedule {schedule_id} already, and the request forbids that")
            return manager.edit(
                schedule_id, draft, now, tenant=tenant, version=conditions.version, hops=hops
            ), False
        except NotFound:
            if conditions.present or conditions.version is not None:
                raise StaleVersion(f"If-Match asks for a schedule {schedule_id}, and there is none") from None
        missing = _missing(draft)
        if missing:
            raise NotFound(
                f"there is no schedule {schedule_id} to change; to create it, give {', '.join(missing)} too"
            )
        try:
            return creation.create(draft, now, tenant=tenant, schedule_id=schedule_id, hops=hops), True
        except Conflict:
            # Another request may have created it a moment ago: then it is changed.
            if manager.store.schedules.get(schedule_id, tenant=tenant) is None:
                raise
    raise Conflict(
        f"the schedule {schedule_id} is being created and deleted by others at this moment; try again"
    )


def _missing(draft: Draft) -> list[str]:
    missing = ["name"] if draft.name is NOT_GIVEN else []
    if draft.action is NOT_GIVEN and draft.url is NOT_GIVEN and draft.destination in (NOT_GIVEN, None):
        missing.append("callback_url, destination or action")
    timed = draft.trigger is not NOT_GIVEN and names_a_trigger(draft.trigger)
    return missing if timed else [*missing, f"one of {ONE_OF}"]
