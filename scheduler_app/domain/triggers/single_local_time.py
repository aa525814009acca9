"""One local time as a trigger: a recurrence of one date, which moves with its zone when the zone's rules
change."""

from datetime import datetime

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.local_time import instant_at, read_local
from scheduler_app.domain.recurrence import Gap, Overlap

from .kind import Translation


def at_local_time(
    field: str, local: datetime, timezone: str, gap: Gap, overlap: Overlap, *, names_zone: bool = False
) -> Translation:
    """The one occurrence at `local` (naive, in whole seconds) in an IANA zone, and what a clock change does
    to it.

    The zone is the schedule's, unless the text of `field` `names_zone` itself. Raises InvalidField for a time
    that a clock change leaves out where `gap` is "skip": it would never run.
    """
    stamp = f"{local:%Y%m%dT%H%M%S}"
    date = f"RDATE:{stamp}"
    if names_zone:
        # A date alone has no zone of its own: that of the set would be the schedule's.
        date = f"DTSTART:{stamp}Z" if timezone == "UTC" else f"DTSTART;TZID={timezone}:{stamp}"
    return Translation(recurrence=date, warnings=_clock_change(field, local, timezone, gap, overlap))


def _clock_change(field: str, local: datetime, timezone: str, gap: Gap, overlap: Overlap) -> tuple[str, ...]:
    kind = read_local(local, timezone).kind
    clock = f"{local:%H:%M} on {local:%Y-%m-%d}"
    if kind == "gap":
        missing = f"{clock} does not exist in {timezone}, where clocks are put forward then"
        if gap == "skip":
            raise InvalidField(
                field, f"{missing}: with gap=skip it would never run; give another time, or gap=shift"
            )
        return (f"{missing}; it runs at {instant_at(local, timezone):%H:%M} UTC.",)
    if kind == "overlap":
        twice = f"{clock} comes twice in {timezone}, where clocks are put back then"
        return (f"{twice}; it runs the {overlap} time.",)
    return ()
