"""Requests stay short however long beats were away: what is owed from before an edit is left to them."""

from datetime import UTC, datetime, timedelta

import pytest
from flask.testing import FlaskClient

from scheduler_app.store import Store
from scheduler_app.usecases.duties.expansion import OCCURRENCES_AN_EDIT
from scheduler_app.usecases.duties.owed_expansion import OwedExpansion
from tests.builders import schedule

AWAY = timedelta(hours=2)


@pytest.mark.parametrize("edit", ["pause", "put"])
def test_an_edit_after_hours_without_beats_writes_few_events_itself_and_loses_none(
    client: FlaskClient, store: Store, edit: str
) -> None:
    since = datetime.now(UTC).replace(microsecond=0) - AWAY
    store.schedules.insert(schedule(since))
    if edit == "pause":
        answer = client.post("/api/schedules/s1/pause")
    else:
        body = {"name": "rarely", "callback_url": "http://127.0.0.1:9/", "rrule": "FREQ=YEARLY"}
        answer = client.put("/api/schedules/s1", json=body)
    assert answer.status_code == 200, answer.text
    events = store.mongo.collection("events")
    assert events.count_documents({}) <= OCCURRENCES_AN_EDIT
    cut = datetime.fromisoformat(answer.get_json()["updated_at"])
    owed = OwedExpansion(store)
    while owed.expand_page(cut):
        pass
    assert events.count_documents({"revision": 1, "run_time": {"$lte": cut}}) == int(
        (cut - since).total_seconds()
    )
    assert events.count_documents({"revision": 1, "run_time": {"$gt": cut}}) == 0


@pytest.mark.parametrize("edit", ["pause", "put"])
def test_what_an_edit_makes_up_of_the_old_rule_is_sent_before_a_beat_comes_round(
    client: FlaskClient, store: Store, edit: str
) -> None:
    since = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=5)
    store.schedules.insert(schedule(since))
    if edit == "pause":
        answer = client.post("/api/schedules/s1/pause")
    else:
        answer = client.put("/api/schedules/s1", json={"rrule": "FREQ=YEARLY"})
    assert answer.status_code == 200, answer.text
    made = list(store.mongo.collection("events").find({"revision": 1}, {"state": 1}))
    assert len(made) >= 5
    assert {event["state"] for event in made} == {"worker_queue"}
