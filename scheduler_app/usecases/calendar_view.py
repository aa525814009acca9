"""A calendar of what ran and what comes, day by day: past events by outcome, and coming occurrences of
schedules."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from scheduler_app.clock import monotonic
from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.local_time import local_in
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from scheduler_app.store.events.figures import Outcome
from scheduler_app.store.paging import Window

#: How many of the newest past events are shown.
MOST_EVENTS = 5_000
#: How many schedules are read for coming occurrences, how many occurrences of each, and for how long in all.
MOST_SCHEDULES = 200
MOST_OF_ONE = 100
#: Schedules of a destination are looked for so long.
LOOK_SECONDS = 0.1
MOST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Coming:
    """An occurrence that is not due yet."""

    run_time: datetime
    schedule_id: str
    name: str


@dataclass
class Day:
    """A day in the zone that was asked for."""

    date: date
    outcomes: Counter[str] = field(default_factory=Counter)
    past: list[Outcome] = field(default_factory=list)
    coming: list[Coming] = field(default_factory=list)


@dataclass(frozen=True)
class CalendarView:
    """Days by their dates, and what is not in them."""

    days: dict[date, Day]
    left_out: list[str]


def calendar_view(
    store: Store,
    since: datetime,
    until: datetime,
    now: datetime,
    zone: str,
    *,
    tenant: str,
    schedule_id: str | None = None,
    tag: str | None = None,
    destination: str | None = None,
) -> CalendarView:
    """What happened from `since` to `until` up to `now`, and what is to come, of one schedule or of those
    that match. `destination` is the id of one. Bounded; what is left out is said in words."""
    left_out: list[str] = []
    schedules = chosen_schedules(store, schedule_id, tag, destination, tenant, left_out)
    known = None if schedule_id is None and tag is None and destination is None else schedules
    past = _past(store, since, min(until, now), schedule_id, known, tenant)
    if len(past) >= MOST_EVENTS:
        left_out.append(f"past events before {past[-1].run_time:%Y-%m-%d %H:%M} UTC")
    days: dict[date, Day] = {}

    def day(moment: datetime) -> Day:
        on = local_in(moment, zone).date()
        return days.setdefault(on, Day(on))

    for outcome in past:
        on = day(outcome.run_time)
        on.outcomes[outcome.state.value] += 1
        on.past.append(outcome)
    for coming in _coming(schedules, max(since, now), until, left_out):
        day(coming.run_time).coming.append(coming)
    for each in days.values():
        each.coming.sort(key=lambda coming: coming.run_time)
    return CalendarView(days, left_out)


def chosen_schedules(
    store: Store,
    schedule_id: str | None,
    tag: str | None,
    destination: str | None,
    tenant: str,
    left_out: list[str],
) -> list[Schedule]:
    """The newest schedules that match; appends to `left_out` that there are more."""
    if schedule_id is not None:
        found = store.schedules.get(schedule_id, tenant=tenant)
        return [found] if isinstance(found, Schedule) else []
    window = Window(limit=MOST_SCHEDULES, seconds=LOOK_SECONDS)
    page = store.schedules.page(window, tenant=tenant, tag=tag, destination=destination)
    if page.next is not None:
        shown = (
            f"all but the newest {len(page.rows)} schedules" if page.rows else "schedules not found in time"
        )
        left_out.append(f"what comes of {shown}")
    return [each for each in page.rows if isinstance(each, Schedule)]


def _past(
    store: Store,
    since: datetime,
    until: datetime,
    schedule_id: str | None,
    known: Sequence[Schedule] | None,
    tenant: str,
) -> list[Outcome]:
    figures = store.event_figures
    if since >= until:
        return []
    if schedule_id is not None:
        return figures.of_schedule(schedule_id, since, until, tenant=tenant, most=MOST_EVENTS)
    found = figures.newest(since, until, tenant=tenant, most=MOST_EVENTS)
    if known is None:
        return found
    ids = {each.id for each in known}
    return [each for each in found if each.schedule_id in ids]


def _coming(
    schedules: Iterable[Schedule], since: datetime, until: datetime, left_out: list[str]
) -> Iterable[Coming]:
    end, late = monotonic() + MOST_SECONDS, 0
    for schedule in schedules:
        if since >= until or schedule.next_run_at is None or schedule.next_run_at >= until:
            continue
        if monotonic() > end:
            late += 1
            continue
        try:
            times = schedule.recurrence().between(since, until, limit=MOST_OF_ONE)
        except InvalidRecurrence:
            left_out.append(f"what comes of {schedule.name}, whose rule cannot be evaluated")
            continue
        if len(times) == MOST_OF_ONE:
            left_out.append(f"what comes of {schedule.name} after {times[-1]:%Y-%m-%d %H:%M} UTC")
        yield from (Coming(each, schedule.id, schedule.name) for each in times)
    if late:
        left_out.append(f"what comes of {late} more schedules, which took too long to evaluate")
