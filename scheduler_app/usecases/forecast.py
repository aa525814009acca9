"""Forecast: what falls due when, before it comes."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import shuffle

from scheduler_app.clock import monotonic
from scheduler_app.domain.blackout import MAX_WINDOWS, BlackoutOutlook, BlackoutOutlooks
from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.forecast import (
    EVERY_CALLBACK,
    Buckets,
    Cell,
    Counts,
    Forecast,
    ForecastChoice,
    ForecastSource,
    PlannedSchedule,
    Withheld,
    occurrences_by_bucket,
)
from scheduler_app.domain.http_action import destination_of_key
from scheduler_app.domain.ids import schedule_of
from scheduler_app.domain.stored_fields import EARLIEST
from scheduler_app.store import Store
from scheduler_app.store.forecasts import MOST_TAGGED, WaitingChoice, WaitingCount

#: Of more schedules, this many are drawn at random and stand for all.
MAX_SCHEDULES = 20_000
#: What the rules of schedules may take; those that are not evaluated by then are estimated by the others.
MAX_SECONDS = 8.0
#: Of fewer schedules a first answer is a whole one.
MANY_SCHEDULES = 1_000
#: Of more waiting events, a part of each bucket stands for all of it.
MAX_EVENTS = 50_000
MAX_COUNTED = 1_000_000
MAX_OVERDUE = 100_000
#: How far the clocks of two processes may differ; more than they ever do.
CLOCKS_DIFFER = timedelta(seconds=5)
#: Called with schedules that are counted by one rule, and the counts of each.
OnSchedules = Callable[[Sequence[PlannedSchedule], Counts], None]


def _ignore(schedules: Sequence[PlannedSchedule], counts: Counts) -> None:
    """For a forecast that asks for the sums alone."""


@dataclass(frozen=True)
class ForecastService:
    store: Store
    max_schedules: int = MAX_SCHEDULES
    max_seconds: float = MAX_SECONDS
    max_events: int = MAX_EVENTS
    first_seconds: float | None = None
    """What the rules of many schedules may take, for a first answer; None: as long as any."""

    def forecast(
        self,
        tenant: str,
        buckets: Buckets,
        now: datetime,
        choice: ForecastChoice = EVERY_CALLBACK,
        on_schedules: OnSchedules = _ignore,
    ) -> Forecast:
        """What falls due in each bucket: by the rules of active schedules, and of events and messages that
        wait, of all or of those that are chosen. Raises a STORE_FAULT."""
        forecast = Forecast(buckets)
        outlooks = BlackoutOutlooks(self.store.blackouts.everybodys(now), buckets.start, buckets.end)
        # Beats go on expanding while schedules and events are read, in this order. What became an event
        # meanwhile is judged one by one by the cursor that was read; clocks differ by less than this.
        since = now - CLOCKS_DIFFER
        evaluated = self._count_rules(tenant, choice, forecast, outlooks, on_schedules)
        chosen, more = self.store.forecasts.waiting_choice(tenant, choice)
        if more:
            forecast.notes.append(
                f"Events that wait are those of {MOST_TAGGED} of the schedules with the tag."
            )
        if not outlooks:
            self._count_waiting(chosen, forecast, since)
        else:
            self._count_each_waiting(tenant, chosen, forecast, outlooks, since)
        self._count_made_meanwhile(tenant, chosen, forecast, outlooks, since, evaluated)
        if outlooks.left_out:
            names = ", ".join(sorted(outlooks.left_out)[:5])
            forecast.notes.append(f"Of the blackouts {names} the first {MAX_WINDOWS} windows are looked at.")
        forecast.overdue = self.store.forecasts.count(chosen, EARLIEST, buckets.start, most=MAX_OVERDUE)
        return forecast

    def _count_rules(
        self,
        tenant: str,
        choice: ForecastChoice,
        forecast: Forecast,
        outlooks: BlackoutOutlooks,
        on_schedules: OnSchedules,
    ) -> list[PlannedSchedule]:
        """Returns the schedules that were counted by their rules."""
        began = monotonic()
        total, planned = self.store.forecasts.planned(tenant, choice, most=self.max_schedules)
        many = self.first_seconds is not None and len(planned) > MANY_SCHEDULES
        until = began + (self.first_seconds if many and self.first_seconds is not None else self.max_seconds)
        found = [each for each in planned if each is not None]
        unreadable = len(planned) - len(found)
        evaluated: list[PlannedSchedule] = []
        done = unreadable
        dense = 0
        # What many share is counted first. Where there is no time for all, those of a part stand for it.
        for part in _parts(found, outlooks):
            counts: Counter[Cell] = Counter()
            withheld: Counter[Withheld] = Counter()
            counted = 0
            for group in part:
                if counted and monotonic() > until:
                    break
                counted += len(group)
                first = group[0]
                try:
                    found_of_it = occurrences_by_bucket(
                        first, forecast.buckets, _outlook(outlooks, first), outlooks.begins
                    )
                except InvalidRecurrence:  # its schedules' own fault: the others are counted
                    unreadable += len(group)
                    continue
                evaluated += group
                on_schedules(group, found_of_it)
                dense += 0 if found_of_it.exact else len(group)
                for receiver, number in Counter(each.receiver for each in group).items():
                    for bucket, count in found_of_it.sent.items():
                        counts[Cell(bucket, receiver, ForecastSource.RULES)] += count * number
                for became, count in found_of_it.withheld.items():
                    withheld[became] += count * len(group)
            done += counted
            times = sum(map(len, part)) / counted if counted else 1.0
            _add_counts(forecast, counts, times * total / max(1, len(planned)))
            for became, count in withheld.items():
                forecast.withheld[became] += round(count * times * total / max(1, len(planned)))
        forecast.is_of_all = done == total
        if done < total:
            forecast.notes.append(
                f"{done} of {total} active schedules, chosen by chance, stand for all of them."
            )
        if dense:
            forecast.notes.append(f"Schedules that run very often are estimated: {dense}.")
        if unreadable:
            forecast.notes.append(f"{unreadable} schedules cannot be read or evaluated, and are left out.")
        return evaluated

    def _count_waiting(self, chosen: WaitingChoice, forecast: Forecast, since: datetime) -> None:
        forecasts, buckets = self.store.forecasts, forecast.buckets
        rows, seen = forecasts.waiting(chosen, buckets, since, limit=self.max_events)
        if seen < self.max_events:
            _add_counts(forecast, _cells(rows), 1.0)
            return
        forecast.notes.append("Of the events that wait, a part of each bucket stands for all of it.")
        limit = max(1, self.max_events // len(buckets.numbers))
        most = max(limit, MAX_COUNTED // len(buckets.numbers))
        for bucket in buckets.numbers:
            part = Buckets(buckets.since(bucket), buckets.until(bucket), buckets.width)
            rows, seen = forecasts.waiting(chosen, part, since, limit=limit)
            rows = [row._replace(bucket=bucket) for row in rows]
            number = seen
            if seen == limit:
                number = forecasts.count(chosen, part.start, part.end, most=most)
            _add_counts(forecast, _cells(rows), number / seen if seen else 1.0)

    def _count_each_waiting(
        self,
        tenant: str,
        chosen: WaitingChoice,
        forecast: Forecast,
        outlooks: BlackoutOutlooks,
        since: datetime,
    ) -> None:
        """As `_count_waiting`, with what blackouts make of each."""
        until, limit = forecast.buckets.end, self.max_events
        found = self.store.forecasts.each_waiting(chosen, outlooks.begins, until, since, limit=limit)
        if len(found) == limit:
            forecast.notes.append("Of the events that wait there are too many to look at blackouts for each.")
            self._count_waiting(chosen, forecast, since)
            return
        facts = self.store.kill_switches.judged_by({schedule_of(each.id) for each in found})
        for each in found:
            schedule_id = schedule_of(each.id)
            tags, destination = facts.get(schedule_id) or ((), destination_of_key(each.receiver))
            source = ForecastSource.MESSAGES if each.is_message else ForecastSource.EVENTS
            outlook = outlooks.of(tenant, schedule_id, tags, destination)
            _add_schedule(forecast, outlook, each.occurs_at, each.due_at, each.receiver, source)

    def _count_made_meanwhile(
        self,
        tenant: str,
        chosen: WaitingChoice,
        forecast: Forecast,
        outlooks: BlackoutOutlooks,
        since: datetime,
        evaluated: Sequence[PlannedSchedule],
    ) -> None:
        limit, buckets = self.max_events, forecast.buckets
        found = self.store.forecasts.made_since(chosen, since, buckets, limit=limit)
        if len(found) == limit:
            forecast.notes.append("More occurrences became events meanwhile than the forecast reads.")
        if not found:
            return
        cursors = {each.id: each.next_run_at for each in evaluated}
        facts = self.store.kill_switches.judged_by({each.schedule_id for each in found if outlooks})
        for each in found:
            cursor = cursors.get(each.schedule_id)
            if cursor is None or each.run_time < cursor:
                tags, destination = facts.get(each.schedule_id, ((), None))
                outlook = outlooks.of(tenant, each.schedule_id, tags, destination) if outlooks else None
                _add_schedule(
                    forecast, outlook, each.run_time, each.due_at, each.receiver, ForecastSource.EVENTS
                )


def _parts(
    schedules: Sequence[PlannedSchedule], outlooks: BlackoutOutlooks
) -> list[list[list[PlannedSchedule]]]:
    """The schedules of which several are counted by one rule, and those alone with theirs; in each part the
    groups by chance."""
    groups: dict[tuple[object, ...], list[PlannedSchedule]] = {}
    for each in schedules:
        outlook = _outlook(outlooks, each) if outlooks else None
        key: tuple[object, ...] = id(each.rule), each.next_run_at, id(outlook)
        groups.setdefault((each.id,) if each.jitter_seconds else key, []).append(each)
    shared = [group for group in groups.values() if len(group) > 1]
    alone = [group for group in groups.values() if len(group) == 1]
    for part in (shared, alone):
        shuffle(part)
    return [shared, alone]


def _outlook(outlooks: BlackoutOutlooks, schedule: PlannedSchedule) -> BlackoutOutlook | None:
    if not outlooks:
        return None
    return outlooks.of(schedule.rule.tenant, schedule.id, schedule.tags, schedule.destination)


def _add_schedule(
    forecast: Forecast,
    outlook: BlackoutOutlook | None,
    run_time: datetime | None,
    due_at: datetime,
    receiver: str,
    source: str,
) -> None:
    counts = Counts(forecast.buckets, outlook)
    counts.add(run_time, due_at)
    for bucket in counts.sent:
        forecast.cells[Cell(bucket, receiver, source)] += 1
    forecast.withheld += counts.withheld


def _cells(rows: list[WaitingCount]) -> Counter[Cell]:
    counts: Counter[Cell] = Counter()
    for row in rows:
        source = ForecastSource.MESSAGES if row.messages else ForecastSource.EVENTS
        counts[Cell(row.bucket, row.receiver, source)] += row.number
    return counts


def _add_counts(forecast: Forecast, counts: Counter[Cell], times: float) -> None:
    for cell, count in counts.items():
        forecast.cells[cell] += count if times == 1.0 else round(count * times)
