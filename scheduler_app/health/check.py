"""The result of a check: what was looked at, its status, and the remedy when something is wrong."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Status(StrEnum):
    OK = "ok"
    #: Everything works, but an operator should know about this.
    NOTE = "note"
    #: It could not be checked, because something else is wrong.
    UNKNOWN = "unknown"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Check:
    """`found` and `remedy` are sentences for people; `facts` are the figures behind them, by name."""

    name: str
    status: Status
    found: str
    remedy: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the checked thing is known to work."""
        return self.status in (Status.OK, Status.NOTE)


def fine(name: str, found: str, **facts: object) -> Check:
    return Check(name, Status.OK, found, facts=facts)


def note(name: str, found: str, remedy: str, **facts: object) -> Check:
    return Check(name, Status.NOTE, found, remedy, facts)


def wrong(name: str, found: str, remedy: str, **facts: object) -> Check:
    return Check(name, Status.WRONG, found, remedy, facts)


def unknown(name: str, why: str) -> Check:
    return Check(name, Status.UNKNOWN, f"cannot be told: {why}")
