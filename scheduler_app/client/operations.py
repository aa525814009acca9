"""The operations on schedules and events, and on what is late; with those of other modules, the methods that
`Scheduler` and `AsyncScheduler` have in common, each as the request that it sends."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, Unpack

from scheduler_app.client import calls
from scheduler_app.client.access import AccessOperations
from scheduler_app.client.calls import Call, Listing, Progress, Steps, instants, path_of, without_none
from scheduler_app.client.failures import FailureOperations
from scheduler_app.client.methods import listing, operation
from scheduler_app.client.notifications import NotificationOperations
from scheduler_app.client.questions import QuestionOperations
from scheduler_app.client.record import Json
from scheduler_app.client.results import (
    Backfill,
    Backlog,
    BacklogExpired,
    BulkResult,
    EditResult,
    Event,
    Explanation,
    Forecast,
    ImportResult,
    MovedSchedule,
    Preview,
    Schedule,
)
from scheduler_app.client.schedule_fields import TRIGGERS, NewScheduleFields, ScheduleFields, TriggerFields
from scheduler_app.client.stops import StopOperations

T = TypeVar("T")


class SchedulerOperations(
    StopOperations, NotificationOperations, FailureOperations, QuestionOperations, AccessOperations
):
    """Every method raises SchedulerError. What they return has attributes, and is also the API's JSON as a
    mapping: see `Record`."""

    @operation
    def schedule(
        self,
        callback_url: str | None = None,
        *,
        name: str | None = None,
        delay: timedelta | None = None,
        idempotency_key: str | None = None,
        promise: bool = False,
        **fields: Unpack[NewScheduleFields],
    ) -> Call[Schedule]:
        """Creates a schedule that calls `callback_url`, or a `destination` or an `action` in its place, and
        returns it.

        `fields` are the API's: `rrule`, `run_at` and what else `NewScheduleFields` lists. `delay` is
        `run_at` counted from now. `name` is the URL without its query, the destination's name, or the
        program's, unless given. A request that is sent again with the same `idempotency_key` creates nothing
        a second time. With `promise` the answer has one: the next times, whether the receiver answers, and
        what is in the way. Raises ValueError for none or several triggers, for none or several of a URL, a
        destination and an action, and for a datetime that has no offset and no `timezone` beside it.
        """
        given = {
            name: value
            for name, value in calls.wire_values(fields).items()
            if value is not None or name not in TRIGGERS
        }
        if sum(name in given for name in TRIGGERS) + (delay is not None) != 1:
            raise ValueError(f"give one of {', '.join(TRIGGERS)} and delay")
        if delay is not None:
            given["run_at"] = calls.as_instant(datetime.now(UTC) + delay)
        given |= without_none({"callback_url": callback_url})
        if sum(given.get(each) is not None for each in ("callback_url", "destination", "action")) != 1:
            raise ValueError("give callback_url, destination or action")
        body = {"name": name or _default_name(given)[:100], **given}
        return _promised(calls.post("/api/v1/schedules", Schedule.of, body, key=idempotency_key), promise)

    @operation
    def cancel(self, schedule_id: str) -> Call[None]:
        """Deletes a schedule: events that were not sent are cancelled, and its history stays readable."""
        return calls.delete(_schedule(schedule_id))

    @operation
    def get(self, schedule_id: str) -> Call[Schedule]:
        """Returns a schedule."""
        return calls.get(_schedule(schedule_id), Schedule.of)

    @operation
    def find(self, schedule_id: str) -> Call[Schedule | None]:
        """As `get`, but None when there is no such schedule."""
        return calls.find(_schedule(schedule_id), Schedule.of)

    @listing
    def list(
        self,
        *,
        state: str | None = None,
        name: str | None = None,
        name_contains: str | None = None,
        tag: str | None = None,
        last_outcome: str | None = None,
    ) -> Listing[Schedule]:
        """Yields the schedules matching every given filter, newest first; pages are requested as needed.
        `last_outcome` is how their last run ended: `completed`, `error` or `retrying`."""
        which = {"state": state, "name": name, "name_contains": name_contains}
        which |= {"tag": tag, "last_outcome": last_outcome}
        return Listing("/api/v1/schedules", "schedules", Schedule.of, which)

    @operation
    def schedule_many(
        self,
        schedules: Sequence[Mapping[str, Any]],
        *,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Call[Sequence[BulkResult]]:
        """Up to 1,000 schedules in one request, in the API's own fields; the results, in the same order, have
        `status` 201 and an `id`, or another status and a `problem`."""
        body = {"schedules": [dict(each) if isinstance(each, Mapping) else each for each in schedules]}
        read = calls.each(BulkResult.of, "results")
        return calls.post("/api/v1/schedules/bulk", read, body, key=idempotency_key, dry_run=dry_run)

    @operation
    def import_ics(
        self,
        ics: str,
        schedule: Mapping[str, Any],
        *,
        timezone: str | None = None,
        id_prefix: str | None = None,
        update: bool = False,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Call[ImportResult]:
        """Makes a schedule of each event of an iCalendar file; `schedule` is all but their names and
        triggers, in the API's own fields. `timezone` is for times that name none. An event is known by its
        UID below `id_prefix`: what an earlier import has made of it follows the file with `update`, and is
        refused where it differs without."""
        given = without_none({"timezone": timezone, "id_prefix": id_prefix, "update": update or None})
        body = {"ics": ics, "schedule": dict(schedule)} | given
        path = "/api/v1/schedules/import"
        return calls.post(path, ImportResult.of, body, key=idempotency_key, dry_run=dry_run)

    @operation
    def put(self, schedule_id: str, schedule: Mapping[str, Any], *, dry_run: bool = False) -> Call[Schedule]:
        """Changes a schedule to the given fields (those of the API), or creates it where there is none;
        `result` is `created`, `changed` or `unchanged`. `dry_run` changes nothing."""
        return calls.put(_schedule(schedule_id), Schedule.of, schedule, dry_run=dry_run)

    @listing
    def export(
        self,
        *,
        state: str | None = None,
        name: str | None = None,
        name_contains: str | None = None,
        tag: str | None = None,
        last_outcome: str | None = None,
    ) -> Call[Json]:
        """Yields the schedules matching every given filter, in the form that `schedule_many` takes. Secrets
        are masked."""
        which = {"state": state, "name": name, "name_contains": name_contains}
        which |= {"tag": tag, "last_outcome": last_outcome}
        return calls.get("/api/v1/schedules/export", dict, which)

    @operation
    def update(
        self, schedule_id: str, *, promise: bool = False, **fields: Unpack[ScheduleFields]
    ) -> Call[Schedule]:
        """Sets the fields given; the others stay. Where there is no such schedule it is created, if the
        fields suffice. `promise` is that of `schedule`. Raises ValueError for a datetime that has no offset
        and no `timezone` beside it."""
        return _promised(calls.put(_schedule(schedule_id), Schedule.of, calls.wire_values(fields)), promise)

    @operation
    def pause(
        self, schedule_id: str, *, until: datetime | str | None = None, note: str | None = None
    ) -> Call[Schedule]:
        """Stops sending callbacks until `resume`, or until `until`; `note` says why."""
        body = instants({"until": until}) | without_none({"note": note})
        return calls.post(_schedule(schedule_id, "pause"), Schedule.of, body)

    @operation
    def resume(self, schedule_id: str) -> Call[Schedule]:
        """Ends a pause."""
        return calls.post(_schedule(schedule_id, "resume"), Schedule.of)

    @operation
    def pause_many(self, /, *, progress: Progress | None = None, **which: Any) -> Steps[EditResult]:
        """Pauses all schedules matching every filter in `which`: `state`, `name`, `name_contains`,
        `tag`, `last_outcome`, or `all=True`. Returns the `count` (`paused` in JSON), `skipped`, the first 100
        of those that were skipped, and `skipped_omitted`, the number of further ones. `dry_run=True` only
        counts; `until` and `note` are those of `pause`. `progress` is called after each page with the count
        so far."""
        which |= instants({"until": which.get("until")})
        return calls.edit_of_many("/api/v1/schedules/pause", "paused", which, progress)

    @operation
    def resume_many(self, /, *, progress: Progress | None = None, **which: Any) -> Steps[EditResult]:
        """As `pause_many`; the count is `resumed` in JSON."""
        return calls.edit_of_many("/api/v1/schedules/resume", "resumed", which, progress)

    @operation
    def delete_many(self, /, *, progress: Progress | None = None, **which: Any) -> Steps[EditResult]:
        """As `pause_many`; the count is `deleted` in JSON. Events not sent yet are cancelled."""
        return calls.edit_of_many("/api/v1/schedules/delete", "deleted", which, progress)

    @operation
    def trigger(self, schedule_id: str, *, idempotency_key: str | None = None) -> Call[str]:
        """Calls back at once, whatever the rule or the state; returns the event's id."""
        path = _schedule(schedule_id, "trigger")
        return calls.post(path, lambda answer: str(answer["event_id"]), key=idempotency_key)

    @listing
    def history(self, schedule_id: str, *, include_cancelled: bool = False) -> Listing[Event]:
        """Yields finished events, newest first, also of a deleted schedule. Cancelled events are left out,
        unless `include_cancelled`."""
        filters = {"include": "cancelled" if include_cancelled else None}
        return Listing(_schedule(schedule_id, "events/history"), "events", Event.of, filters)

    @listing
    def pending(self, schedule_id: str) -> Listing[Event]:
        """Yields pending events, the next one first, as far ahead as they are expanded."""
        return Listing(_schedule(schedule_id, "events/pending"), "events", Event.of)

    @listing
    def events(
        self,
        /,
        *,
        state: str | None = None,
        schedule_id: str | None = None,
        after: datetime | str | None = None,
        before: datetime | str | None = None,
        **which: Any,
    ) -> Listing[Event]:
        """Yields the events matching every given filter, newest first; `after` is included, `before` not.

        `state` may be several: "error,retrying". `which` are the API's other filters: `tag`, `origin`,
        `status_code` ("5xx,429"), `error`, and `timezone` for text without an offset in `after` and `before`.
        """
        filters = which | {"state": state, "schedule_id": schedule_id}
        filters |= instants({"from": after, "to": before})
        return Listing("/api/v1/events", "events", Event.of, filters)

    @operation
    def event(self, event_id: str) -> Call[Event]:
        """Returns an event with its whole history."""
        return calls.get(path_of("events", event_id), Event.of)

    @operation
    def cancel_event(self, event_id: str) -> Call[Event]:
        """Cancels an event that is not being sent at this moment."""
        return calls.post(path_of("events", event_id, "cancel"), Event.of)

    @operation
    def redrive(self, event_id: str) -> Call[Event]:
        """Sends an event that ended in error again."""
        return calls.post(path_of("events", event_id, "redrive"), Event.of)

    @operation
    def complete(self, event_id: str, token: str) -> Call[Event]:
        """Says, as the receiver of an event whose schedule has `completion="callback"`, that its work is
        done. `token` is the `X-Scheduler-Completion-Token` of its callback; no API key is needed."""
        return calls.post(path_of("events", event_id, "complete"), Event.of, token=token)

    @operation
    def fail(self, event_id: str, token: str, reason: str | None = None) -> Call[Event]:
        """Says in the same way that its work failed, and perhaps why; the next attempt follows if one is
        left."""
        body = without_none({"reason": reason})
        return calls.post(path_of("events", event_id, "fail"), Event.of, body, token=token)

    @operation
    def redrive_many(self, /, *, progress: Progress | None = None, **which: Any) -> Steps[EditResult]:
        """Sends the dead letters again that match every filter in `which`: those of `events` but `state`, or
        `all=True`, at once or `rate` of them in a second. Returns what `pause_many` does; the count is
        `redriven` in JSON."""
        which |= instants({"from": which.pop("after", None), "to": which.pop("before", None)})
        return calls.edit_of_many("/api/v1/events/redrive", "redriven", which, progress)

    @operation
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
        promise: bool = False,
        **fields: Unpack[TriggerFields],
    ) -> Call[Preview]:
        """When a trigger that is not saved would fire: its `occurrences` and `warnings`.

        Give a rule, or another trigger by its field; `timezone`, `gap` and `overlap` beside it. The trigger
        is read as if given `at` an instant (default: now). The occurrences shown come after `after` (default:
        `at`), and none after `until`; `limit` is how many at most (default: 10, at most 1,000).
        `display_timezone` is the zone of the local times (default: the trigger's own). `promise` is that of
        `schedule`.
        """
        given = without_none({"rrule": rrule, "limit": limit, "display_timezone": display_timezone})
        given |= instants({"at": at, "after": after, "until": until})
        body = given | without_none(calls.wire_values(fields))
        return _promised(calls.post("/api/v1/schedules/preview", Preview.of, body), promise)

    @operation
    def occurrences(
        self,
        schedule_id: str,
        *,
        after: datetime | str | None = None,
        until: datetime | str | None = None,
        limit: int | None = None,
        display_timezone: str | None = None,
        promise: bool = False,
    ) -> Call[Preview]:
        """When a schedule's trigger fires, whatever the schedule's state, as `preview` shows it: each of its
        occurrences with its jitter (`due_at`) and the `blackout` that it falls into. `promise` is that of
        `schedule`."""
        query = instants({"after": after, "until": until})
        query |= {"limit": limit, "display_timezone": display_timezone}
        return _promised(calls.get(_schedule(schedule_id, "preview"), Preview.of, query), promise)

    @operation
    def why(self, schedule_id: str, at: datetime | str) -> Call[Explanation]:
        """Why a schedule fires at an instant, past or future, or why it does not; also of a deleted one.

        A time without an offset is read in the schedule's zone.
        """
        text = at.isoformat() if isinstance(at, datetime) else at
        return calls.get(_schedule(schedule_id, "why"), Explanation.of, {"at": text})

    @operation
    def forecast(
        self,
        *,
        after: datetime | str | None = None,
        until: datetime | str | None = None,
        bucket_seconds: int | None = None,
        tag: str | None = None,
    ) -> Call[Forecast]:
        """How many callbacks fall due from `after` (default: now) until `until` (default: a day later), in
        parts of `bucket_seconds`, by destination and origin; with `tag`, those of the schedules that have it.
        `sampled` tells whether they are estimates."""
        query = instants({"from": after, "to": until}) | {"bucket": bucket_seconds, "tag": tag}
        return calls.get("/api/v1/forecast", Forecast.of, query)

    @operation
    def backfill(
        self,
        schedule_id: str,
        *,
        after: datetime | str,
        until: datetime | str | None = None,
        rate_per_second: float | None = None,
        overlap: str | None = None,
        only_missing: bool | None = None,
        dry_run: bool = False,
    ) -> Call[Backfill]:
        """Makes events for past occurrences from `after` to `until` (default: now), `rate_per_second` of them
        in a second at most (default: 10).

        Occurrences that have an event that waits, succeeded or failed are left out unless `only_missing` is
        False. `overlap` is `allow` or `queue`: one after the other.
        """
        given = {"rate_per_second": rate_per_second, "overlap": overlap, "only_missing": only_missing}
        body = instants({"from": after, "to": until}) | without_none(given) | {"dry_run": dry_run}
        return calls.post(_schedule(schedule_id, "backfill"), Backfill.of, body)

    @operation
    def get_backfill(self, schedule_id: str) -> Call[Backfill]:
        """How far the schedule's newest backfill has come."""
        return calls.get(_schedule(schedule_id, "backfill"), Backfill.of)

    @operation
    def cancel_backfill(self, schedule_id: str) -> Call[Backfill]:
        """Ends the schedule's backfill and withdraws what waits of it."""
        return Call("DELETE", _schedule(schedule_id, "backfill"), Backfill.of)

    @operation
    def backlog(self) -> Call[Backlog]:
        """What was due before now and waits, by schedule and receiver, and how long it takes."""
        return calls.get("/api/v1/backlog", Backlog.of)

    @operation
    def expire_backlog(self, /, **which: Any) -> Steps[int]:
        """Gives up the late events that match all of `which`: `schedule_id`, `destination` or `origin`,
        `due_before`; or `all=True`. They are `expired`. With `dry_run=True` they are only counted. Returns
        how many."""
        body = without_none(which) | instants({"due_before": which.get("due_before")})
        count, more = 0, True
        while more:
            page: BacklogExpired = yield calls.post("/api/v1/backlog/expire", BacklogExpired.of, body)
            count, more = count + page.expired, page.more
        return count

    @listing
    def tzdata_check(self) -> Listing[MovedSchedule]:
        """Yields the schedules that the API's zone data would move, each with its first moves. It changes
        nothing: beats with that data do."""
        return Listing("/api/v1/tzdata/check", "moved", MovedSchedule.of)


def _promised(call: Call[T], promise: bool) -> Call[T]:
    return replace(call, query={**call.query, "promise": "true"}) if promise else call


def _schedule(schedule_id: str, rest: str = "") -> str:
    return path_of("schedules", schedule_id, rest)


def _default_name(given: Json) -> str:
    """What is called. Names are shown, and a query or an argument may hold secrets."""
    if given.get("callback_url") is not None:
        return re.split(r"[?#]", given["callback_url"], maxsplit=1)[0]
    if given.get("destination") is not None:
        return str(given["destination"])
    command = given["action"].get("command") or [given["action"].get("type", "")]
    return str(command.split()[0] if isinstance(command, str) else command[0])
