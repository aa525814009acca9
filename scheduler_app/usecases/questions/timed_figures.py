"""Figures in parts of a time: how many attempts ended how, how late they were and how long they took."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.domain.figures import (
    HOUR,
    KEPT,
    MINUTE,
    OUTCOMES,
    FigurePart,
    FigureSubject,
    begin_of_part,
    regrouped,
)
from scheduler_app.domain.states import State
from scheduler_app.store import Store

#: Events of a schedule that are read for its figures.
MOST_EVENTS: Final = 5_000
DAY: Final = timedelta(days=1)
_COUNTED: Final = frozenset(map(State, OUTCOMES))


@dataclass(frozen=True, slots=True)
class TimedFigures:
    """The parts in their order, and since when they are known."""

    parts: Sequence[FigurePart]
    since: datetime | None
    """Before that instant nothing is known; None: nothing at all is."""


@dataclass(frozen=True, slots=True)
class DayFigures:
    """The 24 hours before an instant, to the minute, beside those before them."""

    start: datetime
    end: datetime
    hours: Sequence[FigurePart]
    """The hours of the clock, of which the first and the last one are cut."""
    total: FigurePart
    before: FigurePart | None
    """The 24 hours before `start`; None where nothing is known of their beginning."""


@dataclass(frozen=True)
class FigureQuestions:
    store: Store
    most_events: int = MOST_EVENTS

    def of(
        self, subject: FigureSubject, start: datetime, end: datetime, width: timedelta, now: datetime
    ) -> TimedFigures:
        """What workers counted of the subject from `start` to `end`. Parts of whole hours, and what is older
        than minutes are kept, are made of hours. Raises a STORE_FAULT."""
        kept = HOUR if width % HOUR == timedelta(0) else MINUTE
        counters = self.store.figure_counters
        found = counters.read(subject, kept, start, end)
        known = counters.first(subject, kept, now - KEPT[kept])
        return TimedFigures(regrouped(found, start, end, width), known)

    def of_day(self, tenant: str, now: datetime) -> DayFigures:
        """Of all that a tenant has: made of hours, and of the minutes of those two hours that begin or end
        within a day; no more than 170 documents are read. Raises a STORE_FAULT."""
        subject, counters = FigureSubject(tenant), self.store.figure_counters
        # Minutes are kept for two days, to the minute.
        start = begin_of_part(now - DAY, MINUTE) + MINUTE
        cut, cut_before = begin_of_part(start, HOUR), begin_of_part(start - DAY, HOUR)
        found = [each for each in counters.read(subject, HOUR, cut_before + HOUR, now) if each.at != cut]
        found += counters.read(subject, MINUTE, start - DAY, cut_before + HOUR)
        found += counters.read(subject, MINUTE, cut, cut + HOUR)
        known = counters.first(subject, HOUR, now - KEPT[HOUR])
        is_known = known is not None and known <= start - DAY
        newer = [each for each in found if each.at >= start]
        return DayFigures(
            start=start,
            end=now,
            hours=regrouped(newer, cut, now, HOUR),
            total=_total(start, newer),
            before=_total(start - DAY, (each for each in found if each.at < start)) if is_known else None,
        )

    def of_schedule(self, schedule_id: str, start: datetime, end: datetime, width: timedelta) -> TimedFigures:
        """The same of one schedule, by the last attempt of each of its events, at their run times; the newest
        `most_events` are read. Raises a STORE_FAULT."""
        events = self.store.event_figures.of_schedule(schedule_id, start, end, most=self.most_events)
        parts = list(regrouped((), start, end, width))
        for each in events:
            if each.state in _COUNTED:
                part = parts[(each.run_time - start) // width]
                part.add(each.state.value, each.lag_ms, each.duration_ms)
        cut = len(events) >= self.most_events
        return TimedFigures(parts, events[-1].run_time if cut else start)


def _total(start: datetime, parts: Iterable[FigurePart]) -> FigurePart:
    whole = FigurePart(start)
    for each in parts:
        whole.merge(each)
    return whole
