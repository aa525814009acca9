"""The calendar of runs: past and future in one, by the engine of the forecast."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from heapq import nsmallest
from threading import Lock
from typing import Final

from scheduler_app.clock import monotonic
from scheduler_app.domain.calendars import NamedCalendar
from scheduler_app.domain.calendars.calendar import DayKind
from scheduler_app.domain.figures import HOUR, KEPT, MINUTE, FigureSubject, begin_of_part
from scheduler_app.domain.forecast import Buckets, Counts, ForecastChoice, PlannedSchedule
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.kill_switch import Target
from scheduler_app.domain.recurrence.zones import instant_at, local_in
from scheduler_app.domain.run_calendar import (
    MOST_RARE,
    BlackoutWindow,
    CalendarPart,
    ClosedDay,
    NamedRun,
    RareSchedule,
    RunCalendar,
    RunOutcome,
)
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from scheduler_app.store.events.run_counts import RunChoice, RunCounts
from scheduler_app.usecases.forecast import ForecastService

#: Past runs that are read; and of what workers have counted by the hour. What the rules may take; schedules
#: that are evaluated.
MOST_RUNS: Final = 50_000
MOST_WHERE_COUNTED: Final = 20_000
MAX_SECONDS: Final = 2.0
MOST_EVALUATED: Final = 20_000
#: The same for a first answer, which is shown until there is a whole one.
FIRST_SECONDS: Final = 0.2
MOST_EVALUATED_FIRST: Final = 3_000
#: The schedules of a tag or a destination whose past runs are read.
MOST_OWNERS: Final = 2_000
#: Schedules with few runs that are named, and where their past is looked for one by one; windows of
#: blackouts, calendars whose days are shown.
MOST_NAMED: Final = 200
MOST_RUNNING_AGAIN: Final = 100
MOST_WINDOWS: Final = 500
MOST_CALENDARS: Final = 20
#: What is to come is kept where it took longer than this to count it: for so many times as long, a minute at
#: most.
KEPT_FROM_SECONDS: Final = 0.2
KEPT_TIMES: Final = 20
KEPT_SECONDS: Final = 60.0
#: Schedules that all that is kept may name, 1.4 kB each with ten runs. Each question counts for some at
#: least, so that there are 50 at most.
MOST_KEPT: Final = 50_000
LEAST_KEPT: Final = 1_000
#: Every zone of today is off UTC by a multiple of it.
QUARTER: Final = timedelta(minutes=15)


@dataclass(frozen=True, kw_only=True, slots=True)
class CalendarPeriod:
    """A time from `start` to `end` in parts of one `width`, or of the days of a zone where that is None."""

    start: datetime
    end: datetime
    width: timedelta | None
    zone: str = "UTC"

    @property
    def buckets(self) -> Buckets:
        """The parts in which runs are counted: those that are shown, or small ones that make the days."""
        if self.width is not None:
            return Buckets(self.start, self.end, self.width)
        midnights = [begin for begin, _ in self.days()][1:]
        width = QUARTER if any(each.minute for each in midnights) else HOUR
        seconds = int(width.total_seconds())
        first = datetime.fromtimestamp(self.start.timestamp() // seconds * seconds, tz=self.start.tzinfo)
        return Buckets(self.start, self.end, width, first)

    def days(self) -> Iterator[tuple[datetime, datetime]]:
        """When each day of the zone begins and ends; the first and the last may be parts of one."""
        begin = self.start
        while begin < self.end:
            midnight = datetime.combine(local_in(begin, self.zone).date() + timedelta(days=1), time())
            end = min(max(instant_at(midnight, self.zone), begin + timedelta(seconds=1)), self.end)
            yield begin, end
            begin = end


#: The tenant, and what it asks for.
_Question = tuple[str, CalendarPeriod, ForecastChoice]


@dataclass
class _Coming:
    """What the rules of schedules say, as the forecast evaluates them."""

    rare: dict[str, tuple[str, list[NamedRun]]] = field(default_factory=dict)
    frequent: set[str] = field(default_factory=set)
    calendars: dict[str, NamedCalendar] = field(default_factory=dict)

    def take(self, schedules: Sequence[PlannedSchedule], counts: Counts) -> None:
        """Those that are counted by one rule."""
        use = schedules[0].calendar
        if use is not None and use.known is not None and len(self.calendars) < MOST_CALENDARS:
            self.calendars[use.name] = use.known
        if counts.sent.total() > MOST_RARE:
            self.frequent |= {each.id for each in schedules}
        elif counts.sent:
            runs = [NamedRun(sent_at, RunOutcome.TO_COME) for _, sent_at in counts.named]
            self.rare |= {each.id: (each.name, runs) for each in schedules}


@dataclass(frozen=True, slots=True)
class _Future:
    """What is to come, as it was counted at an instant."""

    at: datetime
    counts: Counter[int] = field(default_factory=Counter)
    """By the number of the bucket."""
    coming: _Coming = field(default_factory=_Coming)
    notes: Sequence[str] = ()
    is_first_answer: bool = False

    @property
    def weight(self) -> int:
        """How many schedules it counts for where it is kept."""
        return max(LEAST_KEPT, len(self.coming.rare) + len(self.coming.frequent))


@dataclass(frozen=True)
class RunCalendars:
    """Threads share it."""

    store: Store
    most_runs: int = MOST_RUNS
    max_seconds: float = MAX_SECONDS
    first_seconds: float = FIRST_SECONDS
    kept_from: float = KEPT_FROM_SECONDS
    _kept: dict[_Question, tuple[float, _Future]] = field(default_factory=dict, repr=False)
    """What is to come, by what was asked, the oldest first, and until when it is shown."""
    _lock: Lock = field(default_factory=Lock, repr=False)

    def read(
        self,
        tenant: str,
        period: CalendarPeriod,
        choice: ForecastChoice,
        now: datetime,
        *,
        first: bool = False,
    ) -> RunCalendar:
        """What became of what was due within the period, and what is to come. With `first` an answer that may
        be less exact comes soon, and says so. Raises a STORE_FAULT."""
        buckets = period.buckets
        parts = list(_parts(period))
        future = _Future(now)
        if now < buckets.end:
            future = self._future(tenant, period, choice, now, first=first)
        coming, notes = future.coming, list(future.notes)
        for number, count in future.counts.items():
            parts[_place(parts, buckets, number)].counts[RunOutcome.TO_COME] += count
        past, known = self._past(tenant, buckets, choice, now, coming, notes)
        for (bucket, outcome), count in past.counts.items():
            parts[_place(parts, buckets, bucket)].counts[outcome] += count
        for bucket, count in past.tried_again.items():
            parts[_place(parts, buckets, bucket)].tried_again += count
        rare, omitted = self._rare(past, coming, known)
        return RunCalendar(
            parts,
            rare,
            omitted,
            self._blackouts(tenant, buckets, choice, now, notes),
            _closed_days(period, coming.calendars),
            notes,
            future.at,
            future.is_first_answer,
        )

    def _future(
        self, tenant: str, period: CalendarPeriod, choice: ForecastChoice, now: datetime, *, first: bool
    ) -> _Future:
        """What is to come. It is counted anew each time where that is quickly done; else what was counted is
        shown for some time, so that open calendars take a small part of a process's time."""
        key = tenant, period, choice
        until, known = self._kept.get(key, (0.0, None))
        began = monotonic()
        if known is not None and began < until:
            return known
        buckets, coming = period.buckets, _Coming()
        later = Buckets(max(now, buckets.start), buckets.end, buckets.width, buckets.origin)
        forecasts = ForecastService(
            self.store,
            max_schedules=MOST_EVALUATED_FIRST if first else MOST_EVALUATED,
            max_seconds=self.max_seconds,
            first_seconds=self.first_seconds if first else None,
        )
        found = forecasts.forecast(tenant, later, now, choice, coming.take)
        counts: Counter[int] = Counter()
        for cell, count in found.cells.items():
            counts[cell.bucket] += count
        future = _Future(now, counts, coming, found.notes, first and not found.is_of_all)
        took = monotonic() - began
        if took > self.kept_from and not future.is_first_answer:
            self._keep(key, monotonic() + min(KEPT_TIMES * took, KEPT_SECONDS), future)
        return future

    def _keep(self, key: _Question, until: float, future: _Future) -> None:
        """Where there is no room, the oldest one goes of the tenant that has most."""
        now = monotonic()
        with self._lock:
            for each in [each for each, (end, _) in self._kept.items() if end <= now or each == key]:
                del self._kept[each]
            self._kept[key] = (until, future)
            while True:
                weights = Counter[str]()
                for (tenant, *_), (_, each_future) in self._kept.items():
                    weights[tenant] += each_future.weight
                if weights.total() <= MOST_KEPT:
                    return
                ((heaviest, _),) = weights.most_common(1)
                del self._kept[next(each for each in self._kept if each[0] == heaviest)]

    def _past(
        self,
        tenant: str,
        buckets: Buckets,
        choice: ForecastChoice,
        now: datetime,
        coming: _Coming,
        notes: list[str],
    ) -> tuple[RunCounts, Collection[str] | None]:
        """What ran; and the schedules of which it is known when they ran, None for all."""
        # With what beats have expanded already: it has events, and is named by them.
        until = min(buckets.end, now + HOUR)
        if until <= buckets.start:
            return RunCounts(), None
        chosen = RunChoice(tenant)
        if choice:
            owners, more = self.store.forecasts.owners(tenant, choice, limit=MOST_OWNERS)
            if more:
                notes.append(f"Past runs are those of {MOST_OWNERS:,} of the schedules that are asked for.")
            its_messages = choice.destination if choice.tag is None and choice.schedule_id is None else None
            chosen = RunChoice(tenant, owners, its_messages)
        window = Buckets(buckets.start, until, buckets.width, buckets.origin)
        counting, most = self.store.run_counting, self.most_runs
        counted_from = min(most, MOST_WHERE_COUNTED)
        if counting.exceeds(chosen, window, most=counted_from):
            counted = self._counted_by_workers(tenant, choice, chosen, window)
            if counted is not None:
                again = _rarest({each: runs for each, (_, runs) in coming.rare.items()}, MOST_RUNNING_AGAIN)
                named = counting.name(again, window, now)
                notes.append(
                    f"There were more than {counted_from:,} runs: done and failed ones are counted when they"
                    " ended, and not when they were due, and of those before now only schedules are named"
                    " that run again."
                )
                return RunCounts(counted, rare=named.rare, frequent=named.frequent), again
        found = counting.read(chosen, window, now, most=most)
        if not found.is_whole:
            notes.append(f"There were more than {most:,} runs: those beyond are left out, and none is named.")
            found.rare.clear()
        return found, None

    def _counted_by_workers(
        self, tenant: str, choice: ForecastChoice, chosen: RunChoice, window: Buckets
    ) -> Counter[tuple[int, RunOutcome]] | None:
        """What workers counted of what is asked for; None where that is not counted apart, in other parts, or
        not since the beginning."""
        if choice.schedule_id is not None or (choice.tag is not None and choice.destination is not None):
            return None
        subject = FigureSubject(tenant)
        if choice.tag is not None:
            subject = FigureSubject(tenant, "tag", choice.tag)
        if choice.destination is not None:
            subject = FigureSubject(tenant, "destination", name_of(choice.destination))
        widths = (HOUR, MINUTE) if subject.has_minutes else (HOUR,)
        width = next((each for each in widths if _is_made_of(window, each)), None)
        if width is None:
            return None
        counters = self.store.figure_counters
        first = counters.first(subject, width, window.start - KEPT[width])
        if first is None:
            return None
        if first > window.start:
            # Nothing was counted before that; and if nothing ran, nothing is missing.
            before = Buckets(window.start, min(first, window.end), window.width, window.origin)
            if self.store.run_counting.exceeds(chosen, before, most=0):
                return None
        found = Counter[tuple[int, RunOutcome]]()
        for part in counters.read(subject, width, window.start, window.end):
            bucket = window.of(part.at)
            if bucket is not None:
                found[bucket, RunOutcome.DONE] += part.outcomes["completed"]
                found[bucket, RunOutcome.FAILED] += part.outcomes["error"]
        return found

    def _rare(
        self, past: RunCounts, coming: _Coming, known: Collection[str] | None
    ) -> tuple[list[RareSchedule], int]:
        frequent = past.frequent | coming.frequent
        found: dict[str, list[NamedRun]] = {}
        candidates = (past.rare.keys() | coming.rare.keys()) - frequent
        told = candidates if known is None else candidates.intersection(known)
        for schedule_id in told:
            runs = past.rare.get(schedule_id, []) + coming.rare.get(schedule_id, ("", []))[1]
            if len(runs) <= MOST_RARE:
                found[schedule_id] = runs
        chosen = _rarest(found, MOST_NAMED)
        unnamed = [each for each in chosen if each not in coming.rare]
        read = self.store.schedules.for_delivery(unnamed) if unnamed else {}
        names = {each.id: each.name for each in read.values() if isinstance(each, Schedule)}
        names |= {each: coming.rare[each][0] for each in chosen if each in coming.rare}
        rows = [RareSchedule(each, names.get(each, name_of(each)), tuple(found[each])) for each in chosen]
        omitted = len(candidates) - len(told) + len(found) - len(chosen)
        return sorted(rows, key=lambda row: (row.runs[0].at, row.name)), omitted

    def _blackouts(
        self, tenant: str, buckets: Buckets, choice: ForecastChoice, now: datetime, notes: list[str]
    ) -> list[BlackoutWindow]:
        targets = self._stopping(tenant, choice)
        found = [
            BlackoutWindow(each, *window)
            for each in self.store.blackouts.everybodys(now).all
            if each.target.tenant == tenant and (not choice or each.target in targets)
            for window in each.windows(buckets.start, buckets.end, limit=MOST_WINDOWS + 1)
        ]
        found.sort(key=lambda window: (window.start, window.blackout.name))
        if len(found) > MOST_WINDOWS:
            notes.append(f"The first {MOST_WINDOWS} windows of blackouts are shown.")
        return found[:MOST_WINDOWS]

    def _stopping(self, tenant: str, choice: ForecastChoice) -> list[Target]:
        """What may stop some of what is chosen."""
        tags: tuple[str, ...] = () if choice.tag is None else (choice.tag,)
        schedule_id, destination = choice.schedule_id or "", choice.destination
        if schedule_id:
            facts = self.store.kill_switches.judged_by([schedule_id])
            tags, destination = facts.get(schedule_id, ((), None))
        return Target.asked(tenant, schedule_id, tags, destination)


def _is_made_of(buckets: Buckets, width: timedelta) -> bool:
    """Whether each of the buckets is some parts of that width."""
    return not buckets.width % width and begin_of_part(buckets.origin, width) == buckets.origin


def _rarest(runs: Mapping[str, Sequence[NamedRun]], most: int) -> list[str]:
    """The schedules with the fewest runs: where not all can be named, the others would be noticed least."""
    return nsmallest(most, runs, key=lambda each: (len(runs[each]), runs[each][0].at, each))


def _parts(period: CalendarPeriod) -> Iterator[CalendarPart]:
    if period.width is None:
        for begin, end in period.days():
            yield CalendarPart(begin, end)
    else:
        buckets = period.buckets
        for number in buckets.numbers:
            yield CalendarPart(buckets.since(number), buckets.until(number))


def _place(parts: Sequence[CalendarPart], buckets: Buckets, number: int) -> int:
    """Which of the parts a bucket is in."""
    begin = buckets.since(number)
    low, high = 0, len(parts)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if parts[middle].start <= begin else (low, middle)
    return low


def _closed_days(period: CalendarPeriod, calendars: dict[str, NamedCalendar]) -> list[ClosedDay]:
    first = local_in(period.start, period.zone).date()
    last = local_in(period.end - timedelta(seconds=1), period.zone).date()
    return [
        ClosedDay(name, day.date, day.name, day.kind is DayKind.WEEKEND)
        for name in sorted(calendars)
        for day in calendars[name].days.days(first, last)
    ]
