"""The client: a method for each operation on schedules and events."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Self, Unpack
from urllib.parse import quote

from scheduler_app.client.errors import SchedulerError
from scheduler_app.client.http import Http, Json
from scheduler_app.client.schedule_fields import (
    TRIGGERS,
    NewScheduleFields,
    ScheduleFields,
    TriggerFields,
)

_A_PAGE = 100
#: Schedules that an edit of many left as they are, of which it tells one by one.
_SKIPPED = 100


class Scheduler:
    """Schedules and events are the API's JSON, as dicts. Every method raises SchedulerError.

    Each thread needs its own. What is sent again after a lost answer is done once.
    """

    def __init__(
        self, url: str, api_key: str | None = None, *, timeout: float = 10.0, retries: int = 3
    ) -> None:
        """`timeout` seconds for connecting and for each wait for bytes; `retries` beyond the first try."""
        self._http = Http(url, api_key, timeout=timeout, retries=retries)

    def schedule(
        self,
        callback_url: str,
        *,
        name: str | None = None,
        delay: timedelta | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[NewScheduleFields],
    ) -> Json:
        """Creates a schedule that calls `callback_url`, and returns it.

        `fields` are the API's: `rrule`, `run_at` and what else `NewScheduleFields` lists. `delay` is
        `run_at` counted from now. `name` is the URL without its query unless given. A request that is sent
        again with the same `idempotency_key` creates nothing a second time. Raises ValueError for none or
        several triggers, and for a datetime that has no offset and no `timezone` beside it.
        """
        given = {
            name: value for name, value in _wire(fields).items() if value is not None or name not in TRIGGERS
        }
        if sum(name in given for name in TRIGGERS) + (delay is not None) != 1:
            raise ValueError(f"give one of {', '.join(TRIGGERS)} and delay")
        if delay is not None:
            given["run_at"] = _instant(datetime.now(UTC) + delay)
        # Names are shown, and a query may hold secrets.
        shown_url = re.split(r"[?#]", callback_url, maxsplit=1)[0]
        body = {"name": name or shown_url[:100], "callback_url": callback_url, **given}
        return self._http.post("/api/schedules", body, key=idempotency_key)

    def cancel(self, schedule_id: str) -> None:
        """Deletes a schedule: events that were not sent are cancelled, and its history stays readable."""
        self._http.delete(_path(schedule_id))

    def get(self, schedule_id: str) -> Json:
        return self._http.get(_path(schedule_id))

    def find(self, schedule_id: str) -> Json | None:
        """As `get`, but None when there is no such schedule."""
        try:
            return self.get(schedule_id)
        except SchedulerError as error:
            if error.status == 404:
                return None
            raise

    def list(
        self,
        *,
        state: str | None = None,
        name: str | None = None,
        tag: str | None = None,
        last_outcome: str | None = None,
    ) -> Iterator[Json]:
        """Yields the schedules matching every given filter, newest first; pages are requested as needed.
        `last_outcome` is how their last run ended: `completed`, `error` or `retrying`."""
        which = {"state": state, "name": name, "tag": tag, "last_outcome": last_outcome}
        return self._all("/api/schedules", "schedules", which)

    def schedule_many(
        self, schedules: Sequence[Json], *, idempotency_key: str | None = None, dry_run: bool = False
    ) -> Sequence[Json]:
        """Up to 1,000 schedules in one request, in the API's own fields; the results, in the same order:
        `{"status": 201, "id": …}`, or `{"status": 422, "problem": {"detail": …}}`."""
        body = {"schedules": [*schedules]}
        made = self._http.post("/api/schedules/bulk", body, key=idempotency_key, dry_run=dry_run)
        return tuple(made["results"])

    def put(self, schedule_id: str, schedule: Json, *, dry_run: bool = False) -> Json:
        """Changes a schedule to the given fields (those of the API), or creates it where there is none;
        `result` is `created`, `changed` or `unchanged`. `dry_run` changes nothing."""
        return self._http.put(_path(schedule_id), schedule, dry_run=dry_run)

    def export(
        self,
        *,
        state: str | None = None,
        name: str | None = None,
        tag: str | None = None,
        last_outcome: str | None = None,
    ) -> Iterator[Json]:
        """Yields the schedules matching every given filter, in the form that `schedule_many` takes. Secrets
        are masked."""
        which = {"state": state, "name": name, "tag": tag, "last_outcome": last_outcome}
        query = _without_none(which)
        return map(json.loads, self._http.lines("/api/schedules/export", query))

    def update(self, schedule_id: str, **fields: Unpack[ScheduleFields]) -> Json:
        """Sets the fields given; the others stay. Where there is no such schedule it is created, if the
        fields suffice. Raises ValueError for a datetime that has no offset and no `timezone` beside it."""
        return self._http.put(_path(schedule_id), _wire(fields))

    def pause(self, schedule_id: str) -> Json:
        """Stops sending callbacks until `resume`."""
        return self._http.post(_path(schedule_id, "pause"))

    def resume(self, schedule_id: str) -> Json:
        return self._http.post(_path(schedule_id, "resume"))

    def pause_many(self, **which: Any) -> Json:
        """Pauses all schedules matching every filter in `which`: `state`, `name`, `tag`, `last_outcome`, or
        `all=True`. Returns `{"paused": 12, "skipped": [{"id", "reason"}, …]}`, the first 100 of those that
        were skipped, and `skipped_omitted`, the number of further ones. `dry_run=True` only counts."""
        return self._edit("/api/schedules/pause", "paused", which)

    def resume_many(self, **which: Any) -> Json:
        """As `pause_many`; the count is `resumed`."""
        return self._edit("/api/schedules/resume", "resumed", which)

    def delete_many(self, **which: Any) -> Json:
        """As `pause_many`; the count is `deleted`. Events not sent yet are cancelled, and histories stay."""
        return self._edit("/api/schedules/delete", "deleted", which)

    def trigger(self, schedule_id: str, *, idempotency_key: str | None = None) -> str:
        """Calls back at once, whatever the rule or the state; returns the event's id."""
        made = self._http.post(_path(schedule_id, "trigger"), key=idempotency_key)
        return str(made["event_id"])

    def history(self, schedule_id: str, *, include_cancelled: bool = False) -> Iterator[Json]:
        """Yields finished events, newest first, also of a deleted schedule. Cancelled events are left out,
        unless `include_cancelled`."""
        filters = {"include": "cancelled" if include_cancelled else None}
        return self._all(_path(schedule_id, "events/history"), "events", filters)

    def pending(self, schedule_id: str) -> Iterator[Json]:
        """Yields pending events, the next one first, as far ahead as they are expanded."""
        return self._all(_path(schedule_id, "events/pending"), "events")

    def events(
        self,
        *,
        state: str | None = None,
        schedule_id: str | None = None,
        after: datetime | str | None = None,
        before: datetime | str | None = None,
        **which: Any,
    ) -> Iterator[Json]:
        """Yields the events matching every given filter, newest first; `after` is included, `before` not.

        `state` may be several: "error,retrying". `which` are the API's other filters: `tag`, `origin`,
        `status_code` ("5xx,429"), `error`, and `timezone` for text without an offset in `after` and `before`.
        """
        given = {"state": state, "schedule_id": schedule_id, "after": after, "before": before, **which}
        return self._all("/api/events", "events", _event_filters(given))

    def event(self, event_id: str) -> Json:
        """Returns an event with its whole history."""
        return self._http.get(_event_path(event_id))

    def cancel_event(self, event_id: str) -> Json:
        """Cancels an event that is not being sent at this moment."""
        return self._http.post(_event_path(event_id, "cancel"))

    def redrive(self, event_id: str) -> Json:
        """Sends an event that ended in error again."""
        return self._http.post(_event_path(event_id, "redrive"))

    def redrive_many(self, **which: Any) -> Json:
        """Sends the dead letters again that match every filter in `which`: those of `events` but `state`, or
        `all=True`. Returns `{"redriven": 12, "skipped": …}` as `pause_many` does. `dry_run=True` only counts.
        """
        return self._edit("/api/events/redrive", "redriven", _event_filters(which))

    def preview(
        self,
        rrule: str | None = None,
        /,
        *,
        at: datetime | str | None = None,
        after: datetime | str | None = None,
        until: datetime | str | None = None,
        limit: int | None = None,
        display_timezone: str | None = None,
        **fields: Unpack[TriggerFields],
    ) -> Json:
        """When a trigger that is not saved would fire, and what it became: `{"occurrences": [{"run_time",
        "local"}, …], "trigger", "recurrence", "description", "warnings": […]}`.

        Give a rule, or another trigger by its field; `timezone`, `gap` and `overlap` beside it. The trigger
        is read as if given `at` an instant (default: now). The occurrences shown come after `after` (default:
        `at`), and none after `until`; `limit` is how many at most (default: 10, at most 1,000).
        `display_timezone` is the zone of the local times (default: the trigger's own).
        """
        times = {
            name: _maybe_instant(each) for name, each in (("at", at), ("after", after), ("until", until))
        }
        given = {"rrule": rrule, "limit": limit, "display_timezone": display_timezone} | times
        return self._http.post("/api/schedules/preview", _without_none(given) | _without_none(_wire(fields)))

    def why(self, schedule_id: str, at: datetime | str) -> Json:
        """Why a schedule fires at an instant, past or future, or why it does not: `{"fires": False, "reason":
        {"code": "BYDAY", "message": …}, "previous", "next", "event", …}`; also of a deleted schedule.

        A time without an offset is read in the schedule's zone.
        """
        text = at.isoformat() if isinstance(at, datetime) else at
        return self._http.get(_path(schedule_id, "why"), {"at": text})

    def tzdata_check(self) -> Iterator[Json]:
        """Yields the schedules that the API's zone data would move, each with its first moves: `{"id",
        "name", "moves": [{"before", "after", "seconds"}, …]}`. It changes nothing: beats with that data do."""
        return self._all("/api/tzdata/check", "moved")

    def _edit(self, path: str, done: str, which: Json) -> Json:
        """Edits page by page; `done` is the name of the count in the answers."""
        body = _without_none(which) | {"limit": _A_PAGE}
        total: Json = {done: 0, "skipped": []}
        omitted = 0
        while True:
            page = self._http.post(path, body)
            total[done] += page[done]
            room = _SKIPPED - len(total["skipped"])
            total["skipped"] += page["skipped"][:room]
            omitted += len(page["skipped"][room:]) + page.get("skipped_omitted", 0)
            if not page.get("next_cursor"):
                return total | ({"skipped_omitted": omitted} if omitted else {})
            body["cursor"] = page["next_cursor"]

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _all(self, path: str, rows: str, filters: Json | None = None) -> Iterator[Json]:
        query = _without_none(filters or {}) | {"limit": _A_PAGE}
        while True:
            page = self._http.get(path, query)
            yield from page[rows]
            if not page.get("next_cursor"):
                return
            query["cursor"] = page["next_cursor"]


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
    as_text = datetime.isoformat if "timezone" in fields else _instant
    return {name: as_text(value) if isinstance(value, datetime) else value for name, value in fields.items()}


def _maybe_instant(value: datetime | str | None) -> str | None:
    return None if value is None else _instant(value)


def _instant(value: datetime | str | None) -> str:
    if not isinstance(value, datetime):
        return str(value)
    if value.tzinfo is None:
        raise ValueError("an instant needs an offset: datetime(…, tzinfo=UTC)")
    return value.astimezone(UTC).isoformat()


def _without_none(values: Json) -> Json:
    return {name: value for name, value in values.items() if value is not None}
