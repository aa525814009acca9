"""When and where a phrase is said, and the ways in which it can have no single meaning."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo

from scheduler_app.domain.local_time import instant_at
from scheduler_app.domain.recurrence import Gap, Overlap
from scheduler_app.domain.triggers.phrase.clauses import Clause


@dataclass(frozen=True, slots=True)
class Moment:
    """When and where a phrase is said; `calendar`: the schedule names one.

    `at` is in UTC, as all instants are here: Python adds to times of a zone and compares them by the wall
    clock, on which an hour may come twice.
    """

    at: datetime
    zone: tzinfo
    zone_name: str
    gap: Gap
    overlap: Overlap
    calendar: bool
    names_zone: bool = False
    """Whether the phrase itself names the zone."""

    @property
    def now(self) -> datetime:
        """What the wall clock shows."""
        return self.at.astimezone(self.zone)

    @property
    def today(self) -> date:
        """The date in the zone."""
        return self.now.date()

    def local(self, moment: datetime) -> datetime:
        """A naive local time of the zone as an instant, in UTC."""
        return instant_at(moment, self.zone_name, self.overlap)


class Refused(Exception):
    """The phrase has no meaning; `words` are those that are to blame, if some are."""

    def __init__(self, message: str, words: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.words = tuple(words)


class Several(Exception):
    """The clauses can be read in several ways; each option is a list of clauses that can be read in fewer.

    `ask` where the person must be asked even if only one option turns out to be possible.
    """

    def __init__(self, reason: str, options: Sequence[tuple[Clause, ...]], *, ask: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.options = tuple(options)
        self.ask = ask
