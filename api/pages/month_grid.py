"""Small months in which the days are marked on which something runs."""

import calendar
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from scheduler_app.domain.recurrence import AnyRecurrence
from scheduler_app.domain.recurrence.zones import instant_at, local_in

#: Months that are shown side by side.
MONTHS = 2
_SATURDAY = 5


@dataclass(frozen=True, slots=True)
class MarkedDay:
    """A day: what marks it (a class of the stylesheet), and why, for those who ask."""

    number: int
    look: str
    why: str


@dataclass(frozen=True, slots=True)
class Month:
    title: str
    weeks: tuple[tuple[MarkedDay | None, ...], ...]


def firing_days(
    recurrence: AnyRecurrence, since: datetime, until: datetime, zone: str
) -> dict[date, datetime]:
    """The days in `zone` on which it fires, each with its first local time: one search for each day, however
    often it fires within it. Raises InvalidRecurrence where that takes too long to tell."""
    found: dict[date, datetime] = {}
    at = recurrence.after(since)
    while at is not None and at < until:
        local = local_in(at, zone)
        found[local.date()] = local
        midnight = datetime.combine(local.date() + timedelta(days=1), time())
        at = recurrence.after(instant_at(midnight, zone) - timedelta(seconds=1))
    return found


def end_of_months(first: date) -> date:
    """The day after the last one that `months` shows from this one on."""
    year, month = divmod(first.year * 12 + first.month - 1 + MONTHS, 12)
    return date(year, month + 1, 1)


def months(
    first: date,
    fires: Mapping[date, datetime],
    *,
    gone: Collection[date] = (),
    closed: Callable[[date], str] = lambda _: "",
) -> list[Month]:
    """The month of `first` and those after it. `gone` are days on which it no longer runs; `closed` names
    the reason of a closed day, "" for an open one."""

    def marked(day: date) -> MarkedDay:
        if day in fires:
            return MarkedDay(day.day, "hit2", f"Runs {day:%-d %B} at {fires[day]:%H:%M}")
        if day in gone:
            return MarkedDay(day.day, "gone", "No longer")
        if why := closed(day):
            return MarkedDay(day.day, "cl", f"Closed: {why}")
        return MarkedDay(day.day, "wk" if day.weekday() >= _SATURDAY else "", "")

    shown, begin = [], first.replace(day=1)
    while begin < end_of_months(first):
        weeks = calendar.Calendar().monthdatescalendar(begin.year, begin.month)
        shown.append(
            Month(
                f"{begin:%B %Y}",
                tuple(
                    tuple(marked(day) if day.month == begin.month else None for day in week) for week in weeks
                ),
            )
        )
        begin = (begin + timedelta(days=31)).replace(day=1)
    return shown
