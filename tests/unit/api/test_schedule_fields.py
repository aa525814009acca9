"""The table of a schedule's fields: what follows from a row, and that no field lacks one."""

from dataclasses import fields as dataclass_fields
from datetime import UTC, datetime
from typing import get_type_hints

import pytest
from flask import Flask

from scheduler_app.api.wire.input_schema import suggest_field
from scheduler_app.api.wire.preview import PreviewInput
from scheduler_app.api.wire.schedule import (
    NewSchedule,
    ScheduleInput,
    ScheduleOutput,
    schedule_exported,
    schedule_shown,
)
from scheduler_app.api.wire.schedule_fields import EXPORTED, SHOWN
from scheduler_app.client import ScheduleFields
from scheduler_app.domain.http_action import RequestBody
from scheduler_app.domain.masking import MASK
from scheduler_app.domain.resource_fields import ResourceField
from scheduler_app.domain.resources.schedule import SCHEDULE
from scheduler_app.domain.retry import Codes
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.store import SecretBox

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GIVEN = [row for row in SCHEDULE if row.given]
#: A Draft's fields that no request gives: what was found behind `sealed`, and the calendar under its name.
NOT_ASKED_FOR = {"known", "named_calendar"}


def named(row: ResourceField) -> str:
    return row.name


@pytest.fixture
def schedule() -> Schedule:
    draft = ScheduleDraft(
        name="n",
        trigger={"rrule": "FREQ=DAILY"},
        url="https://example.com/?token=secret",
        headers=(("X-Key", "secret"),),
        body=RequestBody.from_json({"a": 1}),
        retry_codes=Codes((503,)),
        max_retries=0,
    )
    return draft.schedule("an-id", NOW, max_retries=5)


def test_every_field_of_a_draft_has_a_row() -> None:
    drafted = {field.name for field in dataclass_fields(ScheduleDraft)}
    assert {row.draft_name for row in GIVEN} - {"id"} == drafted - NOT_ASKED_FOR


@pytest.mark.parametrize("row", SCHEDULE, ids=named)
def test_every_field_has_a_meaning_of_its_own(row: ResourceField) -> None:
    assert row.meaning
    assert not row.meaning.endswith(".")
    assert row.given or row.shown


@pytest.mark.parametrize("row", SCHEDULE, ids=named)
def test_schemas_take_and_show_what_their_rows_say(row: ResourceField) -> None:
    for schema, is_there in (
        (ScheduleInput(), row.given),
        (NewSchedule(), row.given),
        (PreviewInput(), row.previewed),
        (ScheduleOutput(), row.shown),
    ):
        assert (row.name in schema.fields) == is_there
        if is_there:
            assert schema.fields[row.name].metadata["description"]


@pytest.mark.parametrize("row", SCHEDULE, ids=named)
def test_something_shows_what_answers_and_exports_show(row: ResourceField) -> None:
    assert (row.name in SHOWN) == row.shown
    assert row.name in SHOWN or row.name in EXPORTED


def test_the_client_s_keyword_arguments_are_the_fields_that_a_request_may_give() -> None:
    assert get_type_hints(ScheduleFields).keys() == {row.name for row in GIVEN}


def test_another_name_leads_to_one_field_and_hides_none() -> None:
    seen: set[str] = set()
    known = {row.name for row in GIVEN}
    for row in SCHEDULE:
        for alias in row.aliases.split():
            assert alias not in seen | {each.name for each in SCHEDULE}, alias
            seen.add(alias)
            advice = suggest_field(alias, known)
            assert advice is not None
            assert advice.advice == f"use {row.name}"


def test_what_only_answers_show_is_to_be_left_out() -> None:
    known = {row.name for row in GIVEN}
    for row in SCHEDULE:
        if not row.given:
            advice = suggest_field(row.name, known)
            assert advice is not None
            assert "leave it out" in advice.advice


def test_an_answer_shows_every_field_that_has_a_value_and_no_secret(schedule: Schedule) -> None:
    view = schedule_shown(schedule, NOW)
    given = {"id", "name", "rrule", "callback_url", "headers", "json", "retry_codes", "max_retries"}
    made = {"recurrence", "dtstart", "description", "next_run_at", "state", "version", "created_at"}
    assert view.keys() >= given | made
    assert view.keys().isdisjoint({"run_at", "body", "body_base64", "reason", "last_run", "signing_since"})
    assert "secret" not in repr(view)
    assert view["max_retries"] == 0


def test_an_export_is_what_a_creation_takes_and_leaves_out_what_is_empty(schedule: Schedule) -> None:
    view = schedule_exported(schedule, NOW, SecretBox())
    creation = NewSchedule().fields
    with Flask(__name__).app_context():  # names are read as those of the request's tenant
        read = {name: creation[name].deserialize(value) for name, value in view.items()}
    assert read["retry_codes"] == schedule.retry.codes
    assert read["headers"] == (("X-Key", MASK),)
    assert view["max_retries"] == 0
    assert view["json"] == MASK
    assert view.keys().isdisjoint({"run_at", "tags", "signing", "reason", "sealed"})
