"""The client for asyncio: the methods of `Scheduler`, where their meaning stands."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from scheduler_app.client import event_operations, operations, stop_operations
from scheduler_app.client.async_http import AsyncHttp
from scheduler_app.client.calls import EditOfMany, Listing, Progress
from scheduler_app.client.errors import SchedulerError
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
    from scheduler_app.client.async_calendars import AsyncCalendars
    from scheduler_app.client.async_destinations import AsyncDestinations
    from scheduler_app.client.async_messages import AsyncMessages

T = TypeVar("T")


class AsyncScheduler:
    """`Scheduler` for asyncio, over httpx: the same methods, to be awaited, and iterators for `async for`.

    The tasks of one event loop share it, and its connections; close it, or use it by `async with`.
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
        self._http = AsyncHttp(
            url, api_key, timeout=timeout, retries=retries, give_up_seconds=give_up_seconds
        )

    # Imported on demand: most programs, and each command, use one of them at most.

    @cached_property
    def messages(self) -> "AsyncMessages":
        from scheduler_app.client.async_messages import AsyncMessages

        return AsyncMessages(self._http, self._all)

    @cached_property
    def calendars(self) -> "AsyncCalendars":
        from scheduler_app.client.async_calendars import AsyncCalendars

        return AsyncCalendars(self._http, self._all)

    @cached_property
    def destinations(self) -> "AsyncDestinations":
        from scheduler_app.client.async_destinations import AsyncDestinations

        return AsyncDestinations(self._http, self._all)

    async def schedule(
        self,
        callback_url: str | None = None,
        *,
        name: str | None = None,
        delay: timedelta | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[NewScheduleFields],
    ) -> Schedule:
        return await self._http.send(operations.schedule(callback_url, name, delay, idempotency_key, fields))

    async def cancel(self, schedule_id: str) -> None:
        await self._http.send(operations.cancel(schedule_id))

    async def get(self, schedule_id: str) -> Schedule:
        return await self._http.send(operations.get_schedule(schedule_id))

    async def find(self, schedule_id: str) -> Schedule | None:
        try:
            return await self.get(schedule_id)
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
    ) -> AsyncIterator[Schedule]:
        return self._all(
            operations.list_schedules(
                state=state, name=name, name_contains=name_contains, tag=tag, last_outcome=last_outcome
            )
        )

    async def schedule_many(
        self,
        schedules: Sequence[Mapping[str, Any]],
        *,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Sequence[BulkResult]:
        return await self._http.send(operations.schedule_many(schedules, idempotency_key, dry_run))

    async def import_ics(
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
        given = {"timezone": timezone, "id_prefix": id_prefix, "update": update or None}
        return await self._http.send(operations.import_ics(ics, schedule, given, idempotency_key, dry_run))

    async def put(self, schedule_id: str, schedule: Mapping[str, Any], *, dry_run: bool = False) -> Schedule:
        return await self._http.send(operations.put_schedule(schedule_id, schedule, dry_run))

    async def export(
        self,
        *,
        state: str | None = None,
        name: str | None = None,
        name_contains: str | None = None,
        tag: str | None = None,
        last_outcome: str | None = None,
    ) -> AsyncIterator[Json]:
        call = operations.export(
            state=state, name=name, name_contains=name_contains, tag=tag, last_outcome=last_outcome
        )
        async for line in self._http.lines(call):
            yield json.loads(line)

    async def update(self, schedule_id: str, **fields: Unpack[ScheduleFields]) -> Schedule:
        return await self._http.send(operations.update(schedule_id, fields))

    async def pause(
        self, schedule_id: str, *, until: datetime | str | None = None, note: str | None = None
    ) -> Schedule:
        return await self._http.send(operations.pause(schedule_id, until, note))

    async def resume(self, schedule_id: str) -> Schedule:
        return await self._http.send(operations.resume(schedule_id))

    async def pause_many(self, *, progress: Progress | None = None, **which: Any) -> EditResult:
        return await self._edit(operations.pause_many(which), progress)

    async def resume_many(self, *, progress: Progress | None = None, **which: Any) -> EditResult:
        return await self._edit(operations.resume_many(which), progress)

    async def delete_many(self, *, progress: Progress | None = None, **which: Any) -> EditResult:
        return await self._edit(operations.delete_many(which), progress)

    async def kill_switch_on(
        self,
        *,
        everything: bool = False,
        tag: str | None = None,
        destination: str | None = None,
        note: str | None = None,
    ) -> KillSwitch:
        which = stop_operations.stopped_by(everything, tag, destination)
        return await self._http.send(stop_operations.kill_switch_on(which, note))

    async def kill_switch_off(
        self, *, everything: bool = False, tag: str | None = None, destination: str | None = None
    ) -> int:
        which = stop_operations.stopped_by(everything, tag, destination)
        return await self._http.send(stop_operations.kill_switch_off(which))

    async def kill_switches(self) -> tuple[KillSwitch, ...]:
        return await self._http.send(stop_operations.kill_switches())

    async def put_blackout(self, name: str, fields: Mapping[str, Any], *, dry_run: bool = False) -> Json:
        return await self._http.send(stop_operations.put_blackout(name, fields, dry_run))

    async def get_blackout(self, name: str) -> Json:
        return await self._http.send(stop_operations.get_blackout(name))

    async def blackouts(self) -> tuple[Json, ...]:
        return await self._http.send(stop_operations.blackouts())

    async def delete_blackout(self, name: str) -> None:
        await self._http.send(stop_operations.delete_blackout(name))

    async def trigger(self, schedule_id: str, *, idempotency_key: str | None = None) -> str:
        return await self._http.send(operations.trigger(schedule_id, idempotency_key))

    def history(self, schedule_id: str, *, include_cancelled: bool = False) -> AsyncIterator[Event]:
        return self._all(event_operations.history(schedule_id, include_cancelled))

    def pending(self, schedule_id: str) -> AsyncIterator[Event]:
        return self._all(event_operations.pending(schedule_id))

    def events(
        self,
        *,
        state: str | None = None,
        schedule_id: str | None = None,
        after: datetime | str | None = None,
        before: datetime | str | None = None,
        **which: Any,
    ) -> AsyncIterator[Event]:
        given = {"state": state, "schedule_id": schedule_id, "after": after, "before": before}
        return self._all(event_operations.events(**given, **which))

    async def event(self, event_id: str) -> Event:
        return await self._http.send(event_operations.event(event_id))

    async def cancel_event(self, event_id: str) -> Event:
        return await self._http.send(event_operations.cancel_event(event_id))

    async def redrive(self, event_id: str) -> Event:
        return await self._http.send(event_operations.redrive(event_id))

    async def complete(self, event_id: str, token: str) -> Event:
        return await self._http.send(event_operations.complete(event_id, token))

    async def fail(self, event_id: str, token: str, reason: str | None = None) -> Event:
        return await self._http.send(event_operations.fail(event_id, token, reason))

    async def redrive_many(self, *, progress: Progress | None = None, **which: Any) -> EditResult:
        return await self._edit(event_operations.redrive_many(which), progress)

    async def preview(
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
        shown = operations.shown(after, until, limit, display_timezone)
        return await self._http.send(operations.preview(rrule, at, shown, fields))

    async def occurrences(
        self,
        schedule_id: str,
        *,
        after: datetime | str | None = None,
        until: datetime | str | None = None,
        limit: int | None = None,
        display_timezone: str | None = None,
    ) -> Preview:
        shown = operations.shown(after, until, limit, display_timezone)
        return await self._http.send(operations.occurrences(schedule_id, shown))

    async def why(self, schedule_id: str, at: datetime | str) -> Explanation:
        return await self._http.send(operations.why(schedule_id, at))

    async def forecast(
        self,
        *,
        after: datetime | str | None = None,
        until: datetime | str | None = None,
        bucket_seconds: int | None = None,
    ) -> Forecast:
        return await self._http.send(operations.forecast(after, until, bucket_seconds))

    async def backfill(
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
        which = {
            "after": after,
            "until": until,
            "rate_per_second": rate_per_second,
            "overlap": overlap,
            "only_missing": only_missing,
            "dry_run": dry_run,
        }
        return await self._http.send(operations.backfill(schedule_id, which))

    async def get_backfill(self, schedule_id: str) -> Backfill:
        return await self._http.send(operations.get_backfill(schedule_id))

    async def cancel_backfill(self, schedule_id: str) -> Backfill:
        return await self._http.send(operations.cancel_backfill(schedule_id))

    async def backlog(self) -> Backlog:
        return await self._http.send(operations.backlog())

    async def expire_backlog(self, **which: Any) -> int:
        count = 0
        while True:
            page = await self._http.send(operations.expire_backlog(which))
            count += page.expired
            if not page.more:
                return count

    def tzdata_check(self) -> AsyncIterator[MovedSchedule]:
        return self._all(operations.tzdata_check())

    async def _edit(self, edit: EditOfMany, progress: Progress | None) -> EditResult:
        for call in edit.calls():
            await self._http.send(call)
            if progress is not None:
                progress(edit.count)
        return edit.result()

    async def close(self) -> None:
        await self._http.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _all(self, listing: Listing[T]) -> AsyncIterator[T]:
        cursor: str | None = None
        while True:
            page = await self._http.send(listing.page(cursor))
            for row in page.rows:
                yield row
            cursor = page.next_cursor
            if not cursor:
                return
