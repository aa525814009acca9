"""Values of requests: paths of schedules, and instants as text."""

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote

from scheduler_app.client.record import Json


def schedule_path(schedule_id: str, rest: str = "") -> str:
    # An id from elsewhere must not become another path.
    return f"/api/v1/schedules/{quote(schedule_id, safe='')}" + (f"/{rest}" if rest else "")


def named_path(collection: str, name: str) -> str:
    """The path of what has this name. HTTP clients and proxies take `.` and `..` for steps in the path, also
    quoted: these two names are quoted twice."""
    return f"/api/v1/{collection}/" + ("%252E" * len(name) if name in (".", "..") else quote(name, safe=""))


def wire_values(fields: Mapping[str, object]) -> Json:
    """Fields as JSON has them: datetimes as text. Raises ValueError for one without an offset, unless the
    fields name the `timezone` that it is local to."""
    as_text = datetime.isoformat if "timezone" in fields else as_instant
    return {name: as_text(value) if isinstance(value, datetime) else value for name, value in fields.items()}


def instant_or_none(value: datetime | str | None) -> str | None:
    return None if value is None else as_instant(value)


def as_instant(value: datetime | str | None) -> str:
    """The instant as the API takes it; text stays what it is. Raises ValueError for a datetime without an
    offset."""
    if not isinstance(value, datetime):
        return str(value)
    if value.tzinfo is None:
        raise ValueError("an instant needs an offset: datetime(…, tzinfo=UTC)")
    return value.astimezone(UTC).isoformat()
