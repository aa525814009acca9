"""The names of the schedules that some events belong to."""

from collections.abc import Iterable

from scheduler_app.api.services import services
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store.events.record import EventRecord


def names_of(events: Iterable[EventRecord]) -> dict[str, str]:
    """Each schedule's name by its id, deleted ones included; none where the document is gone or corrupt.
    A message belongs to no schedule."""
    return names_of_ids(event.schedule_id for event in events)


def names_of_ids(schedule_ids: Iterable[str]) -> dict[str, str]:
    """The same of schedules' ids."""
    ids = set(schedule_ids) - {""}
    found = services().store.schedules.for_delivery(sorted(ids)) if ids else {}
    return {each.id: each.name for each in found.values() if isinstance(each, Schedule)}
