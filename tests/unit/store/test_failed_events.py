"""What is read of events that failed, for the causes of their failures."""

from datetime import UTC, datetime
from typing import Any

import pytest

from scheduler_app.store.events.cause_marks import FailedEvent, _read

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def row(attempt: dict[str, Any], **changes: Any) -> dict[str, Any]:
    line = {"time": NOON, "status": "error", "message": "Set aside: its schedule cannot be read"}
    sound = {
        "_id": "s1-1",
        "schedule_id": "s1",
        "origin": "https://a:443",
        "state": "error",
        "status": [line],
    }
    return sound | {"attempts": [attempt]} | changes


def read(attempt: dict[str, Any], **changes: Any) -> FailedEvent:
    (found,) = _read([row(attempt, **changes)])
    return found


@pytest.mark.parametrize(
    ("attempt", "said"),
    [
        ({"status_code": 503, "error": None}, "status 503"),
        ({"status_code": None, "error": "connection refused"}, "connection refused"),
        ({"status_code": 503, "error": "too slow"}, "too slow"),
        ({"status_code": None, "error": None}, "Set aside: its schedule cannot be read"),
        ({}, "Set aside: its schedule cannot be read"),
        ({"status_code": "503", "error": 5}, "Set aside: its schedule cannot be read"),
    ],
)
def test_a_failure_is_told_by_its_error_its_status_or_the_last_line_of_its_history(
    attempt: dict[str, Any], said: str
) -> None:
    assert said in read(attempt)


def test_what_is_corrupt_has_no_attempt() -> None:
    for attempts in ([], "x", [5], None):
        assert read({}, attempts=attempts).error == "Set aside: its schedule cannot be read"
    for broken in ({"_id": 5}, {"status": [{"message": "no time"}]}):
        assert _read([row({}, **broken), row({})]) == _read([row({})])


def test_it_says_whose_it_is_and_which_mark_it_carries() -> None:
    assert read({}) == FailedEvent(
        *("s1-1", "s1", read({}).key, NOON, "Set aside: its schedule cannot be read"), is_dead=True, mark=None
    )
    of_message = read({}, schedule_id=None, state="retrying", cause="c1", origin=None)
    assert (of_message.schedule_id, of_message.is_dead, of_message.mark) == ("", False, "c1")
    assert of_message.key.subject != read({}).key.subject
