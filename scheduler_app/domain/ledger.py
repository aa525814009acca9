"""The ledger: what was owed in each hour and what became of it, one line after another, each with the hash of
the line before. A line that was changed afterwards no longer has the hash that the next one names.

An hour has several lines where events ended after the first was written: the last of them is true.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.domain import hash_chain
from scheduler_app.domain.hash_chain import BEGINNING, Link, Verification
from scheduler_app.domain.instants import shown_instant

HOUR: Final = timedelta(hours=1)
#: How long after its end an hour is judged: what was due at its end has had time to be expanded and sent.
JUDGED_AFTER: Final = timedelta(minutes=10)
#: How many ids of missing and of unexplained events a line names.
MOST_NAMED: Final = 100
#: The `failure` of a cause that the ledger tells of.
OF_LEDGER: Final = "ledger"


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """What was owed, and what became of it. `owed` is the sum of all the others but `unexplained` and
    `unjudged`."""

    owed: int = 0
    """Occurrences that the rules name, and events that people and programs asked for."""
    completed: int = 0
    error: int = 0
    cancelled: int = 0
    expired: int = 0
    skipped: int = 0
    held: int = 0
    """Not ended, and held by a kill switch."""
    open: int = 0
    """Not ended: they wait, run, or are tried again."""
    missing: int = 0
    """Owed, and there is no event."""
    unexplained: int = 0
    """Events that no rule and no request explains."""
    unjudged: int = 0
    """Schedules whose rule the witness cannot evaluate; their events count as owed."""

    def __add__(self, other: "OutcomeCounts") -> "OutcomeCounts":
        return OutcomeCounts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    def as_dict(self) -> dict[str, int]:
        """By name, in the order of the lines."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


#: The names of the counts, as documents, answers and files have them.
COUNTED: Final = tuple(each.name for each in fields(OutcomeCounts))


@dataclass(frozen=True, slots=True)
class Account:
    """What was found for one tenant and hour."""

    counts: OutcomeCounts = OutcomeCounts()
    missing: tuple[str, ...] = ()
    """The first `MOST_NAMED` ids of events that should be there."""
    unexplained: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()
    """The first schedules whose rule the witness cannot evaluate."""

    def __add__(self, other: "Account") -> "Account":
        return Account(
            self.counts + other.counts,
            (*self.missing, *other.missing)[:MOST_NAMED],
            (*self.unexplained, *other.unexplained)[:MOST_NAMED],
            (*self.unjudged, *other.unjudged)[:MOST_NAMED],
        )


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One line of a tenant's ledger."""

    tenant: str
    number: int
    """Its place in the tenant's ledger, from 1."""
    hour: datetime
    """The beginning of the hour that it tells of."""
    turn: int
    """Which line of that hour it is, from 1."""
    written_at: datetime
    account: Account
    previous: str = BEGINNING
    """The hash of the line before."""
    hash: str = field(default="")

    def sealed(self) -> "LedgerLine":
        """This line with its hash."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return LedgerLine(**values | {"hash": self.digest()})

    def digest(self) -> str:
        """SHA-256 of the line and of the hash before it, as 64 hexadecimal digits."""
        said = {
            "tenant": self.tenant,
            "number": self.number,
            "hour": shown_instant(self.hour),
            "turn": self.turn,
            "written_at": shown_instant(self.written_at),
            "counts": self.account.counts.as_dict(),
            "missing": list(self.account.missing),
            "unexplained": list(self.account.unexplained),
            "unjudged": list(self.account.unjudged),
            "previous": self.previous,
        }
        return hash_chain.digest(said)

    @property
    def link(self) -> Link:
        of = f"of {shown_instant(self.hour)}"
        return Link(self.number, self.previous, self.hash, self.digest(), of)


def verify(lines: Iterable[LedgerLine], *, first: LedgerLine | None = None) -> Verification:
    """Reads lines in their order; `first` is the one before them, where the retention removed some."""
    return hash_chain.verify((line.link for line in lines), first=first.link if first else None)


def by_hour(lines: Iterable[LedgerLine]) -> list[LedgerLine]:
    """The last line of each hour, in the order of the hours."""
    last: dict[datetime, LedgerLine] = {}
    for line in lines:
        known = last.get(line.hour)
        if known is None or line.turn > known.turn:
            last[line.hour] = line
    return [last[hour] for hour in sorted(last)]


def hour_of(instant: datetime) -> datetime:
    """The beginning of the hour of UTC in which an instant lies."""
    return instant.replace(minute=0, second=0, microsecond=0)


def counts_from(values: Mapping[str, int]) -> OutcomeCounts:
    """The counts of a stored line; a count that it has not is 0."""
    return OutcomeCounts(**{name: values.get(name, 0) for name in COUNTED})


def newest_judged(now: datetime) -> datetime:
    """The newest hour that is judged."""
    return hour_of(now - JUDGED_AFTER) - HOUR


def oldest_judged(now: datetime, kept: timedelta) -> datetime:
    """The oldest hour of which no event is removed yet, where they are kept for so long after their end. That
    may come before their time, where an edit withdraws them: an hour at most."""
    return hour_of(now - kept) + 2 * HOUR
