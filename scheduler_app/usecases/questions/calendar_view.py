"""A calendar of what ran and what comes, day by day, and a heat map of what ran and failed, hour by hour.

A view is about a period, and one schedule, those that match, or all.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta

from scheduler_app.clock import monotonic
from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.recurrence import AnyRecurrence
from scheduler_app.domain.recurrence.zones import instant_at, local_in
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.states import FINAL
from scheduler_app.store import Store
from scheduler_app.store.events.figures import EventSummary
from scheduler_app.store.paging import PageRequest

#: How many schedules are read, and for how long those of a destination are looked for.
MOST_SCHEDULES = 200
LOOK_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class ViewedPeriod:
    """A tenant's time from `since` to `until` (exclusive, both aware), told in the days of `zone`."""

    since: datetime
    until: datetime
    zone: str
    tenant: str
    schedule_id: str | None = None
    tag: str | None = None
    destination: str | None = None
    """The id of one."""

    @property
    def all_schedules(self) -> bool:
        """Whether it is about all schedules of the tenant, and messages."""
        return self.schedule_id is None and self.tag is None and self.destination is None

    def schedules(self, store: Store, left_out: list[str]) -> list[Schedule]:
        """The newest schedules that match; appends to `left_out` that there are more."""
        if self.schedule_id is not None:
            found = store.schedules.get(self.schedule_id)
            return [found] if isinstance(found, Schedule) else []
        window = PageRequest(limit=MOST_SCHEDULES, seconds=LOOK_SECONDS)
        page = store.schedules.page(self.tenant, window, tag=self.tag, destination=self.destination)
        if page.next is not None:
            shown = (
                f"all but the newest {len(page.rows)} schedules"
                if page.rows
                else "schedules not found in time"
            )
            left_out.append(f"what comes of {shown}")
        return [each for each in page.rows if isinstance(each, Schedule)]


#: How many of the newest past events are shown, and counted.
MOST_EVENTS = 5_000
MOST_COUNTED = 50_000
#: How many coming occurrences of each schedule are listed, and of one with more on each day; all are counted.
MOST_OF_ONE = 100
MOST_OF_A_DAY = 50
#: How long they are looked for in all.
MOST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ComingOccurrence:
    """An occurrence that is not due yet."""

    run_time: datetime
    schedule_id: str
    name: str


@dataclass
class CalendarViewDay:
    """A day in the zone that was asked for."""

    date: date
    outcomes: Counter[str] = field(default_factory=Counter)
    """All that ran, by state."""
    past: list[EventSummary] = field(default_factory=list)
    """The newest."""
    planned: int = 0
    """All that is to come."""
    coming: list[ComingOccurrence] = field(default_factory=list)
    """The next."""

    @property
    def done(self) -> int:
        """How many are over: completed, dead letters, left out."""
        return sum(self.outcomes[state.value] for state in FINAL)


@dataclass(frozen=True)
class CalendarView:
    """Days by their dates, and what is not in them."""

    days: dict[date, CalendarViewDay]
    left_out: list[str]


def calendar_view(store: Store, viewed: ViewedPeriod, now: datetime) -> CalendarView:
    """What happened up to `now`, and what is to come. Bounded; what is left out is said in words."""
    left_out: list[str] = []
    schedules = viewed.schedules(store, left_out)
    past = _past_outcomes(store, viewed, now, schedules)
    days: dict[date, CalendarViewDay] = {}

    def day(moment: datetime) -> CalendarViewDay:
        on = local_in(moment, viewed.zone).date()
        return days.setdefault(on, CalendarViewDay(on))

    for outcome in past:
        day(outcome.run_time).past.append(outcome)
    if len(past) < MOST_EVENTS:
        for outcome in past:
            day(outcome.run_time).outcomes[outcome.state.value] += 1
    else:
        _count_past(store, viewed, now, schedules, day, left_out)
    _count_coming(schedules, max(viewed.since, now), viewed, day, left_out)
    for each in days.values():
        each.coming.sort(key=lambda coming: coming.run_time)
    return CalendarView(days, left_out)


def _past_outcomes(
    store: Store, viewed: ViewedPeriod, now: datetime, schedules: Sequence[Schedule]
) -> list[EventSummary]:
    figures = store.event_figures
    since, until = viewed.since, min(viewed.until, now)
    if since >= until:
        return []
    if viewed.schedule_id is not None:
        return figures.of_schedule(viewed.schedule_id, since, until, most=MOST_EVENTS)
    ids = None if viewed.all_schedules else [each.id for each in schedules]
    return figures.newest(viewed.tenant, since, until, most=MOST_EVENTS, schedule_ids=ids)


def _count_past(
    store: Store,
    viewed: ViewedPeriod,
    now: datetime,
    schedules: Sequence[Schedule],
    day: Callable[[datetime], CalendarViewDay],
    left_out: list[str],
) -> None:
    """Counts more events than are listed."""
    ids = None if viewed.all_schedules else [each.id for each in schedules]
    if viewed.schedule_id is not None:  # it may be deleted, and has its events still
        ids = [viewed.schedule_id]
    days = list(_days(viewed.since, min(viewed.until, now), viewed.zone))
    counted = store.event_figures.by_day(
        viewed.tenant, [begin for begin, _ in days], days[-1][1], most=MOST_COUNTED, schedule_ids=ids
    )
    for begin, outcomes in counted.items():
        day(begin).outcomes.update(outcomes)
    if sum(outcomes.total() for outcomes in counted.values()) >= MOST_COUNTED:
        oldest = local_in(min(counted), viewed.zone)
        left_out.append(
            f"past events beyond the newest {MOST_COUNTED:,}: some of {oldest:%Y-%m-%d}, all before"
        )


def _count_coming(
    schedules: Iterable[Schedule],
    since: datetime,
    viewed: ViewedPeriod,
    day: Callable[[datetime], CalendarViewDay],
    left_out: list[str],
) -> None:
    """Counts what comes of each schedule, and lists the next of it."""
    until, end, late = viewed.until, monotonic() + MOST_SECONDS, 0
    for schedule in schedules:
        if since >= until or schedule.next_run_at is None or schedule.next_run_at >= until:
            continue
        if monotonic() > end:
            late += 1
            continue
        try:
            recurrence = schedule.recurrence()
            times = recurrence.between(since, until, limit=MOST_OF_ONE)
            if len(times) < MOST_OF_ONE:
                found = [(each, 1, [each]) for each in times]
            else:
                found = _each_day(recurrence, since, viewed)
        except InvalidRecurrence:
            left_out.append(f"what comes of {schedule.name}, whose rule cannot be evaluated")
            continue
        for at, count, listed in found:
            of_day = day(at)
            of_day.planned += count
            of_day.coming += [ComingOccurrence(each, schedule.id, schedule.name) for each in listed]
    if late:
        left_out.append(f"what comes of {late} more schedules, which took too long to evaluate")


def _each_day(
    recurrence: AnyRecurrence, since: datetime, viewed: ViewedPeriod
) -> list[tuple[datetime, int, list[datetime]]]:
    """An instant of each day, how many occurrences the day has, and the first of them. Raises
    InvalidRecurrence."""
    return [
        (begin, recurrence.count(begin, end), recurrence.between(begin, end, limit=MOST_OF_A_DAY))
        for begin, end in _days(since, viewed.until, viewed.zone)
    ]


def _days(since: datetime, until: datetime, zone: str) -> Iterator[tuple[datetime, datetime]]:
    """When each day of a zone begins and ends, from `since` up to `until`; the first and the last may be
    parts."""
    begin = since
    while begin < until:
        midnight = datetime.combine(local_in(begin, zone).date() + timedelta(days=1), time())
        end = min(max(instant_at(midnight, zone), begin + timedelta(seconds=1)), until)
        yield begin, end
        begin = end


#: The most events counted, dead letters looked at, and matching schedules.
HEAT_MAP_EVENTS = 50_000
HEAT_MAP_DEAD_LETTERS = 10_000
HEAT_MAP_SCHEDULES = 50


@dataclass
class HeatMapHour:
    """What was due within one hour."""

    count: int = 0
    dead: int = 0


@dataclass(frozen=True)
class HeatMap:
    """Hours by their dates and their numbers in the zone that was asked for, and what is not in them. An
    hour that a clock change repeats is one with its double."""

    hours: Mapping[tuple[date, int], HeatMapHour]
    left_out: list[str]

    @property
    def most(self) -> int:
        """Of the busiest hour; at least 1."""
        return max((each.count for each in self.hours.values()), default=0) or 1


def heat_map(store: Store, viewed: ViewedPeriod, now: datetime) -> HeatMap:
    """What was due up to `now`. Bounded; what is left out is said in words."""
    left_out: list[str] = []
    ids: list[str] | None = None
    if not viewed.all_schedules:
        chosen = viewed.schedules(store, left_out)
        if len(chosen) > HEAT_MAP_SCHEDULES:
            left_out[:] = [f"all but the newest {HEAT_MAP_SCHEDULES} schedules"]
        ids = [each.id for each in chosen[:HEAT_MAP_SCHEDULES]]
    since, until, tenant = viewed.since, min(viewed.until, now), viewed.tenant
    counted = store.hourly_counts.events(tenant, ids, since, until, most=HEAT_MAP_EVENTS)
    dead = store.hourly_counts.dead_letters(tenant, ids, since, until, most=HEAT_MAP_DEAD_LETTERS)
    if not counted.is_whole:
        left_out.append(f"what is beyond the newest {HEAT_MAP_EVENTS} events")
    if not dead.is_whole:
        left_out.append(f"what is beyond the newest {HEAT_MAP_DEAD_LETTERS} dead letters")
    hours: dict[tuple[date, int], HeatMapHour] = defaultdict(HeatMapHour)
    for moment, count in counted.quarters.items():
        local = local_in(moment, viewed.zone)
        hours[local.date(), local.hour].count += count
    for moment, count in dead.quarters.items():
        local = local_in(moment, viewed.zone)
        hours[local.date(), local.hour].dead += count
    return HeatMap(hours, left_out)
