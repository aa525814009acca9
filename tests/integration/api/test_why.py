"""Why a schedule fires at an instant, or does not, over HTTP."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store import Store
from tests.builders import event, schedule

Create = Callable[..., dict[str, Any]]
NINE = "DTSTART:20400102T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO;UNTIL=20400601T090000Z"
PAST = datetime(2026, 3, 2, tzinfo=UTC)


def why(client: FlaskClient, schedule_id: str, at: str | datetime) -> dict[str, Any]:
    text = at if isinstance(at, str) else at.isoformat()
    answer = client.get(f"/api/schedules/{schedule_id}/why", query_string={"at": text})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def stored(store: Store, **changes: Any) -> Schedule:
    """A schedule of the past that ran each noon."""
    made = schedule(PAST, rrule="DTSTART:20260302T120000Z\nRRULE:FREQ=DAILY")
    made = replace(made, **changes)
    assert store.schedules.insert(made)
    return made


def test_an_occurrence_fires_and_has_neighbours(client: FlaskClient, create: Create) -> None:
    made = create(rrule=NINE, timezone="Europe/Zurich")["id"]
    found = why(client, made, "2040-01-16T08:00:00Z")
    rule = "FREQ=WEEKLY;UNTIL=20400601T090000Z;BYDAY=MO"
    assert found == {
        "at": {"run_time": "2040-01-16T08:00:00Z", "local": "2040-01-16T09:00:00+01:00"},
        "fires": True,
        "further_reasons": [],
        "causes": [
            {
                "code": "RRULE",
                "message": f"{rule} names Monday 16 January 2040, 09:00:00.",
                "rule": rule,
            }
        ],
        "previous": {"run_time": "2040-01-09T08:00:00Z", "local": "2040-01-09T09:00:00+01:00"},
        "next": {"run_time": "2040-01-23T08:00:00Z", "local": "2040-01-23T09:00:00+01:00"},
        "warnings": [],
    }


def test_a_local_time_is_read_in_the_zone_of_the_schedule(client: FlaskClient, create: Create) -> None:
    made = create(rrule=NINE, timezone="Europe/Zurich")["id"]
    assert why(client, made, "2040-01-16T09:00")["fires"]
    found = why(client, made, "2040-01-17T09:00")
    assert not found["fires"]
    assert found["reason"] == {
        "code": "BYDAY",
        "message": "BYDAY=MO does not name Tuesday 17 January 2040.",
        "rule": "FREQ=WEEKLY;UNTIL=20400601T090000Z;BYDAY=MO",
    }
    assert why(client, made, "2040-06-04T09:00")["reason"]["code"] == "UNTIL"


def test_a_pause_is_a_reason(client: FlaskClient, create: Create) -> None:
    made = create(rrule=NINE)["id"]
    client.post(f"/api/schedules/{made}/pause")
    assert why(client, made, "2040-01-16T09:00")["reason"]["code"] == "paused"
    other = why(client, made, "2040-01-17T09:00")
    assert other["reason"]["code"] == "BYDAY"
    assert [each["code"] for each in other["further_reasons"]] == ["paused"]


def test_a_deleted_schedule_can_still_be_asked(client: FlaskClient, create: Create) -> None:
    made = create(rrule=NINE)["id"]
    client.delete(f"/api/schedules/{made}")
    assert why(client, made, "2040-01-16T09:00")["reason"]["code"] == "deleted"


def test_before_it_was_created_nothing_fired(client: FlaskClient, store: Store) -> None:
    made = stored(store)
    reason = why(client, made.id, PAST - timedelta(days=3))["reason"]
    assert reason["code"] == "DTSTART"
    late = stored(store, id="s2", created_at=PAST + timedelta(days=10))
    assert why(client, late.id, PAST + timedelta(hours=36))["reason"]["code"] == "created"


def test_the_event_of_a_past_occurrence_is_shown_with_its_history(client: FlaskClient, store: Store) -> None:
    made = stored(store)
    noon = PAST + timedelta(hours=12)
    store.events.insert([event(noon)], PAST, "Planned")
    found = why(client, made.id, noon)
    assert found["fires"]
    assert found["event"]["state"] == "ready_queue"
    assert found["event"]["status"][-1]["message"] == "Planned"


def test_a_cancelled_event_says_why_in_its_own_words(client: FlaskClient, store: Store) -> None:
    made = stored(store)
    planned = event(PAST + timedelta(hours=12))
    store.events.insert([planned], PAST, "Planned")
    assert client.post(f"/api/events/{planned.id}/cancel").status_code == 200
    found = why(client, made.id, planned.run_time)
    assert (found["fires"], found["reason"]["code"]) == (False, "cancelled")
    assert found["reason"]["message"] == "Withdrawn by a person"


def test_an_event_of_an_earlier_trigger_goes_before_what_the_trigger_is_now(
    client: FlaskClient, store: Store
) -> None:
    made = stored(store)
    morning = PAST + timedelta(hours=7)
    store.events.insert([event(morning)], PAST, "Planned")
    assert why(client, made.id, morning)["fires"]


def test_the_past_before_an_edit_is_told_by_events(client: FlaskClient, store: Store) -> None:
    made = stored(store).revise(PAST + timedelta(days=5))
    assert store.schedules.revise(made, version=1)
    assert why(client, made.id, PAST + timedelta(days=2, hours=12))["reason"]["code"] == "cut"


def test_an_event_that_was_removed_since_is_a_warning(client: FlaskClient, store: Store) -> None:
    found = why(client, stored(store).id, PAST + timedelta(days=2, hours=12))
    assert found["fires"]
    assert "retention" in found["warnings"][0]


def test_a_schedule_that_is_set_aside_fires_no_more(client: FlaskClient, store: Store) -> None:
    made = stored(store, state=ScheduleState.ERROR, reason="a field is missing")
    reason = why(client, made.id, "2040-01-01T12:00:00Z")["reason"]
    assert (reason["code"], reason["message"]) == ("error", "The schedule is set aside: a field is missing")


@pytest.mark.parametrize(
    ("given", "code"), [({"run_at": "2040-01-01T00:00:00Z"}, "run_at"), ({"on_demand": True}, "on_demand")]
)
def test_triggers_without_a_rule_answer_too(client: FlaskClient, given: dict[str, Any], code: str) -> None:
    body = {"name": "test", "callback_url": "http://127.0.0.1:9/"} | given
    made = client.post("/api/schedules", json=body).get_json()["id"]
    assert why(client, made, "2041-01-01T00:00:00Z")["reason"]["code"] == code


@pytest.mark.parametrize("at", [None, "soon", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2040-01-01"])
def test_an_instant_that_cannot_be_asked_about_is_refused(
    client: FlaskClient, create: Create, at: str | None
) -> None:
    made = create()["id"]
    query = {} if at is None else {"at": at}
    answer = client.get(f"/api/schedules/{made}/why", query_string=query)
    assert answer.status_code == 422, answer.text
    assert answer.get_json()["errors"][0]["pointer"] == "/at"


def test_the_ends_of_the_years_that_can_be_asked_about_are_answered(
    client: FlaskClient, create: Create
) -> None:
    made = create(timezone="Pacific/Apia", rrule="FREQ=DAILY")["id"]
    assert not why(client, made, "0002-01-01T00:00:00Z")["fires"]
    assert why(client, made, "9998-12-31T23:59:59Z")["previous"]["run_time"].startswith("9998")


def test_a_schedule_that_is_not_there_is_a_404(client: FlaskClient) -> None:
    assert client.get("/api/schedules/nobody/why?at=2040-01-01T00:00:00Z").status_code == 404


def test_the_moment_at_which_a_jittered_event_falls_due_leads_to_its_occurrence(
    client: FlaskClient, create: Create
) -> None:
    made = create(rrule=NINE, timezone="Europe/Zurich", jitter_seconds=600)["id"]
    own = why(client, made, "2040-01-16T08:00:00Z")
    assert [cause["code"] for cause in own["causes"]] == ["RRULE"]
    due_at = own["at"]["due_at"]
    assert "." in due_at
    found = why(client, made, due_at)
    assert found["fires"]
    assert found["at"] == own["at"]
    assert [cause["code"] for cause in found["causes"]] == ["jitter", "RRULE"]
    assert found["causes"][0]["message"].startswith(f"Its callback falls due at {due_at}, ")
    other = why(client, made, "2040-01-16T08:00:00.001Z")
    assert other["reason"]["code"] == "whole_second"
    assert other["causes"] == []
