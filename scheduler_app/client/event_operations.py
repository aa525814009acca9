"""Each operation on events as a call or a listing. `scheduler.py` says what the arguments mean."""

from dataclasses import replace
from typing import Any
from urllib.parse import quote

from scheduler_app.client.calls import Call, EditOfMany, Listing, get, post, without_none
from scheduler_app.client.record import Json
from scheduler_app.client.request_values import instant_or_none, schedule_path
from scheduler_app.client.results import Event


def history(schedule_id: str, include_cancelled: bool) -> Listing[Event]:
    filters = {"include": "cancelled" if include_cancelled else None}
    return Listing(schedule_path(schedule_id, "events/history"), "events", Event.of, filters)


def pending(schedule_id: str) -> Listing[Event]:
    return Listing(schedule_path(schedule_id, "events/pending"), "events", Event.of)


def events(**which: Any) -> Listing[Event]:
    return Listing("/api/v1/events", "events", Event.of, _event_filters(which))


def event(event_id: str) -> Call[Event]:
    return get(_event_path(event_id), Event.of)


def cancel_event(event_id: str) -> Call[Event]:
    return post(_event_path(event_id, "cancel"), Event.of)


def redrive(event_id: str) -> Call[Event]:
    return post(_event_path(event_id, "redrive"), Event.of)


def redrive_many(which: Json) -> EditOfMany:
    return EditOfMany("/api/v1/events/redrive", "redriven", _event_filters(which))


def complete(event_id: str, token: str) -> Call[Event]:
    return replace(post(_event_path(event_id, "complete"), Event.of), completion_token=token)


def fail(event_id: str, token: str, reason: str | None) -> Call[Event]:
    body = without_none({"reason": reason})
    return replace(post(_event_path(event_id, "fail"), Event.of, body), completion_token=token)


def _event_path(event_id: str, rest: str = "") -> str:
    return f"/api/v1/events/{quote(event_id, safe='')}" + (f"/{rest}" if rest else "")


def _event_filters(given: Json) -> Json:
    """Renames `after` and `before` to the API's `from` and `to`."""
    filters = dict(given)
    times = {"from": filters.pop("after", None), "to": filters.pop("before", None)}
    return filters | {name: instant_or_none(value) for name, value in times.items()}
