"""The parts that a rule does not contain and takes from DTSTART (RFC 5545, 3.3.10).

Two combinations were read otherwise in earlier releases: YEARLY with BYMONTHDAY but without BYMONTH fired in
every month, YEARLY with BYWEEKNO but without BYDAY on all seven days. The canonical text spells such a part
out, so that it has one reading for ever. A stored text that does not was pinned by an earlier release: it
keeps its occurrences, and a note says so.
"""

from dataclasses import replace
from datetime import date

from dateutil.rrule import weekday

from scheduler_app.domain.recurrence.rules.rule import DAY_NAMES, Frequency, Rule


def explicit(rule: Rule, start: date, *, stored: bool) -> tuple[Rule, str | None]:
    """The rule with the part spelled out that earlier releases read otherwise, and what to say of that.

    `start` is DTSTART's local day; `stored` tells a pinned text from one that is given now.
    """
    if rule.freq != Frequency.YEARLY:
        return rule, None
    if rule.by_week_no and not (rule.by_day or rule.by_month_day or rule.by_year_day):
        name = DAY_NAMES[start.weekday()]
        if stored:
            days = tuple(weekday(number) for number in range(7))
            return replace(rule, by_day=days), _kept(
                "YEARLY with BYWEEKNO but no BYDAY", "on all seven days of the week", f"BYDAY={name}"
            )
        return replace(rule, by_day=(weekday(start.weekday()),)), (
            f"YEARLY with BYWEEKNO but no BYDAY fires on DTSTART's day of the week, {name}; "
            "add BYDAY to choose others."
        )
    numbered = any(day.n for day in rule.by_day)  # with BYMONTH their numbers would count in the month
    if rule.by_month_day and not (rule.by_month or rule.by_week_no or rule.by_year_day or numbered):
        if stored:
            return replace(rule, by_month=tuple(range(1, 13))), _kept(
                "YEARLY with BYMONTHDAY but no BYMONTH", "in every month", f"BYMONTH={start.month}"
            )
        return replace(rule, by_month=(start.month,)), (
            f"YEARLY with BYMONTHDAY but no BYMONTH fires in DTSTART's month, BYMONTH={start.month}, once a "
            "year; add BYMONTH to choose others, or use FREQ=MONTHLY."
        )
    return rule, None


def _kept(what: str, how: str, now: str) -> str:
    return (
        f"This rule was made by an earlier release, which read {what} as {how}, and keeps its occurrences. "
        f"A new rule takes what is missing from DTSTART, as RFC 5545 says: {now}. "
        "Write the parts that you mean."
    )
