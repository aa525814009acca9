"""From a cron expression to the recurrence rules that fire at the same times.

At clock changes a rule means what Vixie's cron does. A job with a `*` at the beginning of one of its times
follows the clock: HOURLY, MINUTELY and SECONDLY rules step in elapsed time and look at what the clock shows.
Any other job has fixed times, which come once each day: the other rules do that, with the schedule's `gap`
and `overlap`. A step is never an INTERVAL: `*/7` begins anew each hour.
"""

from typing import Final

from scheduler_app.domain.recurrence.rules.rule import DAY_NAMES
from scheduler_app.domain.recurrence.text.parsed_text import MAX_RULES

from .day_rules import DayRule, day_rules
from .errors import refused
from .expression import Expression

_MOST_POSITIONS: Final = 366


def rules_of(of: Expression, *, skips_gap: bool) -> list[str]:
    """The values of the RRULE lines whose union `of` is; InvalidField where there are none.

    With `skips_gap` times that a clock change leaves out do not fire, and hold no position for BYSETPOS: then
    none is used. Some of several rules may never fire; whoever evaluates them can tell.
    """
    times = len(of.hours.numbers) * len(of.minutes.numbers) * len(of.seconds.numbers)
    fixed = not of.follows_clock
    days = day_rules(of, ranks=fixed, positions=fixed and not skips_gap and times <= _MOST_POSITIONS)
    if not days:
        raise refused("no day satisfies both day fields; change one of them")
    if len(days) > MAX_RULES:
        raise refused(
            f"takes {len(days)} recurrence rules, and at most {MAX_RULES} are allowed; give some of its days "
            "to another schedule"
        )
    return [_rule(each, of, times) for each in days]


def _rule(days: DayRule, of: Expression, times: int) -> str:
    freq = _elapsed_frequency(of) if of.follows_clock else _calendar_frequency(days)
    hours = () if of.follows_clock and len(of.hours.numbers) == 24 else of.hours.numbers
    minutes = () if freq in ("MINUTELY", "SECONDLY") and len(of.minutes.numbers) == 60 else of.minutes.numbers
    seconds = () if freq == "SECONDLY" else of.seconds.numbers
    # Each of its times is one member of the set that BYSETPOS picks from.
    positions = range(1, times + 1) if days.position > 0 else range(-times, 0) if days.position else ()
    parts = (
        ("BYMONTH", days.months),
        ("BYYEARDAY", days.year_days),
        ("BYMONTHDAY", days.month_days),
        ("BYDAY", [f"{rank or ''}{DAY_NAMES[weekday]}" for rank, weekday in days.weekdays]),
        ("BYHOUR", hours),
        ("BYMINUTE", minutes),
        ("BYSECOND", seconds),
        ("BYSETPOS", positions),
    )
    return ";".join([f"FREQ={freq}", *(f"{name}={','.join(map(str, held))}" for name, held in parts if held)])


def _elapsed_frequency(of: Expression) -> str:
    if len(of.seconds.numbers) == 60:
        return "SECONDLY"
    return "MINUTELY" if len(of.minutes.numbers) == 60 else "HOURLY"


def _calendar_frequency(days: DayRule) -> str:
    if days.position:
        return "MONTHLY"
    if days.year_days:
        return "YEARLY"
    if days.month_days or days.ranked:
        return "YEARLY" if days.months else "MONTHLY"
    return "WEEKLY" if days.weekdays else "DAILY"
