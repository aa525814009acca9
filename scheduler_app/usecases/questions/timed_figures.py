"""Figures in parts of a time: how many attempts ended how, how late they were and how long they took."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.domain.figures import HOUR, KEPT, MINUTE, OUTCOMES, FigurePart, FigureSubject, regrouped
from scheduler_app.domain.states import State
from scheduler_app.store import Store

#: Events of a schedule that are read for its figures.
MOST_EVENTS: Final = 5_000
_COUNTED: Final = frozenset(map(State, OUTCOMES))


@dataclass(frozen=True, slots=True)
class TimedFigures:
    """The parts in their order, and since when they are known."""

    parts: Sequence[FigurePart]
    since: datetime | None
    """Before that instant nothing is known; None: nothing at all is."""


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
