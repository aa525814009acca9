"""Whatever is said, the answer is a meaning that happens or a refusal, in bounded time."""

import pytest

from scheduler_app.domain.triggers import NotUnderstood, Translation, TriggerContext
from scheduler_app.domain.triggers.phrase import tokens as reading_cursor
from scheduler_app.domain.triggers.phrase.kind import MAX_CHARACTERS
from scheduler_app.domain.triggers.phrase.parser import MAX_CLAUSES
from scheduler_app.domain.triggers.phrase.rules import MAX_TOTAL
from scheduler_app.domain.triggers.phrase.tokens import MAX_TOKENS
from scheduler_app.domain.triggers.phrase.translation import MAX_READINGS, translate
from tests.unit.triggers.phrase.judged import SAID, times_of
from tests.unit.triggers.phrase.salads import salads


def said(phrase: str) -> Translation | NotUnderstood:
    try:
        return translate(phrase, TriggerContext(SAID))
    except NotUnderstood as refusal:
        return refusal


def check(seed: int, count: int) -> None:
    understood = ambiguous = 0
    for phrase in salads(seed, count):
        found = said(phrase)
        if isinstance(found, NotUnderstood):
            assert found.message
            assert len(found.readings) <= MAX_READINGS
            assert all(times_of(reading) for reading in found.readings), phrase
            ambiguous += bool(found.readings)
        else:
            understood += 1
            assert times_of(found), phrase
            assert found.instant is None or found.instant > SAID, phrase
    # The salads would show nothing if hardly any were read.
    assert understood > count // 50
    assert ambiguous > count // 50


@pytest.mark.parametrize("count", [500, pytest.param(2_000, marks=pytest.mark.long)])
def test_salads(count: int) -> None:
    check(1, count)


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_thirty_thousand_salads() -> None:
    check(2, 30_000)


@pytest.mark.parametrize(
    "phrase",
    ["a" * (MAX_CHARACTERS + 1), "x " * (MAX_TOKENS + 1), "at noon, " * 34, "½" * MAX_CHARACTERS],
)
def test_too_many_words_are_refused(phrase: str) -> None:
    with pytest.raises(NotUnderstood):
        translate(phrase, TriggerContext(SAID))


def test_too_many_clauses_are_not_read() -> None:
    with pytest.raises(NotUnderstood) as refused:
        translate("at noon " * (MAX_CLAUSES + 1), TriggerContext(SAID))
    assert refused.value.not_understood == ("at", "noon")


@pytest.mark.parametrize(
    "piece",
    ["monday, ", "1st, ", "at 9, ", "24 december, ", "first monday, ", "every ", "and ", "except ", "1h"],
)
def test_reading_looks_at_each_word_a_bounded_number_of_times(
    piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the words cost at most some two times the looks, never four times."""
    looks = 0
    at = reading_cursor.Tokens.at

    def counting(tokens: reading_cursor.Tokens, position: int) -> object:
        nonlocal looks
        looks += 1
        return at(tokens, position)

    monkeypatch.setattr(reading_cursor.Tokens, "at", counting)
    costs = []
    for words in (10, 20):
        looks = 0
        with pytest.raises(NotUnderstood):
            translate(piece * words + "banana", TriggerContext(SAID))
        costs.append(looks)
    assert costs[1] < 3 * costs[0]
    assert costs[1] < 60_000


def test_what_must_be_counted_one_by_one_is_bounded() -> None:
    """Several rules have no COUNT together: the last occurrence is looked for, and becomes their end."""
    phrase = "every day at 8:00 and 9:30, {} times"
    assert isinstance(said(phrase.format(MAX_TOTAL)), Translation)
    refused = said(phrase.format(MAX_TOTAL + 1))
    assert isinstance(refused, NotUnderstood)
    assert str(MAX_TOTAL) in refused.message
    assert isinstance(said("every day at 8:00, 100000 times"), Translation)
    assert isinstance(said("every day at 8:00, 100001 times"), NotUnderstood)
