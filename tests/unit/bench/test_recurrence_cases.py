"""The benchmark of look-ups measures every kind of trigger."""

from scheduler_app.domain.triggers import BY_NAME
from tests.bench.recurrence_cases import TRIGGERS, YESTERDAY


def test_each_kind_is_measured() -> None:
    assert {name for case in TRIGGERS for name in case.given if name in BY_NAME} == BY_NAME.keys() - {"rrule"}


def test_each_trigger_is_understood_on_both_days() -> None:
    for case in TRIGGERS:
        assert case.recurrence(case.oldest).description
        assert case.recurrence(YESTERDAY).description
