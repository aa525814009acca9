"""What the question "why?" is answered with."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something fires at an instant, or does not."""

    code: str
    """A part of RFC 5545 in capitals (`BYDAY`, `INTERVAL`, `EXDATE`, …), or a word of ours in small letters
    (`gap`, `overlap`, `paused`, …)."""
    message: str
    """A sentence for people."""
    rule: str | None = None
    """The rule that the reason is about; None if it is about none."""


@dataclass(frozen=True, slots=True)
class RecurrenceVerdict:
    """Whether a recurrence fires at an instant, and its nearest occurrences."""

    fires: bool
    reasons: tuple[Reason, ...] = ()
    """One for each rule, in their order; those of exceptions first. Empty where it fires."""
    causes: tuple[Reason, ...] = ()
    """What names the instant, or moved an occurrence to it. Empty where it does not fire."""
    previous: datetime | None = None
    """The last occurrence before the instant, in UTC."""
    following: datetime | None = None
    """The first occurrence after the instant, in UTC."""
    previous_searched: bool = True
    """False where the search for `previous` was given up because it needs too many steps."""
