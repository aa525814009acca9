"""The words that all reasons share."""

from datetime import datetime
from typing import Final

from scheduler_app.domain.recurrence.description.vocabulary import MONTHS, WEEKDAYS, ordinal
from scheduler_app.domain.recurrence.rules.bound_rule import BoundRule
from scheduler_app.domain.recurrence.rules.rule import Frequency
from scheduler_app.domain.recurrence.text.time_text import write_time
from scheduler_app.domain.recurrence.timeline import local_datetime

__all__ = ["MONTHS", "UNITS", "day_in_words", "on_the_clock", "ordinal", "part_text", "rule_text"]

UNITS: Final = {
    Frequency.YEARLY: "year",
    Frequency.MONTHLY: "month",
    Frequency.WEEKLY: "week",
    Frequency.DAILY: "day",
    Frequency.HOURLY: "hour",
    Frequency.MINUTELY: "minute",
    Frequency.SECONDLY: "second",
}


def on_the_clock(local: int) -> str:
    """A local second in words: Wednesday 3 March 2027, 09:30:00."""
    moment = local_datetime(local, None)
    return f"{_day(moment)}, {moment:%H:%M:%S}"


def day_in_words(local: int) -> str:
    """The day of a local second in words: Wednesday 3 March 2027."""
    return _day(local_datetime(local, None))


def _day(moment: datetime) -> str:
    return f"{WEEKDAYS[moment.weekday()]} {moment.day} {MONTHS[moment.month - 1]} {moment.year}"


def rule_text(bound: BoundRule) -> str:
    """The rule as RFC 5545 writes it."""
    until = None if bound.until is None else write_time(bound.until, utc=True)
    return bound.rule.text(until)


def part_text(bound: BoundRule, name: str) -> str | None:
    """A part of the rule as it is written, such as `BYDAY=MO`; None if the rule does not have it."""
    return next((part for part in rule_text(bound).split(";") if part.startswith(f"{name}=")), None)
