"""Operations on what has a name of its own, calendars and destinations, as calls and listings."""

from collections.abc import Mapping
from datetime import date
from typing import Any
from urllib.parse import quote

from scheduler_app.client.calls import Call, Listing, delete, get, put
from scheduler_app.client.record import Json, Record


def put_named(kind: str, name: str, fields: Mapping[str, Any], dry_run: bool) -> Call[Record]:
    return put(_path(kind, name), Record.of, dict(fields), dry_run=dry_run)


def get_named(kind: str, name: str) -> Call[Record]:
    return get(_path(kind, name), Record.of)


def list_named(kind: str) -> Listing[Record]:
    return Listing(f"/api/{kind}", kind, Record.of)


def delete_named(kind: str, name: str) -> Call[None]:
    return delete(_path(kind, name))


def days(name: str, first: date | str, last: date | str) -> Call[tuple[Record, ...]]:
    def read(answer: Json) -> tuple[Record, ...]:
        return tuple(map(Record.of, answer["days"]))

    return get(f"{_path('calendars', name)}/days", read, {"from": str(first), "to": str(last)})


def _path(kind: str, name: str) -> str:
    # A name from elsewhere must not become another path.
    return f"/api/{kind}/{quote(name, safe='')}"
