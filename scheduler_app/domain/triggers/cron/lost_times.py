"""Days on which an expression that follows the clock does not fire: the clock leaves out all of its times."""

from dataclasses import replace
from datetime import timedelta

from scheduler_app.domain.recurrence.description import vocabulary as say
from scheduler_app.domain.recurrence.timeline import DAY, floor_second, to_datetime
from scheduler_app.domain.recurrence.zones.zone import find_zone
from scheduler_app.domain.triggers.kind import TriggerContext

from .expression import Expression
from .reading import parsed, recurrence_of

_AHEAD = 2 * 366 * DAY  # how far clock changes are looked for; the next ones tell


def lost_times(of: Expression, context: TriggerContext) -> str | None:
    """A sentence about the first coming day whose times are all left out; None if there is none."""
    if not of.follows_clock:
        return None
    zone = find_zone(context.timezone)
    first = _second_of_day(of, 0)
    last = _second_of_day(of, -1)
    now = floor_second(context.at)
    for start, end in zone.gaps(now, now + _AHEAD):
        midnight = start // DAY * DAY
        if start <= midnight + first and midnight + last < end:
            instant = to_datetime(zone.read(midnight + first).early)
            # At fixed times it would fire then, if the day is one of its days.
            fixed = parsed(recurrence_of(_fixed(of), context), replace(context, gap="shift"))
            if fixed.between(instant, instant + timedelta(seconds=1)):
                return (
                    f"It follows the clock, as in cron, so it does not fire on {say.date(start)}, when "
                    f"clocks skip {say.clock(start % DAY)} to {say.clock(end % DAY)}; list its minutes and "
                    "hours without * to fire then as well."
                )
    return None


def _second_of_day(of: Expression, index: int) -> int:
    """The first time of day (index 0), or the last (-1)."""
    return of.hours.numbers[index] * 3600 + of.minutes.numbers[index] * 60 + of.seconds.numbers[index]


def _fixed(of: Expression) -> Expression:
    """The expression as one of fixed times."""
    return replace(
        of,
        seconds=replace(of.seconds, star=False),
        minutes=replace(of.minutes, star=False),
        hours=replace(of.hours, star=False),
    )
