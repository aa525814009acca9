"""For every expression: its sentence is true, and its next occurrence is found within the budget."""

from datetime import UTC, datetime
from random import Random

import pytest

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.recurrence.timeline import LIMIT, StepBudget
from scheduler_app.domain.triggers import TriggerContext, new_trigger
from tests.unit.recurrence.sentence_facts import contradictions
from tests.unit.triggers.cron.random_crons import random_cron

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
ZONES = ["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe"]
# The rarest days that cron can name, at times that are tested one by one or by the clock.
RARE = [
    "0 0 29 2 */7",
    "*/5 * 29 2 */7",
    "0 0 29W 2 *",
    "* * 31 12 */7",
    "0 0 31 2-12/2 */7",
    "0 2 29 2 *",
    "* 2 29 2 *",
    "* * 1,2W,28W,29W,30W,31W 2,4,6,8 *",
    "* * 5,1W,28W,29W,30W,31W,LW 2 1#5,2#5,3#3,4L,5#1,6#4,0#3",
]


class CountedSteps(StepBudget):
    """Keeps the most that was spent for one occurrence."""

    __slots__ = ("most",)

    def __init__(self) -> None:
        super().__init__()
        self.most = 0

    def spend(self, count: int = 1) -> None:
        super().spend(count)
        self.most = max(self.most, self.limit - self.steps_left)


def recurrence_of(cron: str, seconds: str | None, zone: str) -> Recurrence | None:
    given = {"cron": cron} if seconds is None else {"cron": cron, "cron_seconds": seconds}
    try:
        found = new_trigger(given, TriggerContext(CREATED, zone)).recurrence(CREATED)
    except InvalidField:
        return None
    assert isinstance(found, Recurrence)
    return found


def most_steps(recurrence: Recurrence, random: Random) -> int:
    """Of the look-ups from some days of four centuries, by the search that `after` makes."""
    steps = CountedSteps()
    for _ in range(5):
        day = recurrence.dtstart.toordinal() + random.randrange(146_097)
        next(recurrence._set.instants(day * 86_400, steps), None)
    return steps.most


@pytest.mark.parametrize("cron", RARE)
def test_the_rarest_occurrence_is_found_within_a_tenth_of_the_budget(cron: str) -> None:
    for zone in ZONES:
        recurrence = recurrence_of(cron, None, zone)
        assert recurrence is not None
        assert 0 < most_steps(recurrence, Random(cron)) < LIMIT / 10


def check_run(numbers: range) -> None:
    for index in numbers:
        random = Random(20_260_122 + index)
        text, seconds = random_cron(random)
        recurrence = recurrence_of(text, seconds, ZONES[index % 4])
        if recurrence is not None:
            assert most_steps(recurrence, random) < LIMIT / 10, text
            assert contradictions(recurrence, recurrence.description) == [], text


def test_20_random_expressions_are_described_truly_and_found_in_few_steps() -> None:
    check_run(range(20))


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 2_000, 250))
def test_2000_random_expressions_are_described_truly_and_found_in_few_steps(first: int) -> None:
    check_run(range(first, first + 250))
