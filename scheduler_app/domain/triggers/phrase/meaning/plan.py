"""Days, times, the beginning, the end and what is left out, put together."""

from dataclasses import dataclass
from datetime import datetime

from scheduler_app.domain.triggers.kind import Translation
from scheduler_app.domain.triggers.phrase.clauses import For, Repeat, Start, Total, Until
from scheduler_app.domain.triggers.phrase.moments import Time
from scheduler_app.domain.triggers.phrase.rules import DayRule, Plan, bodies, text_of

from .bag import Bag
from .day_rules import NamedDays
from .left_out import LeftOut, without
from .outcome import Moment, Refused
from .span import end_after, start_instant, until_instant

MAX_TOTAL = 100_000
_WEEKENDS = "The calendar's weekend days are left out with its holidays; to keep them give it the weekend []."


@dataclass
class Steps:
    """The units in which a phrase repeats: shorter than a day, and from a day on."""

    short: Repeat | None = None
    long: Repeat | None = None


def end_of(
    bag: Bag, until: Until | None, clock: Time | None, start: datetime | None, moment: Moment
) -> tuple[datetime | None, int | None]:
    length, total = bag.take(For), bag.take(Total)
    if sum(one is not None for one in (until, length, total)) > 1:
        raise Refused("two ends are given; give one")
    if total is not None and not 1 <= total.times <= MAX_TOTAL:
        raise Refused(f"a number of times is from 1 to {MAX_TOTAL}", (str(total.times),))
    if until is not None:
        return until_instant(bag, until, moment, clock), None
    if length is not None:
        return end_after(length, start, moment), None
    return None, None if total is None else total.times


def _on_workdays_only(rule: DayRule) -> bool:
    """Whether a rule names only days from Monday to Friday."""
    days = dict(rule.parts).get("BYDAY", "")
    return bool(days) and not any(weekend in days for weekend in ("SA", "SU"))


def finished(
    bag: Bag,
    named: NamedDays,
    interval: int,
    seconds: list[int],
    left_out: LeftOut | None,
    span: tuple[Start | None, Until | None],
    moment: Moment,
    warnings: tuple[str, ...] = (),
) -> Translation:
    start, until = span
    first = None if start is None or start.day is None else start_instant(bag, start, moment, None)
    end, total = end_of(bag, until, None, first, moment)
    bag.check_empty()
    if not seconds:
        raise Refused("everything is left out; nothing remains")
    rules = named.rules
    excluded: list[DayRule] = []
    if left_out is not None:
        rules, excluded = without(rules, interval, left_out)
    on_holiday = named.on_holiday
    if left_out is not None and left_out.holidays:
        if on_holiday in ("next", "previous"):
            raise Refused("a day is moved off holidays or left out on them; say one of the two")
        on_holiday = on_holiday or "skip"
        if not all(_on_workdays_only(rule) for rule in rules):
            warnings = (*warnings, _WEEKENDS)
    rule_bodies = bodies(rules, seconds)
    if total is not None and moment.calendar and on_holiday in ("skip", "uncounted"):
        if len(rule_bodies) > 1:
            raise Refused(
                "with a calendar, so many times cannot be counted over several times of day; give an end"
            )
        on_holiday = "uncounted"  # days that the calendar closes are none of so many times
    if on_holiday == "uncounted" and interval > 1:
        raise Refused("with a calendar, business days are counted in each period; name the months")
    plan = Plan(
        rule_bodies,
        interval,
        bodies(excluded, seconds) if excluded else (),
        tuple(sorted(left_out.days)) if left_out is not None else (),
        first=first,
        until=end,
        total=total,
        counts_open_days=on_holiday == "uncounted",
    )
    return Translation(text_of(plan, moment), warnings=warnings, on_holiday=on_holiday)
