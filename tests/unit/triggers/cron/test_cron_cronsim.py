"""cronsim, a second opinion by others: the same days for ten years and the same instants, or a known
difference.

What cronsim 2.8 does not know, or reads otherwise, is the table at the end; everything else must be equal.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import islice, takewhile
from random import Random

import pytest
from cronsim import CronSim, CronSimError

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.triggers import TriggerContext
from scheduler_app.domain.triggers.cron.translation import cron_reading
from tests.unit.triggers.cron.cron_counter import SHORT
from tests.unit.triggers.cron.random_crons import random_cron

START = datetime(2023, 12, 31, 23, 59, 59, tzinfo=UTC)
STOP = datetime(2034, 1, 1, tzinfo=UTC)
SEED = 20_260_122
#: Of the long test, a minute on a busy machine.
A_BATCH = 250


def translated(text: str, seconds: str | None = None) -> Recurrence:
    found = cron_reading(text, seconds, TriggerContext(START))  # type: ignore[arg-type]
    return Recurrence.parse(found.recurrence, created_at=START)


def for_cronsim(text: str, seconds: str | None) -> str | None:
    """The expression as cronsim writes it, with the seconds first; None where it has no words for it."""
    fields = SHORT.get(text.lower(), text).lower().split()
    if seconds == "last" and len(fields) == 6:
        fields = [fields[5], *fields[:5]]
    *_, month_day, _, weekday = ["", "", *fields]
    if any((item.endswith("w") and item != "lw") or item.startswith("l-") for item in month_day.split(",")):
        return None
    if any(item.endswith("l") and not item[:-1].isdigit() for item in weekday.split(",")):
        return None
    # It takes a range of one number with a step for that number with a step: see the table.
    fields = [re.sub(r"\b0*(\d+)-0*\1/\d+", r"\1", field) for field in fields]
    return " ".join("*" if field == "?" else field for field in fields)


def check_cronsim(text: str, seconds: str | None, random: Random) -> str:
    theirs = for_cronsim(text, seconds)
    if theirs is None:
        return "not known"
    try:
        CronSim(theirs, START)
    except CronSimError:
        with pytest.raises(InvalidField):
            translated(text, seconds)
        return "refused"
    try:
        ours = translated(text, seconds)
    except InvalidField as refusal:
        return refused_by_us(theirs, refusal.message)
    expression = theirs.split()
    check_days(ours, days_of(" ".join(expression[-3:])), text)
    for _ in range(3):
        at = START + timedelta(seconds=random.randrange(10 * 365 * 86_400))
        expected = list(islice(until(CronSim(theirs, at), STOP), 20))
        end = expected[-1] + timedelta(seconds=1) if len(expected) == 20 else STOP
        assert ours.between(at + timedelta(seconds=1), end, 21) == expected, text
    return "equal"


@lru_cache(maxsize=512)
def days_of(fields: str) -> tuple[date, ...]:
    """The days of ten years that cronsim finds for a day, a month and a weekday."""
    return tuple(instant.date() for instant in until(CronSim(f"0 0 {fields}", START), STOP))


def refused_by_us(theirs: str, message: str) -> str:
    """cronsim takes a question mark in any field for `*` here; it looks for what never fires, in vain."""
    if "question mark" in message:
        return "not known"
    assert "can never fire" in message or "no day satisfies" in message, (theirs, message)
    with pytest.raises((StopIteration, CronSimError)):
        next(CronSim(theirs, START))
    return "refused"


def until(found: CronSim, stop: datetime) -> Iterator[datetime]:
    return takewhile(lambda instant: instant < stop, found)


def check_days(ours: Recurrence, days: Iterable[date], text: str) -> None:
    """It fires on just these days."""
    at = START
    for day in days:
        following = ours.after(at)
        assert following is not None, text
        assert following.date() == day, text
        at = datetime(day.year, day.month, day.day, 23, 59, 59, tzinfo=UTC)
    following = ours.after(at)
    assert following is None or following >= STOP, text


def check_run(numbers: range) -> dict[str, int]:
    seen: dict[str, int] = {}
    for index in numbers:
        random = Random(SEED + index)
        outcome = check_cronsim(*random_cron(random), random)
        seen[outcome] = seen.get(outcome, 0) + 1
    return seen


def test_15_random_expressions_fire_when_cronsim_says() -> None:
    assert check_run(range(15))["equal"] > 8


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 2_000, A_BATCH))
def test_2000_random_expressions_fire_when_cronsim_says(first: int) -> None:
    seen = check_run(range(first, first + A_BATCH))
    assert seen["equal"] > 0.6 * A_BATCH
    assert seen["refused"] > 0.01 * A_BATCH


# Where cronsim 2.8 and we differ. "-": refused.
DIFFERENCES = [
    ("@daily", "-", "every day", "cronsim has no shorthands"),
    ("0 9 L-3 * *", "-", "28 January", "cronsim has no L-3"),
    ("0 9 15W * *", "-", "15 January", "cronsim has no W"),
    ("0 9 * * friL", "-", "30 January", "cronsim knows 5L only by its number"),
    ("0 9 ? * 1", "-", "every Monday", "cronsim has no question mark"),
    ("0 9 1-1/5 * *", "days 1, 6, 11, …", "day 1", "crontab(5): a step stays within its range"),
    ("0 9 L/2 * *", "the last day", "-", "a step of one day has no meaning"),
    ("0 0 9 * * 1-5", "09:00", "-", "six fields have two readings; cron_seconds tells which"),
]


@pytest.mark.parametrize(("text", "theirs", "ours", "why"), DIFFERENCES, ids=[row[0] for row in DIFFERENCES])
def test_a_difference_from_cronsim_is_as_the_table_says(text: str, theirs: str, ours: str, why: str) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    if theirs == "-":
        with pytest.raises(CronSimError):
            CronSim(text, at)
    else:
        next(CronSim(text, at))
    if ours == "-":
        with pytest.raises(InvalidField):
            translated(text)
    else:
        assert translated(text).after(at)
    if theirs != "-" and ours != "-":
        expected = list(islice(CronSim(text, at), 5))
        assert translated(text).between(at, STOP, 5) != expected
