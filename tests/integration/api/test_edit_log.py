"""Who changed a schedule: noted by every door, with secrets masked, and taken back."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.api.acts import NOTE_HEADER
from scheduler_app.store import Store

Create = Callable[..., dict[str, Any]]
KEY = {"X-API-Key": "0123456789abcdef"}


def edits_of(client: FlaskClient, schedule_id: str, **headers: str) -> list[dict[str, Any]]:
    answer = client.get(f"/api/schedules/{schedule_id}/edits", headers=headers)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.get_json()["edits"]
    return found


def test_an_edit_says_who_made_it_when_and_what_it_changed(make_api: Callable[..., Flask]) -> None:
    client = make_api(api_keys=("ann:0123456789abcdef", "another-key-of-16")).test_client()
    body = {"name": "n", "callback_url": "http://127.0.0.1:9/", "rrule": "FREQ=DAILY"}
    made = client.post("/api/schedules", json=body, headers=KEY).get_json()["id"]
    path = f"/api/schedules/{made}"
    assert edits_of(client, made, **KEY) == []
    changed = client.put(
        path, json={"name": "m", "cron": "0 9 * * *"}, headers=KEY | {NOTE_HEADER: "asked by Bob"}
    )
    assert changed.status_code == 200
    client.post(f"{path}/pause", headers={"X-API-Key": "another-key-of-16"})
    pause, edit = edits_of(client, made, **KEY)
    assert (edit["by"], edit["what"], edit["version"]) == ("ann", "edited", 2)
    assert edit["note"] == "asked by Bob"
    assert (edit["before"]["name"], edit["after"]["name"]) == ("n", "m")
    assert (edit["before"]["rrule"], edit["after"]["cron"]) == ("FREQ=DAILY", "0 9 * * *")
    assert "callback_url" not in edit["before"]
    assert (pause["before"], pause["after"]) == ({"state": "active"}, {"state": "paused"})
    assert "by" not in pause
    client.delete(path, headers=KEY)
    assert [each["what"] for each in edits_of(client, made, **KEY)] == ["deleted", "paused", "edited"]


def test_the_edits_of_all_schedules_are_one_list(make_api: Callable[..., Flask]) -> None:
    client = make_api(api_keys=("ann:0123456789abcdef", "bob:another-key-of-16")).test_client()
    bob = {"X-API-Key": "another-key-of-16"}
    body = {"name": "n", "callback_url": "http://127.0.0.1:9/", "rrule": "FREQ=DAILY"}
    made = [client.post("/api/schedules", json=body, headers=KEY).get_json()["id"] for _ in range(2)]
    for number, each in enumerate((*made, *made)):
        client.put(f"/api/schedules/{each}", json={"name": f"n{number}"}, headers=bob if number else KEY)

    def log(**query: Any) -> dict[str, Any]:
        answer = client.get("/api/edits", query_string=query, headers=KEY)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.get_json()
        return found

    every = log()["edits"]
    assert [(each["schedule_id"], each["after"]["name"]) for each in every] == [
        *((made[1], "n3"), (made[0], "n2"), (made[1], "n1"), (made[0], "n0"))
    ]
    first = log(limit=3)
    assert first["edits"] == every[:3]
    assert log(limit=3, cursor=first["next_cursor"])["edits"] == every[3:]
    assert [each["by"] for each in log(by="ann")["edits"]] == ["ann"]
    assert log(to=every[-1]["at"])["edits"] == []
    assert log(**{"from": every[0]["at"]})["edits"][0] == every[0]
    for query in ("by=", "limit=501", "from=yesterday"):
        assert client.get(f"/api/edits?{query}", headers=KEY).status_code == 422


def test_an_edit_says_which_occurrences_it_moved(client: FlaskClient, create: Create) -> None:
    made = create(rrule="DTSTART:20400101T060000Z\nRRULE:FREQ=WEEKLY;COUNT=9")
    path = f"/api/schedules/{made['id']}"
    client.put(path, json={"rrule": "DTSTART:20400101T070000Z\nRRULE:FREQ=WEEKLY;COUNT=8"})
    client.put(path, json={"name": "the same times"})
    client.post(f"{path}/pause")
    paused, renamed, moved = edits_of(client, made["id"])
    assert "times" not in paused
    assert "times" not in renamed
    times = moved["times"]
    assert times["added"][0] == "2040-01-01T07:00:00Z"
    assert times["removed"][0] == "2040-01-01T06:00:00Z"
    assert (len(times["added"]), len(times["removed"])) == (4, 4), "the first ones are named"
    assert (times["added_count"], times["removed_count"], times["until"]) == (8, 9, None)


def test_no_secret_is_noted_only_that_one_was_changed(
    client: FlaskClient, create: Create, store: Store
) -> None:
    made = create(callback_url="http://127.0.0.1:9/?t=s3cr3t", headers={"X-Key": "s3cr3t"}, body="s3cr3t")
    client.put(f"/api/schedules/{made['id']}", json={"headers": {"X-Key": "an0ther"}, "name": "n"})
    (edit,) = edits_of(client, made["id"])
    assert edit["secrets_changed"] is True
    stored = str(list(store.mongo.collection("audit").find({})))
    assert "s3cr3t" not in stored
    assert "an0ther" not in stored


def test_another_path_is_no_other_secret_and_another_query_is(client: FlaskClient, create: Create) -> None:
    made = create(callback_url="http://127.0.0.1:9/a?t=s3cr3t")
    for url in ("http://127.0.0.1:9/b?t=s3cr3t", "http://127.0.0.1:9/b?t=an0ther"):
        assert client.put(f"/api/schedules/{made['id']}", json={"callback_url": url}).status_code == 200
    of_query, of_path = edits_of(client, made["id"])
    assert (of_path["after"]["callback_url"][:20], "secrets_changed" in of_path) == (
        "http://127.0.0.1:9/b",
        False,
    )
    assert of_query["secrets_changed"] is True


def test_what_changes_nothing_and_what_is_dry_is_not_noted(client: FlaskClient, create: Create) -> None:
    made = create()
    client.put(f"/api/schedules/{made['id']}", json={"name": "test"})
    client.put(f"/api/schedules/{made['id']}?dry_run=true", json={"name": "another"})
    assert edits_of(client, made["id"]) == []


def test_an_edit_is_taken_back_and_that_is_an_edit_too(client: FlaskClient, create: Create) -> None:
    made = create(tags=["a"])
    path = f"/api/schedules/{made['id']}"
    client.put(path, json={"cron": "0 9 * * *", "headers": {"X-Team": "b"}, "tags": ["a", "b"], "body": "x"})
    (edit,) = edits_of(client, made["id"])
    back = client.post(f"{path}/edits/{edit['id']}/revert")
    assert back.status_code == 200, back.text
    now = client.get(path).get_json()
    assert (now["rrule"], now["tags"]) == (made["rrule"], ["a"])
    assert "cron" not in now
    assert not now.get("headers")
    assert "body" not in now
    newest = edits_of(client, made["id"])[0]
    assert (newest["version"], newest["note"].startswith("Reverts the edit of ")) == (3, True)
    client.post(f"{path}/pause")
    pause = edits_of(client, made["id"])[0]
    assert client.post(f"{path}/edits/{pause['id']}/revert").get_json()["state"] == "active"
    for gone in ("none-such", "0" * 24):
        assert client.post(f"{path}/edits/{gone}/revert").status_code == 404
    other = create()["id"]
    assert client.post(f"/api/schedules/{other}/edits/{edit['id']}/revert").status_code == 404


@pytest.mark.parametrize(
    ("field", "value"),
    [("before", 5), ("by", None), ("version", "two"), ("secrets", "yes"), ("tenant", "acme"),
     ("what", 1), ("reason", []), ("after", 5), ("v", 99)],
)  # fmt: skip
def test_a_bent_edit_harms_only_itself(
    client: FlaskClient, create: Create, store: Store, field: str, value: object
) -> None:
    made = create()["id"]
    for name in ("a", "b"):
        client.put(f"/api/schedules/{made}", json={"name": name})
    collection = store.mongo.collection("audit")
    first = collection.find_one({"resource": f"schedule/{made}", "after.name": "a"})
    assert first
    collection.update_one({"_id": first["_id"]}, {"$set": {field: value}})
    good, bent = edits_of(client, made)
    assert good["after"] == {"name": "b"}
    assert (bent["id"], "reason" in bent) == (first["_id"], True)
    assert client.get(f"/schedules/{made}").status_code == 200
    assert client.post(f"/api/schedules/{made}/edits/{bent['id']}/revert").status_code == 409


def test_a_note_that_is_too_long_is_refused_before_anything_is_changed(
    client: FlaskClient, create: Create
) -> None:
    made = create()["id"]
    refused = client.put(f"/api/schedules/{made}", json={"name": "n"}, headers={NOTE_HEADER: "x" * 501})
    assert (refused.status_code, NOTE_HEADER in refused.get_json()["detail"]) == (422, True)
    assert client.get(f"/api/schedules/{made}").get_json()["name"] == "test"


def test_what_cannot_be_noted_is_not_made(client: FlaskClient, create: Create, store: Store) -> None:
    made = create()["id"]
    validator = {"$jsonSchema": {"required": ["nothing-has-this"]}}
    store.mongo.command("collMod", "audit", validator=validator)
    assert client.put(f"/api/schedules/{made}", json={"name": "n"}).status_code == 500
    assert client.get(f"/api/schedules/{made}").get_json()["name"] == "test"


#: A new value of each field that an edit can change; what changes together is one edit.
CHANGES: dict[str, dict[str, Any]] = {
    "name": {"name": "m"},
    "rrule": {"rrule": "FREQ=HOURLY"},
    "cron": {"cron": "0 9 * * *"},
    "phrase": {"phrase": "every friday at 9:00"},
    "every_seconds": {"every_seconds": 90},
    "run_at": {"run_at": "2040-01-01T00:00:00Z"},
    "on_demand": {"on_demand": True},
    "timezone": {"timezone": "Europe/Zurich"},
    "callback_url": {"callback_url": "http://127.0.0.1:9/other"},
    "method": {"method": "PUT"},
    "headers": {"headers": {"Accept": "text/plain"}},
    "json": {"method": "POST", "json": {"a": [1, 2.5, None]}},
    "action": {"action": {"type": "command", "command": ["true"]}},
    "queue": {"queue": "reports"},
    "max_retries": {"max_retries": 3},
    "retry_backoff_seconds": {"retry_backoff_seconds": 2.5},
    "retry_codes": {"retry_codes": [500, "502-504"]},
    "success_codes": {"success_codes": ["2xx", 404]},
    "timeout_seconds": {"timeout_seconds": 7},
    "signing": {"signing": True},
    "tags": {"tags": ["a", "b"]},
    "catch_up": {"catch_up": "latest"},
    "expire_after_seconds": {"expire_after_seconds": 900},
    "run_overlap": {"run_overlap": "queue", "queue_limit": 3},
    "jitter_seconds": {"jitter_seconds": 60},
    "expect": {"expect": {"success_within_seconds": 3600}},
    "pause_after_failures": {"pause_after_failures": 3},
}


@pytest.mark.parametrize("field", CHANGES)
def test_an_edit_of_each_field_is_noted(client: FlaskClient, create: Create, field: str) -> None:
    made = create(rrule="FREQ=DAILY")
    answer = client.put(f"/api/schedules/{made['id']}", json=CHANGES[field])
    assert answer.status_code == 200, answer.text
    (edit,) = edits_of(client, made["id"])
    assert field in edit["after"] or edit.get("secrets_changed")
    shown = client.get(f"/api/schedules/{made['id']}").get_json()
    assert {name: shown[name] for name in edit["after"] if name in shown} == edit["after"]
