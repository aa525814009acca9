"""Calendars: named sets of closed days."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from scheduler_app.client import calls
from scheduler_app.client.calls import Call, Listing, path_of
from scheduler_app.client.methods import AsyncClient, SyncClient, listing, operation
from scheduler_app.client.record import Record


class CalendarOperations:
    """Every method raises SchedulerError."""

    @operation
    def put(self, name: str, calendar: Mapping[str, Any], *, dry_run: bool = False) -> Call[Record]:
        """Creates a calendar of the given fields (those of the API), or replaces the whole of one; `result`
        is `created`, `changed` or `unchanged`. `dry_run` changes nothing."""
        return calls.put(path_of("calendars", name), Record.of, calendar, dry_run=dry_run)

    @operation
    def get(self, name: str) -> Call[Record]:
        """Returns the calendar."""
        return calls.get(path_of("calendars", name), Record.of)

    @listing
    def list(self) -> Listing[Record]:
        """Yields the calendars, newest first."""
        return Listing("/api/v1/calendars", "calendars", Record.of)

    @operation
    def days(self, name: str, first: date | str, last: date | str) -> Call[Sequence[Record]]:
        """The closed days from `first` to `last`: `date`, `name`, and `kind`, `holiday` or `weekend`."""
        query = {"from": str(first), "to": str(last)}
        return calls.get(path_of("calendars", name, "days"), calls.each(Record.of, "days"), query)

    @operation
    def delete(self, name: str) -> Call[None]:
        """Deletes a calendar that no schedule observes."""
        return calls.delete(path_of("calendars", name))


class Calendars(CalendarOperations, SyncClient):
    """`Scheduler.calendars`."""


class AsyncCalendars(CalendarOperations, AsyncClient):
    """`AsyncScheduler.calendars`."""
