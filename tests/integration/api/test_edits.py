"""Many schedules, chosen by a filter, edited in one request."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.domain.ids import TENANT
from scheduler_app.store import Store
from scheduler_app.store.paging import PageRequest
from scheduler_app.usecases.deeds.bulk_edits import BulkAction, act_on_page
from tests.processes import PATIENCE_SECONDS

Create = Callable[..., dict[str, Any]]

MANY = 150


def edit(client: FlaskClient, verb: str, **body: Any) -> dict[str, Any]:
    answer = client.post(f"/api/schedules/{verb}", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def states(store: Store) -> list[str]:
    return sorted(row["state"] for row in store.mongo.collection("schedules").find())


@pytest.fixture
def many(client: FlaskClient) -> None:
    """Of a bulk that somebody regrets."""
    one = {"name": "bad", "callback_url": "http://127.0.0.1:9/", "rrule": "FREQ=SECONDLY", "tags": ["bad"]}
    answer = client.post("/api/schedules/bulk", json={"schedules": [one] * MANY})
    assert answer.get_json()["created"] == MANY


@pytest.fixture
def _no_page_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(act_on_page.__kwdefaults__ or {}, "seconds", PATIENCE_SECONDS)


@pytest.mark.usefixtures("many", "_no_page_takes_too_long")
def test_hundreds_are_deleted_by_a_few_requests_and_others_stay(
    client: FlaskClient, store: Store, create: Create
) -> None:
    kept = create(tags=["good"])["id"]
    deleted, cursor, requests = 0, None, 0
    while requests == 0 or cursor:
        page = edit(client, "delete", tag="bad", limit=60, **({"cursor": cursor} if cursor else {}))
        deleted, cursor, requests = deleted + page["deleted"], page["next_cursor"], requests + 1
        assert page["skipped"] == []
    assert (deleted, requests) == (MANY, 3)
    assert states(store).count("deleted") == MANY
    assert client.get(f"/api/schedules/{kept}").get_json()["state"] == "active"
    assert store.events.living_by_state()["ready_queue"] == 0


def test_pause_and_resume_say_what_they_left_as_it_is(
    client: FlaskClient, store: Store, create: Create
) -> None:
    active, paused = create(tags=["t"])["id"], create(tags=["t"])["id"]
    client.post(f"/api/schedules/{paused}/pause")
    page = edit(client, "pause", tag="t")
    assert (page["paused"], page["skipped"]) == (1, [{"id": paused, "reason": "it is paused"}])
    assert page["next_cursor"] is None
    assert edit(client, "resume", tag="t", state="paused")["resumed"] == 2
    assert client.get(f"/api/schedules/{active}").get_json()["state"] == "active"
    assert states(store) == ["active", "active"]


@pytest.mark.parametrize(
    ("verb", "done"), [("pause", "paused"), ("resume", "resumed"), ("delete", "deleted")]
)
def test_a_dry_run_counts_and_changes_nothing(
    client: FlaskClient, store: Store, create: Create, verb: str, done: str
) -> None:
    for _ in range(3):
        create(name="dry")
    client.post(f"/api/schedules/{create(name='dry')['id']}/pause")
    before = list(store.mongo.collection("schedules").find())
    expected = {"pause": 3, "resume": 1, "delete": 4}[verb]
    assert edit(client, verb, name="dry", dry_run=True)[done] == expected
    assert list(store.mongo.collection("schedules").find()) == before
    assert edit(client, verb, name="dry")[done] == expected


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/all"),
        ({"all": False}, "/all"),
        ({"all": True, "tag": "t"}, "/all"),
        ({"tags": "t"}, "/tags"),
        ({"tag": "t", "limit": 501}, "/limit"),
        ({"tag": "t", "cursor": "no"}, "/cursor"),
    ],
)
@pytest.mark.parametrize("verb", ["pause", "resume", "delete"])
def test_a_filter_that_says_nothing_or_too_much_is_refused(
    client: FlaskClient, store: Store, create: Create, verb: str, body: dict[str, Any], pointer: str
) -> None:
    create()
    answer = client.post(f"/api/schedules/{verb}", json=body)
    assert answer.status_code == 422, answer.text
    assert pointer in [error["pointer"] for error in answer.get_json()["errors"]]
    assert states(store) == ["active"]


def test_a_page_that_takes_too_long_goes_on_where_it_ended(
    app: Flask, client: FlaskClient, store: Store, create: Create
) -> None:
    for _ in range(3):
        create(tags=["t"])
    manager, after, rounds = app.extensions["scheduler"].manager, None, 0
    while rounds == 0 or after:
        found = store.schedules.page(TENANT, PageRequest(limit=10, after=after), tag="t")
        with app.test_request_context():  # it notes who asked
            page = act_on_page(manager, BulkAction.DELETE, found, datetime.now(UTC), seconds=0)
        assert page.count == 1
        after, rounds = page.next, rounds + 1
    assert rounds == 3
    assert states(store) == ["deleted"] * 3


def test_all_is_every_schedule(client: FlaskClient, store: Store, create: Create) -> None:
    for _ in range(3):
        create()
    assert edit(client, "delete", all=True)["deleted"] == 3
    assert set(states(store)) == {"deleted"}


@pytest.mark.parametrize("word", ["pause", "resume", "delete"])
def test_a_schedule_may_be_called_by_the_word_of_an_edit(
    client: FlaskClient, create: Create, word: str
) -> None:
    create(id=word)
    assert client.get(f"/api/schedules/{word}").get_json()["id"] == word
    assert client.post(f"/api/schedules/{word}/pause").get_json()["state"] == "paused"
    assert client.put(f"/api/schedules/{word}", json={"name": "other"}).status_code == 200
    assert client.delete(f"/api/schedules/{word}").status_code == 200


def test_what_can_no_longer_be_read_is_skipped_and_can_be_deleted(
    client: FlaskClient, store: Store, create: Create
) -> None:
    bad = create(tags=["t"])["id"]
    create(tags=["t"])
    store.mongo.collection("schedules").update_one({"_id": bad}, {"$set": {"action": 7}})
    page = edit(client, "pause", tag="t")
    assert page["paused"] == 1
    assert [each["id"] for each in page["skipped"]] == [bad]
    assert edit(client, "delete", tag="t")["deleted"] == 2


@pytest.mark.usefixtures("many", "_no_page_takes_too_long")
def test_an_answer_tells_of_a_hundred_that_were_skipped(client: FlaskClient) -> None:
    assert edit(client, "resume", tag="bad", limit=MANY)["skipped_omitted"] == MANY - 100
