"""A refusal offers what the phrase means without what was not understood, or without what contradicts it."""

import pytest

from scheduler_app.domain.triggers import NotUnderstood, Translation, TriggerContext
from scheduler_app.domain.triggers.phrase.parser import read_clauses
from scheduler_app.domain.triggers.phrase.tokens import tokens_of
from scheduler_app.domain.triggers.phrase.translation import MAX_READINGS, translate
from tests.unit.triggers.phrase.expected import rows
from tests.unit.triggers.phrase.judged import SAID

UNDERSTOOD = [
    row.phrase for row in rows("phrases.txt") if row.kind in ("rule", "once", "every") and not row.may_refuse
]
REFUSED = [
    row.phrase
    for table in ("phrases.txt", *(f"held_out{number}.txt" for number in ("", "_2", "_3", "_4", "_5")))
    for row in rows(table)
    if row.kind in ("no", "unclear")
]


def said(phrase: str) -> Translation:
    return translate(phrase, TriggerContext(SAID))


def refusal(phrase: str) -> NotUnderstood:
    with pytest.raises(NotUnderstood) as refused:
        said(phrase)
    return refused.value


@pytest.mark.parametrize("around", ["bananas {}", "{} bananas", "{} if it rains", "the blue report {}"])
def test_words_that_are_not_understood_leave_the_meaning_of_the_others(around: str) -> None:
    lost = []
    for phrase in UNDERSTOOD:
        refused = refusal(around.format(phrase))
        assert refused.not_understood
        if said(phrase) not in refused.readings:
            lost.append(phrase)
    assert len(lost) <= len(UNDERSTOOD) // 50, lost


@pytest.mark.parametrize(
    ("phrase", "readings"),
    [
        ("every day at 9pm in the morning", ["every day at 9pm"]),
        ("every 2 days on the 10th at 9", ["on the 10th of every month at 9", "every 2 days at 9"]),
        ("every monday and the 15th at 9", ["mondays at 9"]),
        ("every day 10 times until friday at 9", ["every day 10 times", "every day until friday at 9"]),
    ],
)
def test_what_contradicts_itself_is_refused_with_what_it_means_without_a_part(
    phrase: str, readings: list[str]
) -> None:
    found = {each.recurrence for each in refusal(phrase).readings}
    assert found & {said(each).recurrence for each in readings}


def test_nine_of_ten_refusals_of_what_was_read_in_part_have_readings() -> None:
    in_part = [phrase for phrase in dict.fromkeys(REFUSED) if read_clauses(tokens_of(phrase)).clauses]
    without = [phrase for phrase in in_part if not refusal(phrase).readings]
    assert len(in_part) > 80
    assert len(without) * 10 <= len(in_part), without


def test_readings_are_bounded() -> None:
    phrase = "every day at 9 in march 5 times until 1 april"
    assert 0 < len(refusal(phrase).readings) <= MAX_READINGS
