"""The client: a method for each operation on schedules and events. `async_scheduler` is its twin."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from scheduler_app.client import event_operations, operations, stop_operations
from scheduler_app.client.calls import EditOfMany, Listing, Progress
from scheduler_app.client.errors import SchedulerError
from scheduler_app.client.http import Http
from scheduler_app.client.import_results import ImportResult
from scheduler_app.client.record import Json
from scheduler_app.client.results import (
    BulkResult,
    EditResult,
    Event,
    Explanation,
    KillSwitch,
    MovedSchedule,
    Preview,
    Schedule,
)
from scheduler_app.client.schedule_fields import NewScheduleFields, ScheduleFields, TriggerFields
from scheduler_app.client.waves import Backfill, Backlog, Forecast

if TYPE_CHECKING:
    from scheduler_app.client.calendars import Calendars
    from scheduler_app.client.destinations import Destinations
    from scheduler_app.client.messages import Messages

T = TypeVar("T")


class Scheduler:
    """Every method raises SchedulerError. What they return has attributes, and is also the API's JSON as a
    mapping: see `Record`.

    Each thread needs its own. What is sent again after a lost answer is done once.
    """

    def __init__(
        self,
        url: str,
        api_key: str | None = None,
        *,
        timeout: float = 10.0,
        retries: int = 3,
        give_up_seconds: float | None = None,
    ) -> None:
        """`timeout` seconds for connecting and for each wait for bytes; `retries` beyond the first try, and
        none that would begin later than `give_up_seconds`."""
        self._http = Http(url, api_key, timeout=timeout, retries=retries, give_up_seconds=give_up_seconds)

    # Imported on demand: most programs, and each command, use one of them at most.

    @cached_property
    def messages(self) -> "Messages":
        from scheduler_app.client.messages import Messages

        return Messages(self._http, self._all)

    @cached_property
    def calendars(self) -> "Calendars":
        from scheduler_app.client.calendars import Calendars

        return Calendars(self._http, self._all)

    @cached_property
    def destinations(self) -> "Destinations":
        from scheduler_app.client.destinations import Destinations

        return Destinations(self._http, self._all)

    def schedule(
        self,
        callback_url: str | None = None,
        *,
        name: str | None = None,
        delay: timedelta | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[NewScheduleFields],
    ) -> Schedule:
        """Creates a schedule that calls `callback_url`, or a `destination` or an `action` in its place, and
        returns it.

        `fields` are the API's: `rrule`, `run_at` and what else `NewScheduleFields` lists. `delay` is
        `run_at` counted from now. `name` is the URL without its query, the destination's name, or the
        program's, unless given. A request that is sent again with the same `idempotency_key` creates nothing
        a second time. Raises ValueError for none or several triggers, for none or several of a URL, a
        destination and an action, and for a datetime that has no offset and no `timezone` beside it.
        """
        return self._http.send(operations.schedule(callback_url, name, delay, idempotency_key, fields))

    def cancel(self, schedule_id: str) -> None:
        """Deletes a schedule: events that were not sent are cancelled, and its history stays readable."""
        self._http.send(operations.cancel(schedule_id))

    def get(self, schedule_id: str) -> Schedule:
        return self._http.send(operations.get_schedule(schedule_id))

    def find(self, schedule_id: str) -> Schedule | None:
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
        name_contains: str | None = None,
        tag: str | None = None,
        last_outcome: str | None = None,
    ) -> Iterator[Schedule]:
        """Yields the schedules matching every given filter, newest first; pages are requested as needed.
        `last_outcome` is how their last run ended: `completed`, `error` or `retrying`."""
        return self._all(
            operations.list_schedules(
                state=state, name=name, name_contains=name_contains, tag=tag, last_outcome=last_outcome
            )
        )

    def schedule_many(
        self,
        schedules: Sequence[Mapping[str, Any]],
        *,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Sequence[BulkResult]:
        """Up to 1,000 schedules in one request, in the API's own fields; the results, in the same order, have
        `status` 201 and an `id`, or another status and a `problem`."""
        return self._http.send(operations.schedule_many(schedules, idempotency_key, dry_run))

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
    ) -> ImportResult:
        """Makes a schedule of each event of an iCalendar file; `schedule` is all but their names and
        triggers, in the API's own fields. `timezone` is for times that name none. An event is known by its
        UID below `id_prefix`: what an earlier import has made of it follows the file with `update`, and is
        refused where it differs without."""
        given = {"timezone": timezone, "id_prefix": id_prefix, "update": update or None}
        return self._http.send(operations.import_ics(ics, schedule, given, idempotency_key, dry_run))

    def put(self, schedule_id: str, schedule: Mapping[str, Any], *, dry_run: bool = False) -> Schedule:
        """Changes a schedule to the given fields (those of the API), or creates it where there is none;
        `result` is `created`, `changed` or `unchanged`. `dry_run` changes nothing."""
        return self._http.send(operations.put_schedule(schedule_id, schedule, dry_run))

    def export(
        self,
        *,
        state: str | None = None,
        name: str | None = None,
        name_contains: str | None = None,
        tag: str | None = None,
        last_outcome: str | None = None,
    ) -> Iterator[Json]:
        """Yields the schedules matching every given filter, in the form that `schedule_many` takes. Secrets
        are masked."""
        call = operations.export(
            state=state, name=name, name_contains=name_contains, tag=tag, last_outcome=last_outcome
        )
        return map(json.loads, self._http.lines(call))

    def update(self, schedule_id: str, **fields: Unpack[ScheduleFields]) -> Schedule:
        """Sets the fields given; the others stay. Where there is no such schedule it is created, if the
        fields suffice. Raises ValueError for a datetime that has no offset and no `timezone` beside it."""
        return self._http.send(operations.update(schedule_id, fields))

    def pause(
        self, schedule_id: str, *, until: datetime | str | None = None, note: str | None = None
    ) -> Schedule:
        """Stops sending callbacks until `resume`, or until `until`; `note` says why."""
        return self._http.send(operations.pause(schedule_id, until, note))

    def resume(self, schedule_id: str) -> Schedule:
        return self._http.send(operations.resume(schedule_id))

    def pause_many(self, *, progress: Progress | None = None, **which: Any) -> EditResult:
        """Pauses all schedules matching every filter in `which`: `state`, `name`, `name_contains`,
        `tag`, `last_outcome`, or `all=True`. Returns the `count` (`paused` in JSON), `skipped`, the first 100
        of those that were skipped, and `skipped_omitted`, the number of further ones. `dry_run=True` only
        counts; `until` and `note` are those of `pause`. `progress` is called after each page with the count
        so far."""
        return self._edit(operations.pause_many(which), progress)

    def resume_many(self, *, progress: Progress | None = None, **which: Any) -> EditResult:
        """As `pause_many`; the count is `resumed` in JSON."""
        return self._edit(operations.resume_many(which), progress)

    def delete_many(self, *, progress: Progress | None = None, **which: Any) -> EditResult:
        """As `pause_many`; the count is `deleted` in JSON. Events not sent yet are cancelled."""
        return self._edit(operations.delete_many(which), progress)

    def kill_switch_on(
        self,
        *,
        everything: bool = False,
        tag: str | None = None,
        destination: str | None = None,
        note: str | None = None,
    ) -> KillSwitch:
        """Stops everything, a tag or a destination: within a second nothing of it is sent. No schedule is
        changed. Raises ValueError unless one of the three is given."""
        which = stop_operations.stopped_by(everything, tag, destination)
        return self._http.send(stop_operations.kill_switch_on(which, note))

    def kill_switch_off(
        self, *, everything: bool = False, tag: str | None = None, destination: str | None = None
    ) -> int:
        """Releases it; returns how many events were held and are due again, 10,000 at most."""
        which = stop_operations.stopped_by(everything, tag, destination)
        return self._http.send(stop_operations.kill_switch_off(which))

    def kill_switches(self) -> tuple[KillSwitch, ...]:
        """Those that are on."""
        return self._http.send(stop_operations.kill_switches())

    def put_blackout(self, name: str, fields: Mapping[str, Any], *, dry_run: bool = False) -> Json:
        """Sets a blackout, or replaces the one of that name; `fields` are those of the API. `result` is
        `created`, `changed` or `unchanged`. `dry_run` changes nothing."""
        return self._http.send(stop_operations.put_blackout(name, fields, dry_run))

    def get_blackout(self, name: str) -> Json:
        """One as the API shows it, with its present or next window."""
        return self._http.send(stop_operations.get_blackout(name))

    def blackouts(self) -> tuple[Json, ...]:
        """All blackouts as the API shows them, each with its present or next window."""
        return self._http.send(stop_operations.blackouts())

    def delete_blackout(self, name: str) -> None:
        self._http.send(stop_operations.delete_blackout(name))

    def trigger(self, schedule_id: str, *, idempotency_key: str | None = None) -> str:
        """Calls back at once, whatever the rule or the state; returns the event's id."""
        return self._http.send(operations.trigger(schedule_id, idempotency_key))

    def history(self, schedule_id: str, *, include_cancelled: bool = False) -> Iterator[Event]:
        """Yields finished events, newest first, also of a deleted schedule. Cancelled events are left out,
        unless `include_cancelled`."""
        return self._all(event_operations.history(schedule_id, include_cancelled))

    def pending(self, schedule_id: str) -> Iterator[Event]:
        """Yields pending events, the next one first, as far ahead as they are expanded."""
        return self._all(event_operations.pending(schedule_id))

    def events(
        self,
        *,
        state: str | None = None,
        schedule_id: str | None = None,
        after: datetime | str | None = None,
        before: datetime | str | None = None,
        **which: Any,
    ) -> Iterator[Event]:
        """Yields the events matching every given filter, newest first; `after` is included, `before` not.

        `state` may be several: "error,retrying". `which` are the API's other filters: `tag`, `origin`,
        `status_code` ("5xx,429"), `error`, and `timezone` for text without an offset in `after` and `before`.
        """
        given = {"state": state, "schedule_id": schedule_id, "after": after, "before": before}
        return self._all(event_operations.events(**given, **which))

    def event(self, event_id: str) -> Event:
        """Returns an event with its whole history."""
        return self._http.send(event_operations.event(event_id))

    def cancel_event(self, event_id: str) -> Event:
        """Cancels an event that is not being sent at this moment."""
        return self._http.send(event_operations.cancel_event(event_id))

    def redrive(self, event_id: str) -> Event:
        """Sends an event that ended in error again."""
        return self._http.send(event_operations.redrive(event_id))

    def complete(self, event_id: str, token: str) -> Event:
        """Says, as the receiver of an event whose schedule has `completion="callback"`, that its work is
        done. `token` is the `X-Scheduler-Completion-Token` of its callback; no API key is needed."""
        return self._http.send(event_operations.complete(event_id, token))

    def fail(self, event_id: str, token: str, reason: str | None = None) -> Event:
        """Says in the same way that its work failed, and perhaps why; the next attempt follows if one is
        left."""
        return self._http.send(event_operations.fail(event_id, token, reason))

    def redrive_many(self, *, progress: Progress | None = None, **which: Any) -> EditResult:
        """Sends the dead letters again that match every filter in `which`: those of `events` but `state`, or
        `all=True`, at once or `rate` of them in a second. Returns what `pause_many` does; the count is
        `redriven` in JSON."""
        return self._edit(event_operations.redrive_many(which), progress)

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
    ) -> Preview:
        """When a trigger that is not saved would fire: its `occurrences` and `warnings`.

        Give a rule, or another trigger by its field; `timezone`, `gap` and `overlap` beside it. The trigger
        is read as if given `at` an instant (default: now). The occurrences shown come after `after` (default:
        `at`), and none after `until`; `limit` is how many at most (default: 10, at most 1,000).
        `display_timezone` is the zone of the local times (default: the trigger's own).
        """
        shown = operations.shown(after, until, limit, display_timezone)
        return self._http.send(operations.preview(rrule, at, shown, fields))

    def occurrences(
        self,
        schedule_id: str,
        *,
        after: datetime | str | None = None,
        until: datetime | str | None = None,
        limit: int | None = None,
        display_timezone: str | None = None,
    ) -> Preview:
        """When a schedule's trigger fires, whatever the schedule's state, as `preview` shows it: each of its
        occurrences with its jitter (`due_at`) and the `blackout` that it falls into."""
        shown = operations.shown(after, until, limit, display_timezone)
        return self._http.send(operations.occurrences(schedule_id, shown))

    def why(self, schedule_id: str, at: datetime | str) -> Explanation:
        """Why a schedule fires at an instant, past or future, or why it does not; also of a deleted one.

        A time without an offset is read in the schedule's zone.
        """
        return self._http.send(operations.why(schedule_id, at))

    def forecast(
        self,
        *,
        after: datetime | str | None = None,
        until: datetime | str | None = None,
        bucket_seconds: int | None = None,
    ) -> Forecast:
        """How many callbacks fall due from `after` (default: now) until `until` (default: a day later), in
        parts of `bucket_seconds`, by destination and origin. `sampled` tells whether they are estimates."""
        return self._http.send(operations.forecast(after, until, bucket_seconds))

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
    ) -> Backfill:
        """Makes events for past occurrences from `after` to `until` (default: now), `rate_per_second` of them
        in a second at most (default: 10).

        Occurrences that have an event that waits, succeeded or failed are left out unless `only_missing` is
        False. `overlap` is `allow` or `queue`: one after the other.
        """
        which = {
            "after": after,
            "until": until,
            "rate_per_second": rate_per_second,
            "overlap": overlap,
            "only_missing": only_missing,
            "dry_run": dry_run,
        }
        return self._http.send(operations.backfill(schedule_id, which))

    def get_backfill(self, schedule_id: str) -> Backfill:
        """How far the schedule's newest backfill has come."""
        return self._http.send(operations.get_backfill(schedule_id))

    def cancel_backfill(self, schedule_id: str) -> Backfill:
        """Ends the schedule's backfill and withdraws what waits of it."""
        return self._http.send(operations.cancel_backfill(schedule_id))

    def backlog(self) -> Backlog:
        """What was due before now and waits, by schedule and receiver, and how long it takes."""
        return self._http.send(operations.backlog())

    def expire_backlog(self, **which: Any) -> int:
        """Gives up the late events that match all of `which`: `schedule_id`, `destination` or `origin`,
        `due_before`; or `all=True`. They are `expired`. With `dry_run=True` they are only counted. Returns
        how many."""
        count = 0
        while True:
            page = self._http.send(operations.expire_backlog(which))
            count += page.expired
            if not page.more:
                return count

    def tzdata_check(self) -> Iterator[MovedSchedule]:
        """Yields the schedules that the API's zone data would move, each with its first moves. It changes
        nothing: beats with that data do."""
        return self._all(operations.tzdata_check())

    def _edit(self, edit: EditOfMany, progress: Progress | None) -> EditResult:
        for call in edit.calls():
            self._http.send(call)
            if progress is not None:
                progress(edit.count)
        return edit.result()

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _all(self, listing: Listing[T]) -> Iterator[T]:
        cursor: str | None = None
        while True:
            page = self._http.send(listing.page(cursor))
            yield from page.rows
            cursor = page.next_cursor
            if not cursor:
                return
