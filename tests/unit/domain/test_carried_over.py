"""The fields that a draft carries over into a schedule as they are."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import get_type_hints

from scheduler_app.domain.resource_fields import NotGiven
from scheduler_app.domain.schedule import CarriedOver, Schedule
from scheduler_app.domain.schedule_draft import ScheduleDraft

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_they_have_the_same_names_and_types_in_a_schedule() -> None:
    kept = get_type_hints(Schedule)
    for field in fields(CarriedOver):
        assert get_type_hints(CarriedOver)[field.name] == kept[field.name] | NotGiven, field.name


def test_what_was_not_given_keeps_its_default_and_then_its_value() -> None:
    made = ScheduleDraft(trigger={"rrule": "FREQ=DAILY"}, url="http://127.0.0.1:9/", tags=("a",)).schedule(
        "an-id", NOW, max_retries=3
    )
    assert (made.name, made.tags, made.timeout_seconds) == ("", ("a",), 10)
    edited = ScheduleDraft(name="n", timeout_seconds=5).edit(made, NOW)
    assert (edited.name, edited.tags, edited.timeout_seconds) == ("n", ("a",), 5)
