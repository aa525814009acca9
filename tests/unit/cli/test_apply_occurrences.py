"""How a plan says what becomes of occurrences."""

import pytest

from scheduler_app.cli.apply import planning
from scheduler_app.cli.apply.planning import OccurrenceDifference, compare_occurrences


def at(*times: str) -> list[dict[str, str]]:
    return [{"run_time": f"2030-01-{time}:00Z", "local": f"2030-01-{time}:00+00:00"} for time in times]


def shown(*times: str) -> tuple[str, ...]:
    return tuple(f"2030-01-{time}:00+00:00" for time in times)


def test_one_gone_and_one_come_on_a_day_have_moved() -> None:
    found = compare_occurrences(at("01T09:00", "02T09:00"), at("01T10:00", "02T09:00", "03T09:00"))
    assert found == OccurrenceDifference(
        added=shown("03T09:00"), moved=((shown("01T09:00")[0], shown("01T10:00")[0]),)
    )


def test_several_of_a_day_are_added_and_removed() -> None:
    found = compare_occurrences(at("01T09:00"), at("01T10:00", "01T11:00"))
    assert found == OccurrenceDifference(added=shown("01T10:00", "01T11:00"), removed=shown("01T09:00"))


def test_the_same_instants_are_no_difference() -> None:
    assert compare_occurrences(at("01T09:00"), at("01T09:00")) == OccurrenceDifference()


def test_a_full_list_is_compared_up_to_the_day_before_its_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not in the rest of that day may have moved within it."""
    monkeypatch.setattr(planning, "MAX_COMPARED", 3)
    before = at("01T08:00", "02T08:00", "03T08:00")
    after = at("01T08:00", "01T09:00", "02T09:00")
    assert compare_occurrences(before, after) == OccurrenceDifference(added=shown("01T09:00"), cut_short=True)
    assert compare_occurrences(after, before) == OccurrenceDifference(
        removed=shown("01T09:00"), cut_short=True
    )
    assert compare_occurrences(before, at("01T08:00", "03T08:00")) == OccurrenceDifference(
        removed=shown("02T08:00"), cut_short=True
    )
