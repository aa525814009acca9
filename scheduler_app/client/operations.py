"""Each operation of the API as a call or a listing: the methods of both clients only send them.

What the arguments mean stands in `scheduler.py`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from scheduler_app.client.calls import Call, EditOfMany, Listing, delete, get, post, put, without_none
from scheduler_app.client.import_results import ImportResult
from scheduler_app.client.record import Json
from scheduler_app.client.results import (
    BulkResult,
    Event,
    Explanation,
    KillSwitch,
    MovedSchedule,
    Preview,
    Schedule,
)
from scheduler_app.client.schedule_fields import TRIGGERS
from scheduler_app.client.waves import Backfill, Backlog, BacklogExpired, Forecast


def schedule(
    callback_url: str | None,
    name: str | None,
    delay: timedelta | None,
    idempotency_key: str | None,
    fields: Mapping[str, object],
) -> Call[Schedule]:
    given = {
        name: value for name, value in _wire(fields).items() if value is not None or name not in TRIGGERS
    }
    if sum(name in given for name in TRIGGERS) + (delay is not None) != 1:
        raise ValueError(f"give one of {', '.join(TRIGGERS)} and delay")
    if delay is not None:
        given["run_at"] = as_instant(datetime.now(UTC) + delay)
    if callback_url is not None:
        given["callback_url"] = callback_url
    if sum(given.get(each) is not None for each in ("callback_url", "destination", "action")) != 1:
        raise ValueError("give callback_url, destination or action")
    body = {"name": name or _default_name(given)[:100], **given}
    return post("/api/schedules", Schedule.of, body, key=idempotency_key)


def _default_name(given: Json) -> str:
    """What is called. Names are shown, and a query or an argument may hold secrets."""
    if given.get("callback_url") is not None:
        return re.split(r"[?#]", given["callback_url"], maxsplit=1)[0]
    if given.get("destination") is not None:
        return str(given["destination"])
    command = given["action"].get("command") or [given["action"].get("type", "")]
    return str(command.split()[0] if isinstance(command, str) else command[0])


def cancel(schedule_id: str) -> Call[None]:
    return delete(_path(schedule_id))


def get_schedule(schedule_id: str) -> Call[Schedule]:
    return get(_path(schedule_id), Schedule.of)


def list_schedules(**filters: str | None) -> Listing[Schedule]:
    return Listing("/api/schedules", "schedules", Schedule.of, filters)


def schedule_many(
    schedules: Sequence[Mapping[str, Any]], idempotency_key: str | None, dry_run: bool
) -> Call[tuple[BulkResult, ...]]:
    def read(answer: Json) -> tuple[BulkResult, ...]:
        return tuple(map(BulkResult.of, answer["results"]))

    body = {"schedules": [dict(each) if isinstance(each, Mapping) else each for each in schedules]}
    return post("/api/schedules/bulk", read, body, key=idempotency_key, dry_run=dry_run)


def import_ics(
    ics: str,
    schedule: Mapping[str, Any],
    given: Json,
    idempotency_key: str | None,
    dry_run: bool,
) -> Call[ImportResult]:
    body = {"ics": ics, "schedule": dict(schedule)} | without_none(given)
    return post("/api/schedules/import", ImportResult.of, body, key=idempotency_key, dry_run=dry_run)


def put_schedule(schedule_id: str, fields: Mapping[str, Any], dry_run: bool) -> Call[Schedule]:
    return put(_path(schedule_id), Schedule.of, dict(fields), dry_run=dry_run)


def export(**filters: str | None) -> Call[None]:
    return get("/api/schedules/export", lambda _: None, filters)


def update(schedule_id: str, fields: Mapping[str, object]) -> Call[Schedule]:
    return put(_path(schedule_id), Schedule.of, _wire(fields))


def pause(schedule_id: str, until: datetime | str | None, note: str | None) -> Call[Schedule]:
    body = without_none({"until": _maybe_instant(until), "note": note})
    return post(_path(schedule_id, "pause"), Schedule.of, body)


def resume(schedule_id: str) -> Call[Schedule]:
    return post(_path(schedule_id, "resume"), Schedule.of)


def pause_many(which: Json) -> EditOfMany:
    which = which | {"until": _maybe_instant(which.get("until"))}
    return EditOfMany("/api/schedules/pause", "paused", which)


def resume_many(which: Json) -> EditOfMany:
    return EditOfMany("/api/schedules/resume", "resumed", which)


def delete_many(which: Json) -> EditOfMany:
    return EditOfMany("/api/schedules/delete", "deleted", which)


def kill_switch_on(which: Json, note: str | None) -> Call[KillSwitch]:
    return put("/api/kill-switch", KillSwitch.of, without_none(which | {"note": note}))


def kill_switch_off(which: Json) -> Call[int]:
    def read(answer: Json) -> int:
        return int(answer["held"])

    query = {name: "true" if value is True else value for name, value in without_none(which).items()}
    return Call("DELETE", "/api/kill-switch", read, query)


def kill_switches() -> Call[tuple[KillSwitch, ...]]:
    def read(answer: Json) -> tuple[KillSwitch, ...]:
        return tuple(map(KillSwitch.of, answer["kill_switches"]))

    return get("/api/kill-switch", read)


def put_blackout(name: str, fields: Mapping[str, Any], dry_run: bool) -> Call[Json]:
    return put(_blackout_path(name), dict, dict(fields), dry_run=dry_run)


def get_blackout(name: str) -> Call[Json]:
    return get(_blackout_path(name), dict)


def blackouts() -> Call[tuple[Json, ...]]:
    def read(answer: Json) -> tuple[Json, ...]:
        return tuple(answer["blackouts"])

    return get("/api/blackouts", read)


def delete_blackout(name: str) -> Call[None]:
    return delete(_blackout_path(name))


def _blackout_path(name: str) -> str:
    return f"/api/blackouts/{quote(name, safe='')}"


def stopped_by(everything: bool, tag: str | None, destination: str | None) -> Json:
    """What a kill switch stops. Raises ValueError unless it is one of the three."""
    which = {"all": everything or None, "tag": tag, "destination": destination}
    if len(without_none(which)) != 1:
        raise ValueError("give one of everything, tag and destination")
    return which


def trigger(schedule_id: str, idempotency_key: str | None) -> Call[str]:
    def read(answer: Json) -> str:
        return str(answer["event_id"])

    return post(_path(schedule_id, "trigger"), read, key=idempotency_key)


def history(schedule_id: str, include_cancelled: bool) -> Listing[Event]:
    filters = {"include": "cancelled" if include_cancelled else None}
    return Listing(_path(schedule_id, "events/history"), "events", Event.of, filters)


def pending(schedule_id: str) -> Listing[Event]:
    return Listing(_path(schedule_id, "events/pending"), "events", Event.of)


def events(**which: Any) -> Listing[Event]:
    return Listing("/api/events", "events", Event.of, _event_filters(which))


def event(event_id: str) -> Call[Event]:
    return get(_event_path(event_id), Event.of)


def cancel_event(event_id: str) -> Call[Event]:
    return post(_event_path(event_id, "cancel"), Event.of)


def redrive(event_id: str) -> Call[Event]:
    return post(_event_path(event_id, "redrive"), Event.of)


def complete(event_id: str, token: str) -> Call[Event]:
    return replace(post(_event_path(event_id, "complete"), Event.of), completion_token=token)


def fail(event_id: str, token: str, reason: str | None) -> Call[Event]:
    body = without_none({"reason": reason})
    return replace(post(_event_path(event_id, "fail"), Event.of, body), completion_token=token)


def redrive_many(which: Json) -> EditOfMany:
    return EditOfMany("/api/events/redrive", "redriven", _event_filters(which))


def shown(
    after: datetime | str | None, until: datetime | str | None, limit: int | None, zone: str | None
) -> Json:
    """Which occurrences a preview shows, and in which zone."""
    times = {"after": _maybe_instant(after), "until": _maybe_instant(until)}
    return times | {"limit": limit, "display_timezone": zone}


def preview(
    rrule: str | None, at: datetime | str | None, which: Json, fields: Mapping[str, object]
) -> Call[Preview]:
    given = {"rrule": rrule, "at": _maybe_instant(at)} | which
    body = without_none(given) | without_none(_wire(fields))
    return post("/api/schedules/preview", Preview.of, body)


def occurrences(schedule_id: str, which: Json) -> Call[Preview]:
    return get(_path(schedule_id, "preview"), Preview.of, without_none(which))


def why(schedule_id: str, at: datetime | str) -> Call[Explanation]:
    text = at.isoformat() if isinstance(at, datetime) else at
    return get(_path(schedule_id, "why"), Explanation.of, {"at": text})


def forecast(
    after: datetime | str | None, until: datetime | str | None, bucket_seconds: int | None
) -> Call[Forecast]:
    times = {"from": _maybe_instant(after), "to": _maybe_instant(until)}
    return get("/api/forecast", Forecast.of, without_none(times | {"bucket": bucket_seconds}))


def backfill(schedule_id: str, which: Json) -> Call[Backfill]:
    given = dict(which)
    times = {"from": _maybe_instant(given.pop("after")), "to": _maybe_instant(given.pop("until"))}
    return post(_path(schedule_id, "backfill"), Backfill.of, without_none(times | given))


def get_backfill(schedule_id: str) -> Call[Backfill]:
    return get(_path(schedule_id, "backfill"), Backfill.of)


def cancel_backfill(schedule_id: str) -> Call[Backfill]:
    return Call("DELETE", _path(schedule_id, "backfill"), Backfill.of)


def backlog() -> Call[Backlog]:
    return get("/api/backlog", Backlog.of)


def expire_backlog(which: Json) -> Call[BacklogExpired]:
    given = dict(which)
    given["due_before"] = _maybe_instant(given.get("due_before"))
    return post("/api/backlog/expire", BacklogExpired.of, without_none(given))


def tzdata_check() -> Listing[MovedSchedule]:
    return Listing("/api/tzdata/check", "moved", MovedSchedule.of)


def _path(schedule_id: str, rest: str = "") -> str:
    # An id from elsewhere must not become another path.
    return f"/api/schedules/{quote(schedule_id, safe='')}" + (f"/{rest}" if rest else "")


def _event_path(event_id: str, rest: str = "") -> str:
    return f"/api/events/{quote(event_id, safe='')}" + (f"/{rest}" if rest else "")


def _event_filters(given: Json) -> Json:
    """Renames `after` and `before` to the API's `from` and `to`."""
    filters = dict(given)
    times = {"from": filters.pop("after", None), "to": filters.pop("before", None)}
    return filters | {name: _maybe_instant(value) for name, value in times.items()}


def _wire(fields: Mapping[str, object]) -> Json:
    """Fields as JSON has them: datetimes as text. Raises ValueError for one without an offset, unless the
    fields name the `timezone` that it is local to."""
    as_text = datetime.isoformat if "timezone" in fields else as_instant
    return {name: as_text(value) if isinstance(value, datetime) else value for name, value in fields.items()}


def _maybe_instant(value: datetime | str | None) -> str | None:
    return None if value is None else as_instant(value)


def as_instant(value: datetime | str | None) -> str:
    """The instant as the API takes it; text stays what it is. Raises ValueError for a datetime without an
    offset."""
    if not isinstance(value, datetime):
        return str(value)
    if value.tzinfo is None:
        raise ValueError("an instant needs an offset: datetime(…, tzinfo=UTC)")
    return value.astimezone(UTC).isoformat()
