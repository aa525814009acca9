"""Calendars: named sets of closed days. `async_calendars` is the twin of this module."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from scheduler_app.client import calendar_operations as operations
from scheduler_app.client.calls import Listing
from scheduler_app.client.http import Http
from scheduler_app.client.record import Record


class Calendars:
    """`Scheduler.calendars`. Every method raises SchedulerError."""

    def __init__(self, http: Http, rows: Callable[[Listing[Record]], Iterator[Record]]) -> None:
        """`rows` asks for the pages of a listing."""
        self._http = http
        self._rows = rows

    def put(self, name: str, calendar: Mapping[str, Any], *, dry_run: bool = False) -> Record:
        """Creates a calendar of the given fields (those of the API), or replaces the whole of one; `result`
        is `created`, `changed` or `unchanged`. `dry_run` changes nothing."""
        return self._http.send(operations.put_calendar(name, calendar, dry_run))

    def get(self, name: str) -> Record:
        return self._http.send(operations.get_calendar(name))

    def list(self) -> Iterator[Record]:
        """Yields the calendars, newest first."""
        return self._rows(operations.list_calendars())

    def days(self, name: str, first: date | str, last: date | str) -> Sequence[Record]:
        """The closed days from `first` to `last`: `date`, `name`, and `kind`, `holiday` or `weekend`."""
        return self._http.send(operations.days(name, first, last))

    def delete(self, name: str) -> None:
        """Deletes a calendar that no schedule observes."""
        self._http.send(operations.delete_calendar(name))
