"""The checkpoint of a recurrence with COUNT: how many instances of each counting rule lie before an instant.

A schedule stores it and gives it back to `Recurrence.parse`. It is bound to the text, to the choices at
clock changes and to the zone data by a fingerprint, because another rule would have counted otherwise; one
that does not fit is not used, and instances are counted from DTSTART, which is slower but right.
"""

from hashlib import sha256
from typing import Any, Final, TypeGuard

from scheduler_app.domain.errors import InvalidRecurrence

from .zones.zone import zone_data_version

_VERSION: Final = 1


def fingerprint(text: str, gap: str, overlap: str) -> str:
    """What a count depends on, as 16 hexadecimal digits."""
    return sha256("\0".join((text, gap, overlap, zone_data_version())).encode()).hexdigest()[:16]


def write_checkpoint(rule: str, second: int, done: list[int]) -> dict[str, Any]:
    """The checkpoint as a JSON and BSON value; `rule` is the fingerprint."""
    return {"v": _VERSION, "rule": rule, "second": second, "done": done}


def read_checkpoint(value: dict[str, Any], rule: str, rules: int) -> tuple[int, list[int]] | None:
    """`(second, instances of each rule before it)`; None when it belongs to another rule or release.

    InvalidRecurrence when it is no checkpoint at all.
    """
    second, done = value.get("second"), value.get("done")
    if not (
        _is_count(second)
        and isinstance(done, list)
        and all(_is_count(number) and number >= 0 for number in done)
    ):
        raise InvalidRecurrence("checkpoint", "is not a value that `checkpoint()` made; leave it out")
    if value.get("v") != _VERSION or value.get("rule") != rule or len(done) != rules:
        return None
    return second, done


def _is_count(value: Any) -> TypeGuard[int]:
    """A whole number of any class: beyond 32 bits MongoDB gives back a `bson.Int64`."""
    return isinstance(value, int) and not isinstance(value, bool)
