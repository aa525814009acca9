"""When and where a phrase is said, and the ways in which it can have no single meaning."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo

from scheduler_app.domain.local_time import instant_at
from scheduler_app.domain.recurrence import Gap, Overlap
from scheduler_app.domain.triggers.phrase.clauses import Clause


@dataclass(frozen=True, slots=True)
class Moment:
    """When and where a phrase is said: `at` is aware, in `zone`. `calendar`: the schedule names one."""

    at: datetime
    zone: tzinfo
    zone_name: str
    gap: Gap
    overlap: Overlap
    calendar: bool
    names_zone: bool = False
    """Whether the phrase itself names the zone."""

    @property
    def today(self) -> date:
        return self.at.date()

    def local(self, moment: datetime) -> datetime:
        """A naive local time as an instant of the zone."""
        return instant_at(moment, self.zone_name, self.overlap).astimezone(self.zone)


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
