"""The result of a check: what was looked at, its status, and the remedy when something is wrong.

It holds what several checks share, too: whether MongoDB is a replica set, without which writes are neither
retried nor safe from a failover, and the texts of drivers' errors, made short and free of passwords.
"""

import re
from collections.abc import Iterable, Mapping
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


def unknown_without_mongodb(*names: str) -> list[Check]:
    """The checks of what is read from MongoDB, while that does not answer."""
    return [unknown(name, "MongoDB does not answer") for name in names]


#: How many things a sentence names.
NAMED = 5


def first_few(names: Iterable[str], separator: str = ", ", conjunction: str = " and") -> str:
    """`a, b, c, d, e and 4 more`."""
    known = list(names)
    more = f"{conjunction} {len(known) - NAMED} more" if len(known) > NAMED else ""
    return separator.join(known[:NAMED]) + more


#: What to do about a mongod that is not part of a replica set.
REPLICA_SET_REMEDY = "start it with --replSet rs0 and run rs.initiate() once; a set of one is enough"


def is_replica_set(hello: Mapping[str, object]) -> bool:
    """Whether the answer to `hello` comes from a member of an initiated set, or from a mongos."""
    return "setName" in hello or is_mongos(hello)


def is_mongos(hello: Mapping[str, object]) -> bool:
    return hello.get("msg") == "isdbgrid"


_SECRET_OPTION = re.compile(r"([?&][^=&\s]*(?:pass|secret|token|propert)[^=&\s]*)=[^&;\s]*", re.IGNORECASE)
_DRIVER_STATE = re.compile(r" \(configured timeouts|, Timeout: |, full error: ")


def without_passwords(text: str) -> str:
    """Returns `text` with every password in its URLs masked: in front of the host, escaped or not, and in
    the query."""
    text = re.sub(r"//([^/@:\s]*):\S*@", r"//\1:***@", text)
    return _SECRET_OPTION.sub(r"\1=***", text)


def error_summary(error: Exception) -> str:
    """Returns the driver's sentence on one line, without its internal state, passwords and final full stop;
    the error's class where it says nothing."""
    text = without_passwords(" ".join(str(error).split())) or type(error).__name__
    return _DRIVER_STATE.split(text)[0].rstrip(".")
