"""Calendars, destinations and schedules alike: find one, put one."""

from collections.abc import Mapping
from typing import Any

from scheduler_app.client import Scheduler, SchedulerError


class OfKind:
    """What of one kind is on the server."""

    def __init__(self, scheduler: Scheduler, kind: str) -> None:
        """`kind` is `calendars`, `destinations` or `schedules`."""
        self._all: Any = scheduler if kind == "schedules" else getattr(scheduler, kind)

    def find(self, name: str) -> Mapping[str, Any] | None:
        """None where there is none. Raises SchedulerError."""
        try:
            found: Mapping[str, Any] = self._all.get(name)
        except SchedulerError as error:
            if error.status == 404:
                return None
            raise
        return found

    def put(self, name: str, fields: Mapping[str, Any], *, dry_run: bool = False) -> Mapping[str, Any]:
        """Creates or changes one; `result` says which. Raises SchedulerError."""
        found: Mapping[str, Any] = self._all.put(name, fields, dry_run=dry_run)
        return found
