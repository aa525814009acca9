"""Explain: why does a schedule fire at an instant, or why does it not?"""

from dataclasses import replace
from datetime import datetime, timedelta

from scheduler_app.domain.errors import Conflict, NotFound
from scheduler_app.domain.event import due
from scheduler_app.domain.explanation import EventFacts, Explanation, explain
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.recurrence import Reason, Recurrence
from scheduler_app.domain.recurrence.zones import instant_at
from scheduler_app.domain.schedule import TICK, Schedule
from scheduler_app.domain.states import Kind, State
from scheduler_app.store import Store
from scheduler_app.store.events.events import EventRecord
from scheduler_app.store.paging import PageRequest
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.usecases.stops import blackout_cover

#: Events of one schedule at one instant that are looked at: its revisions', and those made by hand.
EVENTS_AT_ONCE = 100
#: Occurrences whose jitter may lead to the instant that is asked about: a day of every second at most.
OCCURRENCES_LOOKED_AT = 86_400


def explain_schedule(
    store: Store, schedule_id: str, at: datetime, now: datetime
) -> tuple[Schedule, Explanation, EventRecord | None]:
    """Why a schedule, which may be deleted, fires at `at` or does not; and the event there, if there is one.

    A naive `at` is a local time in the schedule's zone. Raises NotFound, Conflict for a schedule that cannot
    be read, and InvalidRecurrence where the answer takes too many steps.
    """
    schedule = _get_schedule(store, schedule_id)
    if at.tzinfo is None:
        at = instant_at(at, zone_of(schedule), schedule.trigger.overlap)
    asked, at = at, _occurrence_due(schedule, at)
    event = _newest_event(store, schedule, at)
    facts = None
    if event is not None:
        last = event.status[-1] if event.status else {}
        # An edit does not withdraw what was asked for by hand.
        revision = schedule.revision if event.kind is Kind.BACKFILL else event.revision
        facts = EventFacts(revision, event.state, last.get("message", ""))
    verdict = schedule.recurrence().why(at)
    if facts is None and verdict.fires and at <= now and (missed := store.missed.at(schedule.id, at)):
        # It was missed with many others, and their common record has its step.
        facts = EventFacts(missed[0], State.EXPIRED, missed[1])
    found = explain(schedule, verdict, at, facts, now)
    if at >= now:
        found = _with_withholding(store, schedule, found, now)
    if asked != at and found.fires:
        jitter = (asked - at).total_seconds()
        said = (
            f"Its callback falls due at {shown_instant(asked)}, {jitter:g} s of jitter after its occurrence."
        )
        found = replace(found, causes=(Reason("jitter", said), *found.causes))
    return schedule, found, event


def _occurrence_due(schedule: Schedule, at: datetime) -> datetime:
    """The occurrence whose callback falls due at `at` because of jitter; `at` itself where there is none, or
    where too many may be meant."""
    if not schedule.jitter_seconds:
        return at
    recurrence = schedule.recurrence()
    if recurrence.between(at, at + TICK, limit=1):
        return at
    since = at - timedelta(seconds=schedule.jitter_seconds)
    for run_time in recurrence.between(since, at, limit=OCCURRENCES_LOOKED_AT):
        if due(schedule.id, run_time, schedule.jitter_seconds) == at:
            return run_time
    return at


def _with_withholding(store: Store, schedule: Schedule, found: Explanation, now: datetime) -> Explanation:
    """The explanation of an instant to come, with what kill switches and blackouts say of it."""
    said: list[str] = []
    stopped = store.kill_switches.everybodys().stopping(
        schedule.id, schedule.tags, schedule.action.destination
    )
    if stopped is not None:
        said.append(f"Nothing is sent now: the kill switch of {stopped} is on.")
    cover = blackout_cover(store.blackouts.everybodys(now), schedule, found.at)
    if cover is not None and found.fires and cover.skips(found.at):
        found = replace(found, fires=False, reasons=(Reason("blackout", cover.skipped_line),))
    elif cover is not None and found.fires:
        said.append(cover.postponed_line)
    return replace(found, warnings=(*found.warnings, *said))


def zone_of(schedule: Schedule) -> str:
    """The zone in which a schedule's times are read and shown."""
    recurrence = schedule.recurrence()
    return recurrence.timezone if isinstance(recurrence, Recurrence) else schedule.trigger.timezone


def _get_schedule(store: Store, schedule_id: str) -> Schedule:
    found = store.schedules.for_delivery([schedule_id]).get(schedule_id)
    if isinstance(found, CorruptSchedule) and store.schedules.exists(schedule_id):
        raise Conflict(f"the stored document of {name_of(schedule_id)} cannot be read: {found.reason}")
    if not isinstance(found, Schedule):
        raise NotFound(f"there is no schedule {name_of(schedule_id)}")
    return store.calendars.attach([found])[0]


def _newest_event(store: Store, schedule: Schedule, at: datetime) -> EventRecord | None:
    """The newest event that the schedule's rule made for the instant, or a backfill after it."""
    window = PageRequest(limit=EVENTS_AT_ONCE, since=at, until=at + TICK)
    page = store.event_lists.page(schedule.tenant, window, schedule_id=schedule.id)
    planned = [event for event in page.rows if event.kind in (Kind.SCHEDULED, Kind.BACKFILL)]
    return max(
        planned,
        key=lambda event: (event.kind is Kind.BACKFILL, event.revision, event.created_at),
        default=None,
    )
