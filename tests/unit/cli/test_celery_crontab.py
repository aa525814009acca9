"""Celery's crontabs become triggers that fire at the times at which Celery runs them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery.schedules import crontab

from scheduler_app.cli.celery_beat.triggers import crontab_trigger
from scheduler_app.cli.entry_import import NotImportable
from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.triggers.cron.translation import cron_reading
from scheduler_app.domain.triggers.translation import TriggerContext

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 430
FIELDS = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
EXPRESSIONS: list[dict[str, Any]] = [
    {},
    {"minute": "*/15", "hour": "22-2"},
    {"minute": 0, "hour": 6},
    {"minute": "0", "hour": {6, 7, 9}},
    {"minute": [0, 30], "hour": "*/5", "day_of_week": "mon-fri"},
    {"minute": 0, "hour": 0, "day_of_week": "fri-mon"},
    {"minute": 0, "hour": 0, "day_of_week": "Saturday,sun"},
    {"minute": 0, "hour": 0, "day_of_week": "*/3"},
    {"minute": 0, "hour": 6, "day_of_week": "fri", "day_of_month": "13"},
    {"minute": 0, "hour": 6, "day_of_week": "1-5", "day_of_month": "*/4"},
    {"minute": 0, "hour": 6, "day_of_week": "0-6", "day_of_month": "1,15"},
    {"minute": 0, "hour": 6, "day_of_week": "1", "day_of_month": "1-31"},
    {"minute": "*/7", "hour": "*", "day_of_week": "1", "day_of_month": "1-7"},
    {"minute": "*", "hour": "3", "day_of_week": "1", "day_of_month": "8-14", "month_of_year": "*/5"},
    {"minute": "50-10/5", "hour": "8", "month_of_year": "11-2"},
    {"minute": 0, "hour": "8", "month_of_year": "jan,mar-may", "day_of_month": "31"},
    {"minute": "1-59/2", "hour": "20-4/3"},
    {"minute": " 0, 30 ", "hour": "1"},
]


def of_celery(given: dict[str, Any]) -> list[datetime]:
    """By the sets of Celery's own parser: all five must have the time."""
    spec = crontab(**given)
    days = (BEGIN + timedelta(days=n) for n in range(DAYS))
    wanted = (
        day
        for day in days
        if day.month in spec.month_of_year
        and day.day in spec.day_of_month
        and day.isoweekday() % 7 in spec.day_of_week
    )
    return [
        day.replace(hour=hour, minute=minute)
        for day in wanted
        for hour in sorted(spec.hour)
        for minute in sorted(spec.minute)
    ]


def of_trigger(trigger: dict[str, Any]) -> list[datetime]:
    before = BEGIN - timedelta(seconds=1)
    context = TriggerContext(before, trigger["timezone"], "shift", "first")
    text = trigger.get("rrule") or cron_reading(trigger["cron"], None, context).recurrence
    parsed = Recurrence.parse(
        text, created_at=before, timezone=trigger["timezone"], gap="shift", overlap="first"
    )
    # Times come in parts: a search has a bound.
    found = []
    for first in range(DAYS):
        day = before + timedelta(days=first)
        found += [getattr(each, "instant", each) for each in parsed.between(day, day + timedelta(days=1))]
    return found


@pytest.mark.parametrize("given", EXPRESSIONS, ids=str)
def test_it_fires_when_celery_runs_it(given: dict[str, Any]) -> None:
    assert of_trigger(crontab_trigger(given, "UTC")) == of_celery(given)


@pytest.mark.parametrize("given", EXPRESSIONS, ids=str)
def test_a_start_and_an_end_limit_it_and_change_nothing_else(given: dict[str, Any]) -> None:
    start, end = BEGIN + timedelta(days=40, hours=6), BEGIN + timedelta(days=300, hours=6)
    trigger = crontab_trigger(given, "UTC", start=start, end=end)
    assert of_trigger(trigger) == [each for each in of_celery(given) if start <= each < end]


@pytest.mark.parametrize(
    "given",
    [
        {"minute": "60"},
        {"minute": "-1"},
        {"minute": "1,"},
        {"minute": ""},
        {"hour": "*/0"},
        {"hour": "5/2"},
        {"hour": "mon"},
        {"hour": 1.5},
        {"day_of_week": "7"},
        {"day_of_week": "noday"},
        {"day_of_month": "0"},
        {"day_of_month": "L"},
        {"month_of_year": None},
        {"minute": "1," * 300},
    ],
    ids=str,
)
def test_what_is_no_crontab_is_refused_with_the_field(given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(NotImportable, match=f"is no {name} of a crontab"):
        crontab_trigger(given, "UTC")
