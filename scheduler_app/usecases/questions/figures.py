"""Figures of the last hour: how late, how many, how they ended."""

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from scheduler_app.clock import monotonic
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.figures import EventSummary

SPAN = timedelta(hours=1)
#: More events are not looked at: the figures are of a shorter time then, and say so.
MOST_OUTCOMES = 3_000
#: However many pages are open, each process asks the store once in this many seconds.
KEPT_SECONDS = 4.0
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class MinuteFigures:
    """The events that fell due within one minute."""

    begin: datetime
    counts: Counter[str]
    lag_ms: float | None
    """The greatest lag."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The events that fell due within the last hour, or since `since` where an hour has too many."""

    since: datetime
    until: datetime
    complete: bool
    """Whether they reach back the whole hour."""
    outcomes: Counter[str]
    lag_p50_ms: float | None
    lag_p99_ms: float | None
    a_minute: float
    minutes: tuple[MinuteFigures, ...]

    @property
    def count(self) -> int:
        """How many events they are of."""
        return sum(self.outcomes.values())


def figures_of(outcomes: Sequence[EventSummary], now: datetime, *, most: int = MOST_OUTCOMES) -> Figures:
    """The figures of events, newest first, of the hour before `now`. Those that were withdrawn before they
    were due count for how far back `outcomes` reach, and for nothing else."""
    complete = len(outcomes) < most
    since = now - SPAN if complete else outcomes[-1].run_time
    outcomes = [each for each in outcomes if not each.was_withdrawn]
    lags = sorted(each.lag_ms for each in outcomes if each.lag_ms is not None)
    begin = since.replace(second=0, microsecond=0)
    by_minute: dict[datetime, list[EventSummary]] = {}
    while begin < now:
        by_minute[begin] = []
        begin += MINUTE
    for each in outcomes:
        by_minute.setdefault(each.run_time.replace(second=0, microsecond=0), []).append(each)
    minutes = max((now - since) / MINUTE, 1 / 60)
    return Figures(
        since=since,
        until=now,
        complete=complete,
        outcomes=_counted(outcomes),
        lag_p50_ms=_quantile(lags, 0.5),
        lag_p99_ms=_quantile(lags, 0.99),
        a_minute=len(outcomes) / minutes,
        minutes=tuple(_minute(each, by_minute[each]) for each in sorted(by_minute)),
    )


def _minute(begin: datetime, outcomes: Sequence[EventSummary]) -> MinuteFigures:
    lags = [each.lag_ms for each in outcomes if each.lag_ms is not None]
    return MinuteFigures(begin, _counted(outcomes), max(lags, default=None))


def _counted(outcomes: Sequence[EventSummary]) -> Counter[str]:
    return Counter(each.state.value for each in outcomes)


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


@dataclass
class RecentFigures:
    """The figures, kept for some seconds for all who ask; safe for threads."""

    store: Store
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _kept: dict[str, tuple[float, Figures]] = field(default_factory=dict)
    """The figures by tenant, of which a deployment has few."""

    def get(self, tenant: str, now: datetime) -> Figures:
        """Raises a STORE_FAULT."""
        with self._lock:
            made_at, figures = self._kept.get(tenant, (0.0, None))
            if figures is None or monotonic() - made_at > KEPT_SECONDS:
                found = self.store.event_figures.newest(tenant, now - SPAN, now, most=MOST_OUTCOMES)
                figures = figures_of(found, now)
                self._kept[tenant] = (monotonic(), figures)
            return figures


#: The outcomes that are shown, in this order.
SHOWN_STATES = (State.COMPLETED, State.RETRYING, State.ERROR, State.CANCELLED)
