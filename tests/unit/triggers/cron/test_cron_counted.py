"""Random cron expressions fire when a day-by-day counter and cronsim say, for ten years."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from random import Random

import pytest

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.triggers import TriggerContext
from scheduler_app.domain.triggers.cron.translation import cron_reading
from tests.unit.triggers.cron.cron_counter import Counter, count
from tests.unit.triggers.cron.random_crons import random_cron

FIRST, LAST = date(2024, 1, 1), date(2034, 1, 1)
TWO_LEAP_DAYS = date(2028, 3, 2)
FOUR_CENTURIES = date(2424, 1, 1)
CREATED = datetime(2023, 12, 31, 23, 59, 59, tzinfo=UTC)
SEED = 20_260_122
#: Of the long test, a minute on a busy machine.
A_BATCH = 250


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def instants(day: date, counter: Counter) -> list[datetime]:
    return [midnight(day) + timedelta(seconds=time) for time in counter.times]


def translated(text: str, seconds: str | None) -> Recurrence:
    found = cron_reading(text, seconds, TriggerContext(CREATED))  # type: ignore[arg-type]
    return Recurrence.parse(found.recurrence, created_at=CREATED)


def days_of(counter: Counter, last: date) -> tuple[date, ...]:
    """The days before `last` on which it fires; the times of day have no say in that."""
    return _days_of(replace(counter, times=()), last)


@lru_cache(maxsize=512)
def _days_of(counter: Counter, last: date) -> tuple[date, ...]:
    return tuple(counter.days(FIRST, last))


def check_counted(text: str, seconds: str | None, random: Random, *, whole: int, last: date = LAST) -> str:
    """Compares the days before `last` with the counter: each instant where there are at most `whole`.

    Else the first instant of every day that fires must come next after the last one of the day before it, and
    some days are compared whole.
    """
    try:
        counter = count(text, seconds or "first")
    except ValueError:
        with pytest.raises(InvalidField):
            translated(text, seconds)
        return "refused"
    try:
        recurrence = translated(text, seconds)
    except InvalidField as refusal:
        return refused_although_valid(counter, refusal.message)
    days = days_of(counter, last)
    start, stop = midnight(FIRST), midnight(last)
    if len(days) * len(counter.times) <= whole:
        expected = [instant for day in days for instant in instants(day, counter)]
        assert recurrence.between(start, stop) == expected, text
        return "counted"
    at = start - timedelta(seconds=1)
    for day in days:
        assert recurrence.after(at) == midnight(day) + timedelta(seconds=counter.times[0]), (text, day)
        at = midnight(day) + timedelta(seconds=counter.times[-1])
    following = recurrence.after(at)
    assert following is None or following >= stop, text
    for day in random.sample(days, min(2, len(days))):
        one = timedelta(days=1)
        assert recurrence.between(midnight(day), midnight(day) + one) == instants(day, counter), (text, day)
    return "counted"


def refused_although_valid(counter: Counter, message: str) -> str:
    """Only what never fires may be refused, and the two things that rules cannot say."""
    if "can never fire" in message or "no day satisfies" in message:
        assert next(counter.days(FIRST, FOUR_CENTURIES), None) is None, (counter, message)
        return "impossible"
    assert "cannot be combined" in message or "recurrence rules" in message, message
    return "beyond"


def check_run(numbers: range, *, whole: int, last: date) -> dict[str, int]:
    seen: dict[str, int] = {}
    for index in numbers:
        random = Random(SEED + index)
        text, seconds = random_cron(random)
        outcome = check_counted(text, seconds, random, whole=whole, last=last)
        seen[outcome] = seen.get(outcome, 0) + 1
    return seen


@pytest.mark.parametrize("times", ["30 9", "* 9"], ids=["fixed", "by the clock"])
@pytest.mark.parametrize(
    "last", [TWO_LEAP_DAYS, pytest.param(LAST, marks=pytest.mark.long)], ids=["four years", "ten years"]
)
def test_every_letter_form_fires_when_a_counter_says(times: str, last: date) -> None:
    month_days = ["L", "LW", *(f"L-{back}" for back in range(1, 31)), *(f"{day}W" for day in range(1, 32))]
    weekdays = [f"{day}{mark}" for day in range(8) for mark in ("L", "#1", "#2", "#3", "#4", "#5")]
    random = Random(1)
    for text in [f"{times} {day} * ?" for day in month_days] + [f"{times} ? * {day}" for day in weekdays]:
        assert check_counted(text, None, random, whole=0, last=last) == "counted"


def test_30_random_expressions_fire_when_a_counter_says_for_four_years() -> None:
    seen = check_run(range(30), whole=1_000, last=TWO_LEAP_DAYS)
    assert seen["counted"] > 20
    assert seen["impossible"] > 0


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 2_000, A_BATCH))
def test_2000_random_expressions_fire_when_a_counter_says_for_ten_years(first: int) -> None:
    seen = check_run(range(first, first + A_BATCH), whole=100_000, last=LAST)
    assert seen["counted"] > 0.85 * A_BATCH
    assert seen["refused"] > 0.01 * A_BATCH
