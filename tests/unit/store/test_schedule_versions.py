"""Schedules that the release before would get wrong have a version that it leaves to others."""

from datetime import UTC, datetime
from typing import Any

import pytest

from scheduler_app.domain.lateness import CatchUp
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.schedules.documents import from_schedule_document, to_schedule_document
from tests.builders import schedule

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def stored(**fields: Any) -> dict[str, Any]:
    box = SecretBox()
    document = to_schedule_document(schedule(NOON, **fields), box)
    assert from_schedule_document(document, box).id == "s1"
    return document


@pytest.mark.parametrize(
    "fields",
    [
        {"url": NOT_GIVEN, "destination": "d"},
        {"on_failure": "d"},
        {"run_overlap": "skip"},
        {"completion": "callback"},
        {"catch_up": CatchUp.NONE},
        {"expire_after_seconds": 60.0},
        {"jitter_seconds": 5.0},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_the_release_before_would_get_wrong_is_not_its(fields: dict[str, Any]) -> None:
    assert stored(**fields)["v"] == 3


@pytest.mark.parametrize("fields", [{}, {"cron": "0 9 * * *"}, {"tags": ("a",)}, {"purpose": "p"}], ids=repr)
def test_what_it_runs_as_this_one_does_is_left_to_it_too(fields: dict[str, Any]) -> None:
    assert stored(**fields)["v"] == 1
