"""Each operation on calendars as a call or a listing. What the arguments mean stands in `calendars.py`."""

from collections.abc import Mapping
from datetime import date
from typing import Any
from urllib.parse import quote

from scheduler_app.client.calls import Call, Listing, delete, get, put
from scheduler_app.client.record import Json, Record


def put_calendar(name: str, fields: Mapping[str, Any], dry_run: bool) -> Call[Record]:
    return put(_path(name), Record.of, dict(fields), dry_run=dry_run)


def get_calendar(name: str) -> Call[Record]:
    return get(_path(name), Record.of)


def list_calendars() -> Listing[Record]:
    return Listing("/api/calendars", "calendars", Record.of)


def delete_calendar(name: str) -> Call[None]:
    return delete(_path(name))


def days(name: str, first: date | str, last: date | str) -> Call[tuple[Record, ...]]:
    def read(answer: Json) -> tuple[Record, ...]:
        return tuple(map(Record.of, answer["days"]))

    return get(f"{_path(name)}/days", read, {"from": str(first), "to": str(last)})


def _path(name: str) -> str:
    # A name from elsewhere must not become another path.
    return f"/api/calendars/{quote(name, safe='')}"
