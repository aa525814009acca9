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
from scheduler_app.usecases.viewed import Viewed

#: How many of the newest past events are shown.
MOST_EVENTS = 5_000
#: How many coming occurrences of each schedule are looked for, and for how long in all.
MOST_OF_ONE = 100
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


def calendar_view(store: Store, viewed: Viewed, now: datetime) -> CalendarView:
    """What happened up to `now`, and what is to come. Bounded; what is left out is said in words."""
    left_out: list[str] = []
    schedules = viewed.schedules(store, left_out)
    past = _past(store, viewed, now, schedules)
    if len(past) >= MOST_EVENTS:
        left_out.append(f"past events before {past[-1].run_time:%Y-%m-%d %H:%M} UTC")
    days: dict[date, Day] = {}

    def day(moment: datetime) -> Day:
        on = local_in(moment, viewed.zone).date()
        return days.setdefault(on, Day(on))

    for outcome in past:
        on = day(outcome.run_time)
        on.outcomes[outcome.state.value] += 1
        on.past.append(outcome)
    for coming in _coming(schedules, max(viewed.since, now), viewed.until, left_out):
        day(coming.run_time).coming.append(coming)
    for each in days.values():
        each.coming.sort(key=lambda coming: coming.run_time)
    return CalendarView(days, left_out)


def _past(store: Store, viewed: Viewed, now: datetime, schedules: Sequence[Schedule]) -> list[Outcome]:
    figures = store.event_figures
    since, until = viewed.since, min(viewed.until, now)
    if since >= until:
        return []
    if viewed.schedule_id is not None:
        return figures.of_schedule(viewed.schedule_id, since, until, tenant=viewed.tenant, most=MOST_EVENTS)
    found = figures.newest(since, until, tenant=viewed.tenant, most=MOST_EVENTS)
    if viewed.all_schedules:
        return found
    ids = {each.id for each in schedules}
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
