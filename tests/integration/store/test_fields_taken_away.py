"""What an edit takes away from a schedule is gone from its document, too."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.expectation import Expectation
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from tests.builders import schedule

YEARLY = "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY"
#: Fields of a schedule, each with a value that is not the default.
FIELDS: dict[str, Any] = {
    "on_success": "d",
    "on_failure": "d",
    "queue": "eu",
    "jitter_seconds": 5.0,
    "run_overlap": "skip",
    "queue_limit": 7,
    "completion": "callback",
    "completion_timeout_seconds": 7.0,
    "purpose": "why",
    "expect": Expectation(max_runtime_seconds=60.0),
    "pause_after_failures": 3,
}


@pytest.mark.parametrize("field", FIELDS)
def test_an_edit_takes_a_field_away(store: Store, now: datetime, field: str) -> None:
    plain = schedule(now, "s1", rrule=YEARLY)
    default = getattr(plain, field)
    given = FIELDS[field]
    for number, revises in enumerate((False, True)):
        made = replace(plain, id=f"s{number}", **{field: given})
        assert store.schedules.insert(made)
        assert getattr(_stored(store, made.id), field) == given
        changed = replace(made, version=2, **{field: default})
        if revises:
            assert store.schedules.revise(changed.revise(now + timedelta(seconds=1)), version=1)
        else:
            assert store.schedules.update(changed, version=1)
        assert getattr(_stored(store, made.id), field) == default


def _stored(store: Store, schedule_id: str) -> Schedule:
    found = store.schedules.get(schedule_id)
    assert isinstance(found, Schedule), found
    return found
