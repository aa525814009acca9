"""Everything that is read has its effect: another value, or a clause less, is another meaning."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.triggers import NotUnderstood, Translation, TriggerContext
from scheduler_app.domain.triggers.phrase.clause_bag import NAMES, PhraseRefused
from scheduler_app.domain.triggers.phrase.clauses import (
    ExceptClause,
    InZoneClause,
    OftenClause,
    OnceClause,
    OnClause,
    PartOfDayClause,
    PeriodClause,
    RepeatClause,
    StartClause,
    Time,
    TimesClause,
    WindowClause,
)
from scheduler_app.domain.triggers.phrase.parser import ReadClause, read_clauses
from scheduler_app.domain.triggers.phrase.tokens import tokens_of
from scheduler_app.domain.triggers.phrase.translation import meaning_of, phrase_context
from tests.unit.triggers.phrase.expected import Row, rows
from tests.unit.triggers.phrase.judged import SAID

MOMENT = phrase_context(TriggerContext(SAID))
UNDERSTOOD = [
    row
    for table in (
        "agreed.txt",
        "phrases.txt",
        "held_out.txt",
        "held_out_2.txt",
        "held_out_3.txt",
        "held_out_5.txt",
    )
    for row in rows(table)
    if row.kind in ("rule", "once", "every") and not row.may_refuse
]
_OTHERS = {
    "second": "minute",
    "minute": "hour",
    "hour": "minute",
    "day": "month",
    "week": "month",
    "month": "year",
    "quarter": "month",
    "year": "month",
    "previous": "next",
    "next": "previous",
    "morning": "evening",
    "afternoon": "morning",
    "evening": "morning",
    "night": "afternoon",
    "business day": "day",
    "weekday": "day",
    "UTC": "Asia/Tokyo",
}


def clauses_of(row: Row) -> tuple[ReadClause, ...]:
    return read_clauses(tokens_of(row.phrase)).clauses


def meaning(clauses: tuple[ReadClause, ...]) -> Translation | None:
    """None where the clauses are refused."""
    try:
        return meaning_of(clauses, MOMENT)
    except (NotUnderstood, PhraseRefused):
        return None


def changed(value: Any, *, numbers: bool = False) -> Iterator[Any]:
    """Other values of the same type; with `numbers`, only those that differ in a number."""
    if isinstance(value, bool):
        if not numbers:
            yield not value
    elif isinstance(value, int):
        yield value - 1 if value == 6 else value + 1  # there is no seventh day of the week after Sunday
    elif isinstance(value, str):
        if not numbers and value in _OTHERS:
            yield _OTHERS[value]
    elif isinstance(value, tuple) and value:
        for one in changed(value[0], numbers=numbers):
            yield (one, *value[1:])
    elif isinstance(value, datetime):
        yield value + timedelta(hours=1)
    elif isinstance(value, Time):
        yield replace(value, hour=(value.hour + 1) % 24, sure=True, bare=False)
        yield replace(value, minute=(value.minute + 1) % 60)
        yield replace(value, second=(value.second + 1) % 60)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            for one in changed(getattr(value, field.name), numbers=numbers):
                yield replace(value, **{field.name: one})


#: What may be said twice: "monthly on the 1st of the month", "today at 18:00", "every morning at 7am", "UTC".
_MAY_REPEAT = (
    InZoneClause,
    RepeatClause,
    OftenClause,
    OnceClause,
    PeriodClause,
    OnClause,
    PartOfDayClause,
    TimesClause,
    StartClause,
)


@pytest.mark.parametrize("row", UNDERSTOOD, ids=lambda row: row.phrase)
def test_no_clause_is_without_effect(row: Row) -> None:
    clauses = clauses_of(row)
    whole = meaning(clauses)
    assert whole is not None
    for index, one in enumerate(clauses):
        less = meaning((*clauses[:index], *clauses[index + 1 :]))
        assert less != whole or isinstance(one.clause, _MAY_REPEAT), one.words


@pytest.mark.parametrize("row", UNDERSTOOD, ids=lambda row: row.phrase)
def test_no_number_is_without_effect(row: Row) -> None:
    clauses = clauses_of(row)
    whole = meaning(clauses)
    for index, one in enumerate(clauses):
        # A window may end, and a beginning lie, between two occurrences.
        if not isinstance(one.clause, WindowClause | StartClause | ExceptClause):
            for other in changed(one.clause, numbers=True):
                found = meaning((*clauses[:index], replace(one, clause=other), *clauses[index + 1 :]))
                assert found != whole, f"{one.clause} and {other} mean the same"


def test_every_field_of_every_clause_has_an_effect_somewhere() -> None:
    used: set[tuple[str, str]] = set()
    for row in UNDERSTOOD:
        clauses = clauses_of(row)
        whole = meaning(clauses)
        for index, one in enumerate(clauses):
            for field in fields(one.clause):
                if (type(one.clause).__name__, field.name) in used:
                    continue
                for value in changed(getattr(one.clause, field.name)):
                    other = replace(one, clause=replace(one.clause, **{field.name: value}))
                    if meaning((*clauses[:index], other, *clauses[index + 1 :])) != whole:
                        used.add((type(one.clause).__name__, field.name))
    known = {(kind.__name__, field.name) for kind in NAMES for field in fields(kind)}
    assert known - used == set()
