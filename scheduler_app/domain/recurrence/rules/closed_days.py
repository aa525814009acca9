"""Days on which nothing should fire, and what becomes of an occurrence on one of them."""

from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Final, Literal, Protocol

from scheduler_app.domain.recurrence.timeline import DAY, FIRST_DAY, LAST_DAY
from scheduler_app.domain.recurrence.year_kinds import first_day, year_of
from scheduler_app.domain.recurrence.zones.zone import Zone

#: What becomes of an occurrence on a closed day: it is dropped, or moved to an open day, or the day is not
#: even counted, as if the rule did not know it.
OnHoliday = Literal["skip", "next", "previous", "uncounted"]

_WORDS: Final[dict[OnHoliday, str]] = {
    "skip": "but not on",
    "next": "or on the next business day after",
    "previous": "or on the last business day before",
    "uncounted": "not counting",
}


class ClosedDays(Protocol):
    """The holidays and weekend days of a calendar."""

    @property
    def irregular_until(self) -> int:
        """The last year with closed days beside those of every week."""
        ...

    def of_year(self, year: int) -> int:
        """The closed days of a year as a set (see `year`): bit 0 is 1 January."""
        ...

    def name_of(self, at: date) -> str:
        """What a closed day is called; "" where it has no name."""
        ...


@dataclass(frozen=True)
class Observance:
    """The calendar that a recurrence observes. `name` is what people call the calendar."""

    name: str
    closed: ClosedDays
    on_holiday: OnHoliday

    @property
    def words(self) -> str:
        """What it does, to be added to a description."""
        return f"{_WORDS[self.on_holiday]} a holiday or weekend day of the calendar {self.name}"


def is_closed(closed: ClosedDays, day: int) -> bool:
    """Whether a day (an ordinal) is closed."""
    if not FIRST_DAY <= day <= LAST_DAY:
        return False
    year = year_of(day)
    return bool(closed.of_year(year) >> (day - first_day(year)) & 1)


@lru_cache(maxsize=1024)
def missing_days_of(zone: Zone) -> frozenset[int]:
    """The local days that a zone left out, as Apia did with 2011-12-30: nothing can fire on them."""
    found: set[int] = set()
    for start, before, after in zip(zone.starts, zone.offsets, zone.offsets[1:], strict=False):
        if after - before >= DAY:
            first = -(-(start + before) // DAY)
            found.update(range(first, (start + after) // DAY))
    return frozenset(found)
