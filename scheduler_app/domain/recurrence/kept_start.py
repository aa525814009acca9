"""A recurrence whose time zone alone is changed keeps the DTSTART that it has.

Where a rule was written without a DTSTART, its start is the moment at which it was given. Taken from the
moment of the change instead, it would put "every two weeks" into the other weeks, and a COUNT back to its
beginning.
"""

import re
from datetime import datetime
from typing import TYPE_CHECKING, Final

from scheduler_app.domain.recurrence.rule_text import read_time, write_time
from scheduler_app.domain.recurrence.zones import find_zone

from .description import vocabulary as say
from .timeline import floor_second

if TYPE_CHECKING:
    from .recurrence import Recurrence

_ZONED: Final = re.compile(r"(DTSTART|RDATE|EXDATE)(?:;TZID=[^:]*)?:(.*)")
_UNTIL: Final = re.compile(r"UNTIL=(\d{8}T\d{6}Z)")


def kept_start(recurrence: "Recurrence", timezone: str, at: datetime) -> tuple[str, tuple[str, ...]]:
    """The start of `recurrence` for the zone `timezone`, which it is to be read in from the aware `at` on: a
    DTSTART line without a zone, and what may surprise of it.

    Days by the calendar keep their date and time of day. Steps of elapsed time keep their instants, if the
    set has no other rules.
    """
    start, zone = recurrence._start, find_zone(timezone)
    rules = [rule.bound.rule for rule in recurrence._set.rules]
    elapsed = [rule for rule in rules if rule.elapsed]
    warnings = []
    local = start.local
    if elapsed and len(elapsed) == len(rules):
        local = start.instant + zone.offset(start.instant)
    instant = zone.read(local).instant(last=recurrence.overlap == "last")
    if elapsed and instant != start.instant:
        warnings.append(
            f"Steps of elapsed time (FREQ={elapsed[0].freq.name}) are counted from {say.moment(local)}"
            f" in {zone.name} now, which is another instant than before; give a DTSTART to choose it."
        )
    if instant > floor_second(at) >= start.instant:
        warnings.append(
            f"It keeps its start, {say.moment(local)}, which is still to come in {zone.name}: nothing fires"
            " before it; give a DTSTART to choose an earlier one."
        )
    return f"DTSTART:{write_time(local, utc=False)}", tuple(warnings)


def without_zone(recurrence: "Recurrence", timezone: str, at: datetime) -> tuple[str, tuple[str, ...]]:
    """The lines of `recurrence`, all of whose times are local ones of its zone, for another zone; and what
    `kept_start` warns of. An UNTIL keeps its local time."""
    start, warnings = kept_start(recurrence, timezone, at)
    old, new = recurrence._start.zone, find_zone(timezone)

    def until(match: re.Match[str]) -> str:
        second = read_time("UNTIL", match[1]).second
        local = second + old.offset(second)
        return f"UNTIL={write_time(new.read(local).instant(last=True), utc=True)}"

    lines = [start]
    for line in recurrence.text.split("\n"):
        zoned = _ZONED.fullmatch(line)
        if zoned is None:
            lines.append(_UNTIL.sub(until, line))
        elif zoned[1] != "DTSTART":
            lines.append(f"{zoned[1]}:{zoned[2].replace('Z', '')}")
    return "\n".join(lines), warnings
