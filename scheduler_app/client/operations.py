"""Each operation on schedules, forecasts, backfills and the backlog as a call or a listing: the methods of
both clients only send them.

`scheduler.py` says what the arguments mean.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduler_app.client.calls import Call, EditOfMany, Listing, delete, get, post, put, without_none
from scheduler_app.client.import_results import ImportResult
from scheduler_app.client.record import Json
from scheduler_app.client.request_values import as_instant, instant_or_none, schedule_path, wire_values
from scheduler_app.client.results import (
    BulkResult,
    Explanation,
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
        name: value
        for name, value in wire_values(fields).items()
        if value is not None or name not in TRIGGERS
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
    return post("/api/v1/schedules", Schedule.of, body, key=idempotency_key)


def _default_name(given: Json) -> str:
    """What is called. Names are shown, and a query or an argument may hold secrets."""
    if given.get("callback_url") is not None:
        return re.split(r"[?#]", given["callback_url"], maxsplit=1)[0]
    if given.get("destination") is not None:
        return str(given["destination"])
    command = given["action"].get("command") or [given["action"].get("type", "")]
    return str(command.split()[0] if isinstance(command, str) else command[0])


def cancel(schedule_id: str) -> Call[None]:
    return delete(schedule_path(schedule_id))


def get_schedule(schedule_id: str) -> Call[Schedule]:
    return get(schedule_path(schedule_id), Schedule.of)


def list_schedules(**filters: str | None) -> Listing[Schedule]:
    return Listing("/api/v1/schedules", "schedules", Schedule.of, filters)


def schedule_many(
    schedules: Sequence[Mapping[str, Any]], idempotency_key: str | None, dry_run: bool
) -> Call[tuple[BulkResult, ...]]:
    def read(answer: Json) -> tuple[BulkResult, ...]:
        return tuple(map(BulkResult.of, answer["results"]))

    body = {"schedules": [dict(each) if isinstance(each, Mapping) else each for each in schedules]}
    return post("/api/v1/schedules/bulk", read, body, key=idempotency_key, dry_run=dry_run)


def import_ics(
    ics: str,
    schedule: Mapping[str, Any],
    given: Json,
    idempotency_key: str | None,
    dry_run: bool,
) -> Call[ImportResult]:
    body = {"ics": ics, "schedule": dict(schedule)} | without_none(given)
    return post("/api/v1/schedules/import", ImportResult.of, body, key=idempotency_key, dry_run=dry_run)


def put_schedule(schedule_id: str, fields: Mapping[str, Any], dry_run: bool) -> Call[Schedule]:
    return put(schedule_path(schedule_id), Schedule.of, dict(fields), dry_run=dry_run)


def export(**filters: str | None) -> Call[None]:
    return get("/api/v1/schedules/export", lambda _: None, filters)


def update(schedule_id: str, fields: Mapping[str, object]) -> Call[Schedule]:
    return put(schedule_path(schedule_id), Schedule.of, wire_values(fields))


def pause(schedule_id: str, until: datetime | str | None, note: str | None) -> Call[Schedule]:
    body = without_none({"until": instant_or_none(until), "note": note})
    return post(schedule_path(schedule_id, "pause"), Schedule.of, body)


def resume(schedule_id: str) -> Call[Schedule]:
    return post(schedule_path(schedule_id, "resume"), Schedule.of)


def pause_many(which: Json) -> EditOfMany:
    which = which | {"until": instant_or_none(which.get("until"))}
    return EditOfMany("/api/v1/schedules/pause", "paused", which)


def resume_many(which: Json) -> EditOfMany:
    return EditOfMany("/api/v1/schedules/resume", "resumed", which)


def delete_many(which: Json) -> EditOfMany:
    return EditOfMany("/api/v1/schedules/delete", "deleted", which)


def trigger(schedule_id: str, idempotency_key: str | None) -> Call[str]:
    def read(answer: Json) -> str:
        return str(answer["event_id"])

    return post(schedule_path(schedule_id, "trigger"), read, key=idempotency_key)


def shown(
    after: datetime | str | None, until: datetime | str | None, limit: int | None, zone: str | None
) -> Json:
    """Which occurrences a preview shows, and in which zone."""
    times = {"after": instant_or_none(after), "until": instant_or_none(until)}
    return times | {"limit": limit, "display_timezone": zone}


def preview(
    rrule: str | None, at: datetime | str | None, which: Json, fields: Mapping[str, object]
) -> Call[Preview]:
    given = {"rrule": rrule, "at": instant_or_none(at)} | which
    body = without_none(given) | without_none(wire_values(fields))
    return post("/api/v1/schedules/preview", Preview.of, body)


def occurrences(schedule_id: str, which: Json) -> Call[Preview]:
    return get(schedule_path(schedule_id, "preview"), Preview.of, without_none(which))


def why(schedule_id: str, at: datetime | str) -> Call[Explanation]:
    text = at.isoformat() if isinstance(at, datetime) else at
    return get(schedule_path(schedule_id, "why"), Explanation.of, {"at": text})


def forecast(
    after: datetime | str | None, until: datetime | str | None, bucket_seconds: int | None
) -> Call[Forecast]:
    times = {"from": instant_or_none(after), "to": instant_or_none(until)}
    return get("/api/v1/forecast", Forecast.of, without_none(times | {"bucket": bucket_seconds}))


def backfill(schedule_id: str, which: Json) -> Call[Backfill]:
    given = dict(which)
    times = {"from": instant_or_none(given.pop("after")), "to": instant_or_none(given.pop("until"))}
    return post(schedule_path(schedule_id, "backfill"), Backfill.of, without_none(times | given))


def get_backfill(schedule_id: str) -> Call[Backfill]:
    return get(schedule_path(schedule_id, "backfill"), Backfill.of)


def cancel_backfill(schedule_id: str) -> Call[Backfill]:
    return Call("DELETE", schedule_path(schedule_id, "backfill"), Backfill.of)


def backlog() -> Call[Backlog]:
    return get("/api/v1/backlog", Backlog.of)


def expire_backlog(which: Json) -> Call[BacklogExpired]:
    given = dict(which)
    given["due_before"] = instant_or_none(given.get("due_before"))
    return post("/api/v1/backlog/expire", BacklogExpired.of, without_none(given))


def tzdata_check() -> Listing[MovedSchedule]:
    return Listing("/api/v1/tzdata/check", "moved", MovedSchedule.of)
