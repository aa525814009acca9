"""Each operation on calendars as a call or a listing. What the arguments mean stands in `calendars.py`."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from scheduler_app.client.calls import Call, Listing, delete, get, put
from scheduler_app.client.record import Json, Record
from scheduler_app.client.request_values import named_path


def put_calendar(name: str, fields: Mapping[str, Any], dry_run: bool) -> Call[Record]:
    return put(_path(name), Record.of, dict(fields), dry_run=dry_run)


def get_calendar(name: str) -> Call[Record]:
    return get(_path(name), Record.of)


def list_calendars() -> Listing[Record]:
    return Listing("/api/v1/calendars", "calendars", Record.of)


def delete_calendar(name: str) -> Call[None]:
    return delete(_path(name))


def days(name: str, first: date | str, last: date | str) -> Call[tuple[Record, ...]]:
    def read(answer: Json) -> tuple[Record, ...]:
        return tuple(map(Record.of, answer["days"]))

    return get(f"{_path(name)}/days", read, {"from": str(first), "to": str(last)})


def _path(name: str) -> str:
    return named_path("calendars", name)
