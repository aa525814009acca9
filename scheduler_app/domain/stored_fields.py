"""Checks of the fields of stored documents.

Somebody may have edited a document by hand, and a restore or a newer release may have written it. bool is
no number here, NaN is none, and a float that is whole is a whole number (shells write 1 as 1.0).
"""

import math
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any

from scheduler_app.domain.ids import tenant_of

#: Beyond it a double no longer holds every whole number.
MAX_WHOLE = 2**53
#: Instants outside of these are refused.
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9999, 1, 1, tzinfo=UTC)

#: The value as it is to be used. Raises Corrupt.
Check = Callable[[Any, str], Any]


class Corrupt(Exception):
    """A stored field is not what it must be; the message names it."""


def kind_of(value: Any) -> str:
    """A value's type in words, for a reason that people read."""
    if value is None:
        return "missing or null"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    name = "DateTime" if type(value).__name__ == "DatetimeMS" else type(value).__name__
    if name == "DateTime":
        return "a date beyond the years 1 to 9999"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def wrong(name: str, value: Any, wanted: str) -> Corrupt:
    return Corrupt(f"{name} is {kind_of(value)}, not {wanted}")


def text(value: Any, name: str) -> str:
    if type(value) is not str:
        raise wrong(name, value, "text")
    return value


def tenant(value: Any, name: str, owner_id: str) -> str:
    """The tenant that the document's own id names, and no other."""
    named, owner = text(value, name), tenant_of(owner_id)
    if named != owner:
        raise Corrupt(f"{name} is {named[:80]!r}, and the document's id is one of {owner!r}")
    return named


def schedule_id(value: Any, name: str, event_id: str) -> str:
    """A schedule of the same tenant as the event's: another's would be called with its secrets."""
    named = text(value, name)
    if tenant_of(named) != tenant_of(event_id):
        raise Corrupt(f"{name} is {named[:80]!r}, which is another tenant's")
    return named


def whole(value: Any, name: str, *, least: int = 0, most: int = MAX_WHOLE) -> int:
    """A whole number; `least` and `most` are allowed."""
    if type(value) is int and least <= value <= most:  # nearly always
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong(name, value, "a whole number")
    if not least <= value <= most:
        raise Corrupt(f"{name} is {value}, not between {least} and {most}")
    return int(value)


def number(value: Any, name: str, *, least: float = 0.0, most: float = math.inf) -> float:
    """A finite number; `least` and `most` are allowed."""
    if (type(value) is float or type(value) is int) and least <= value <= most and value < math.inf:
        return value  # nearly always
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise wrong(name, value, "a number")
    if not least <= value <= most:
        raise Corrupt(f"{name} is {value:g}, not between {least:g} and {most:g}")
    return value


def instant(value: Any, name: str) -> datetime:
    if not isinstance(value, datetime):
        raise wrong(name, value, "a date")
    # By their years: aware datetimes are compared by calling their zones, which takes three times as long.
    if not EARLIEST.year <= value.year < LATEST.year:
        raise Corrupt(f"{name} is {value.isoformat()}, not between the years 1970 and 9998")
    return value


def items(value: Any, name: str) -> list[Any]:
    if type(value) is not list:
        raise wrong(name, value, "a list")
    return value


def pairs(value: Any, name: str) -> tuple[tuple[str, str], ...]:
    """Names and values, which a document has as a list of lists."""
    return tuple([_pair(pair, name) for pair in items(value, name)])


def _pair(pair: Any, name: str) -> tuple[str, str]:
    if len(items(pair, f"an item of {name}")) != 2:
        raise Corrupt(f"an item of {name} is not a pair of a name and a value")
    return text(pair[0], f"a name in {name}"), text(pair[1], f"a value in {name}")


def fields(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong(name, value, "an object")
    return value


def flag(value: Any, name: str) -> bool:
    if value is not True and value is not False:
        raise wrong(name, value, "true or false")
    return value


def one_of(value: Any, name: str, choices: Collection[str]) -> str:
    if type(value) is not str:
        raise wrong(name, value, "text")
    if value not in choices:
        raise Corrupt(f"{name} is {value[:50]!r}, not one of {', '.join(choices)}")
    return value


def version(value: Any, ours: int) -> int:
    """Raises Corrupt for a `v` that no release has written, and Newer for one that is not ours yet."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value > ours:
        raise Newer(f"v is {value:g}, and this release reads {ours}")
    return whole(value, "v", least=1)


class Newer(Corrupt):
    """The document was written by a newer release, whose processes know what it means."""


def optional(check: Check, value: Any, name: str) -> Any:
    """None for what is missing or null."""
    return None if value is None else check(value, name)
