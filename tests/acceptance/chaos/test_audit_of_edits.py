"""The audit accepts what a worker had in its hands when an edit was answered, and nothing that came later."""

from datetime import UTC, datetime

import pytest

from tests.acceptance.chaos.owed import (
    ABOUT_TO_START_SECONDS,
    OBEYED_AHEAD_SECONDS,
    SECOND,
    Era,
    Owed,
    Script,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ANSWERED = NOON.timestamp() + 10
LATE = ANSWERED + 60


@pytest.mark.parametrize(
    ("due_after_the_answer", "called_at", "was"),
    [
        (-5.0, LATE, True),
        (OBEYED_AHEAD_SECONDS - 0.01, LATE, True),
        (OBEYED_AHEAD_SECONDS + 0.01, LATE, False),
        (OBEYED_AHEAD_SECONDS + 0.01, ANSWERED + ABOUT_TO_START_SECONDS, True),
    ],
)
def test_what_was_due_soon_after_an_edit_s_answer_may_have_been_on_its_way(
    due_after_the_answer: float, called_at: float, was: bool
) -> None:
    eras = [Era(NOON - 60 * SECOND, NOON, 1), Era(NOON, NOON, 7, revision=2, answered_at=ANSWERED)]
    moment = NOON + (10 + due_after_the_answer) * SECOND
    assert Owed("s1", Script("/ok"), eras).was_on_its_way(moment, called_at) is was


def test_without_an_edit_nothing_was_on_its_way() -> None:
    assert not Owed("s1", Script("/ok"), [Era(NOON, NOON, 1)]).was_on_its_way(NOON + SECOND, ANSWERED)
