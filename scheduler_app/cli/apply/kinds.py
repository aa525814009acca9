"""Calendars, destinations, blackouts and schedules alike: find one, put one."""

from collections.abc import Callable, Mapping
from typing import Any

from scheduler_app.client import Scheduler, SchedulerError


class OfKind:
    """What of one kind is on the server."""

    def __init__(self, scheduler: Scheduler, kind: str) -> None:
        """`kind` is one of the keys of the files."""
        self._get: Callable[[str], Mapping[str, Any]]
        self._put: Callable[..., Mapping[str, Any]]
        if kind == "destinations":
            self._get, self._put = scheduler.destinations.get, _put_destination(scheduler)
        elif kind == "calendars":
            self._get, self._put = scheduler.calendars.get, scheduler.calendars.put
        elif kind == "blackouts":
            self._get, self._put = scheduler.get_blackout, scheduler.put_blackout
        else:
            self._get, self._put = scheduler.get, scheduler.put

    def find(self, name: str) -> Mapping[str, Any] | None:
        """None if there is none. Raises SchedulerError."""
        try:
            return self._get(name)
        except SchedulerError as error:
            if error.status == 404:
                return None
            raise

    def put(self, name: str, fields: Mapping[str, Any], *, dry_run: bool = False) -> Mapping[str, Any]:
        """Creates or changes one; `result` says which. Raises SchedulerError."""
        return self._put(name, fields, dry_run=dry_run)


def _put_destination(scheduler: Scheduler) -> Callable[..., Mapping[str, Any]]:
    def put(name: str, fields: Mapping[str, Any], *, dry_run: bool) -> Mapping[str, Any]:
        if wrong := {"dry_run", "self"} & fields.keys():
            # As the API says it of a field that it does not know; these are words of the method.
            raise SchedulerError(f"{min(wrong)}: Unknown field", status=422)
        return scheduler.destinations.put(name, dry_run=dry_run, **fields)

    return put
