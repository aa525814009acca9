"""Heartbeats over HTTP: set, pinged by a secret URL and by a key, missed, told of and over."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from structlog.testing import capture_logs

from scheduler_app.api.auth import MAX_WRONG_KEYS
from scheduler_app.domain import heartbeat as domain
from scheduler_app.domain.masking import MASK
from scheduler_app.store import Store
from scheduler_app.store.faults import Unavailable
from scheduler_app.usecases.deeds.heartbeats import HeartbeatService
from scheduler_app.usecases.duties.cause_inspection import CauseInspection
from scheduler_app.usecases.duties.heartbeats import HeartbeatWatch
from tests.integration.api.conftest import ToldTime

PATH = "/api/heartbeats"
NIGHTLY = {"cron": "30 2 * * *", "timezone": "Europe/Zurich", "grace_seconds": 600.0, "tags": ["shop"]}
BEGIN = datetime(2026, 11, 26, 12, tzinfo=UTC)
DUE = datetime(2026, 11, 27, 1, 30, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def _at_noon(time: ToldTime) -> None:
    time.at = BEGIN


def made(client: FlaskClient, name: str = "backup", **fields: Any) -> str:
    """The path of the secret URL of a new one."""
    answer = client.put(f"{PATH}/{name}", json=NIGHTLY | fields)
    assert answer.status_code == 201, answer.text
    url: str = answer.get_json()["ping_url"]
    return url.removeprefix("http://localhost")


def shown(client: FlaskClient, name: str = "backup") -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"{PATH}/{name}").get_json()
    return found


def open_causes(client: FlaskClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/api/failures?state=open").get_json()["failures"]
    return found


def test_it_is_set_shown_changed_and_deleted(client: FlaskClient) -> None:
    path = made(client, note="the shop")
    got = shown(client)
    assert {name: got[name] for name in NIGHTLY} == NIGHTLY
    assert (got["state"], got["due_at"], got["note"]) == ("new", "2026-11-27T01:30:00Z", "the shop")
    assert "02:30" in got["description"]
    assert "ping_url" not in got
    again = client.put(f"{PATH}/backup", json=NIGHTLY | {"note": "the shop"})
    assert (again.status_code, again.get_json()["result"]) == (200, "unchanged")
    changed = client.put(f"{PATH}/backup", json={"phrase": "every day at 9", "calendar": "none"})
    assert changed.status_code == 422
    changed = client.put(f"{PATH}/backup", json={"phrase": "every day at 9"})
    assert (changed.status_code, changed.get_json()["result"]) == (200, "changed")
    assert "ping_url" not in changed.get_json()
    assert (shown(client)["due_at"], shown(client)["grace_seconds"]) == ("2026-11-27T09:00:00Z", 300.0)
    assert client.get(path).status_code == 200, "an edit keeps the URL"
    assert [each["name"] for each in client.get(PATH).get_json()["heartbeats"]] == ["backup"]
    assert client.delete(f"{PATH}/backup").status_code == 200
    assert client.delete(f"{PATH}/backup").status_code == 404
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"cron": "nonsense"}, "/cron"),
        ({"on_demand": True}, "/on_demand"),
        ({"grace_seconds": 0}, "/grace_seconds"),
        ({"every_seconds": 5}, "/every_seconds"),
        ({"calendar": "none-such"}, "/calendar"),
        ({"timezone": "Nowhere/At all"}, "/timezone"),
        ({"cron": "0 0 30 2 *"}, "/cron"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_by_name(
    client: FlaskClient, body: dict[str, Any], pointer: str
) -> None:
    answer = client.put(f"{PATH}/backup", json=NIGHTLY | body)
    assert answer.status_code == 422, answer.text
    assert pointer in [each["pointer"] for each in answer.get_json()["errors"]]
    assert client.put(f"{PATH}/b.ackup", json=NIGHTLY).status_code == 422
    assert client.get(PATH).get_json()["heartbeats"] == []


def test_one_that_is_missed_is_told_of_once_until_its_ping_comes(
    client: FlaskClient, store: Store, time: ToldTime
) -> None:
    path = made(client)
    watch = HeartbeatWatch(store)
    time.at = DUE + 599 * SECOND
    watch.look_page(time.at)
    assert open_causes(client) == []
    for later in (600, 601, 4_000):
        time.at = DUE + later * SECOND
        # Another beat, or the same one after its restart.
        HeartbeatWatch(store).look_page(time.at)
        # It takes a missed schedule that is not there any more for over, and this is none.
        CauseInspection(store, lambda: (), lambda queues: ()).inspect(time.at)
        [cause] = open_causes(client)
    assert (cause["kind"], cause["subject"], cause["since"]) == ("missed", "backup", "2026-11-27T01:40:00Z")
    assert "a ping was due at 2026-11-27T01:30:00Z, and none has come" in cause["message"]
    assert cause["tags"]["names"] == ["shop"]
    status = client.get("/api/status").get_json()
    assert [each["subject"] for each in status["reasons"] if each["kind"] == "missed"] == ["backup"]
    assert shown(client)["state"] == "missed"
    assert client.get(path).text == "OK\n"
    watch.look_page(time.at + SECOND)
    assert open_causes(client) == []
    assert shown(client)["state"] == "up"
    [over] = client.get("/api/failures?state=over").get_json()["failures"]
    assert over["over_at"] == shown(client)["succeeded_at"]


def test_one_that_fails_again_at_once_is_told_of_again(
    client: FlaskClient, store: Store, time: ToldTime
) -> None:
    path = made(client)
    watch = HeartbeatWatch(store)
    for number in range(2):
        assert client.post(f"{path}/1", data=b"no space left").status_code == 200
        watch.look_page(time.at + SECOND)
        assert len(open_causes(client)) == 1
        time.at += timedelta(milliseconds=10)
        client.get(path)
        watch.look_page(time.at + SECOND)
        time.at += timedelta(milliseconds=10)
        assert len(store.causes.living()) == 0, number
    assert len(client.get("/api/failures?state=over").get_json()["failures"]) == 2
    found = shown(client)
    assert found["output"] == "no space left"
    assert [each["kind"] for each in found["pings"]] == ["fail", "success"] * 2
    assert found["pings"][0]["exit_status"] == 1


def test_a_beat_that_dies_before_it_has_noted_its_cause_leaves_one_cause(
    client: FlaskClient, store: Store, monkeypatch: pytest.MonkeyPatch, time: ToldTime
) -> None:
    path = made(client)
    time.at = DUE + 600 * SECOND

    def die(judged: domain.Heartbeat) -> bool:
        raise SystemExit

    watch = HeartbeatWatch(store)
    with monkeypatch.context() as patch:
        patch.setattr(store.heartbeats, "settle", die)
        with pytest.raises(SystemExit):
            watch.look_page(time.at)
    HeartbeatWatch(store).look_page(time.at + SECOND)
    assert len(open_causes(client)) == 1
    client.get(path)
    with monkeypatch.context() as patch:
        patch.setattr(store.heartbeats, "settle", die)
        with pytest.raises(SystemExit):
            watch.look_page(time.at)
    HeartbeatWatch(store).look_page(time.at + SECOND)
    assert (open_causes(client), shown(client)["state"]) == ([], "up")


def test_a_ping_that_comes_while_a_beat_looks_leaves_no_cause(
    client: FlaskClient, store: Store, monkeypatch: pytest.MonkeyPatch, time: ToldTime
) -> None:
    path = made(client)
    time.at = DUE + 600 * SECOND
    real = store.causes.touch

    def touch(*args: Any, **options: Any) -> Any:
        opened = real(*args, **options)
        client.get(path)
        return opened

    monkeypatch.setattr(store.causes, "touch", touch)
    HeartbeatWatch(store).look_page(time.at)
    assert (open_causes(client), shown(client)["state"]) == ([], "up")


def test_a_hundred_pings_at_once_are_all_taken(app: Flask, store: Store, time: ToldTime) -> None:
    path = made(app.test_client())
    time.at = DUE + 600 * SECOND
    HeartbeatWatch(store).look_page(time.at)

    def ping(number: int) -> int:
        return app.test_client().post(path, data=f"run {number}").status_code

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(ping, range(100))) == {200}
    found = store.heartbeats.get("backup")  # type: ignore[arg-type]
    assert isinstance(found, domain.Heartbeat)
    assert len(found.pings) == domain.MAX_PINGS
    HeartbeatWatch(store).look_page(time.at + SECOND)
    assert store.causes.living() == []


def test_every_way_to_ping(client: FlaskClient) -> None:
    path = made(client)
    assert client.get(f"{path}/start").status_code == 200
    assert shown(client)["state"] == "started"
    assert client.head(path).status_code == 200
    assert shown(client)["state"] == "up"
    assert client.post(f"{path}/fail").status_code == 200
    assert shown(client)["state"] == "missed"
    assert client.get(f"{path}/0").status_code == 200
    assert client.get(f"{path}/maybe").status_code == 404
    text = "$name \x00" + "x" * 20_000
    assert client.post(path, data=text, content_type="application/json").status_code == 200
    assert shown(client)["output"] == text[: domain.MAX_OUTPUT]
    with_key = client.post(f"{PATH}/backup/ping", json={"exit_status": 4, "output": "$HOME is full"})
    assert (with_key.status_code, with_key.get_json()["state"]) == (200, "missed")
    assert shown(client)["output"] == "$HOME is full"
    with_key_again = client.post(f"{PATH}/backup/ping").get_json()
    assert with_key_again["state"] == "up"
    # The answer has the ping that was just made.
    assert with_key_again == client.get(f"{PATH}/backup").get_json()
    wrong = client.post(f"{PATH}/backup/ping", json={"exit_status": 0, "kind": "fail"})
    assert wrong.status_code == 422
    assert client.post(f"{PATH}/none/ping").status_code == 404


def test_wrong_tokens_answer_alike_and_are_limited(make_api: Callable[..., Flask]) -> None:
    app = make_api(api_keys=("secret-key-of-ann",))
    client, key = app.test_client(), {"X-API-Key": "secret-key-of-ann"}
    url = client.put(f"{PATH}/backup", json=NIGHTLY, headers=key).get_json()["ping_url"]
    path = url.removeprefix("http://localhost")
    assert client.get(path).status_code == 200, "no key is needed"
    rotated = client.post(f"{PATH}/backup/token", headers=key).get_json()["ping_url"]
    right = rotated.removeprefix("http://localhost")
    assert right != path
    wrong = [path, f"{path[:-1]}", "/ping/nobody.xyz", "/ping/backup", "/ping/x", f"{path}/start"]
    answers = [client.get(each) for each in wrong]
    assert {each.status_code for each in answers} == {404}
    assert len({each.get_json()["detail"] for each in answers}) == 1
    for _ in range(MAX_WRONG_KEYS - len(wrong)):
        assert client.get("/ping/x").status_code == 404
    assert client.get("/ping/x").status_code == 429
    assert client.get(right).status_code == 200, "the right one opens whatever was tried before"
    assert client.get(PATH).status_code == 401


def test_no_token_is_kept(client: FlaskClient, store: Store) -> None:
    token = made(client).rpartition("/")[2].partition(".")[2]
    [row] = store.mongo.collection("heartbeats").find({})
    assert token not in str(row)
    assert "secret_sha256" not in repr(store.heartbeats.get("backup"))  # type: ignore[arg-type]


@pytest.mark.parametrize(("error", "status"), [(RuntimeError("no"), 500), (Unavailable("away"), 503)])
def test_a_ping_that_fails_logs_no_token(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    path = made(client)

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(HeartbeatService, "ping_by_token", fail)
    with capture_logs() as logs:
        assert client.get(f"{path}/start").status_code == status
    assert [each["path"] for each in logs if "path" in each] == [f"/ping/{MASK}/start"]
    assert path.rpartition(".")[2] not in str(logs)


def test_its_calendar_cannot_be_deleted_and_an_edit_of_it_counts_within_an_hour(
    client: FlaskClient, store: Store, time: ToldTime
) -> None:
    client.put("/api/calendars/shop", json={"dates": [{"date": "2026-11-27"}], "weekend": []})
    made(client, calendar="shop")
    assert shown(client)["due_at"] == "2026-11-28T01:30:00Z"
    refused = client.delete("/api/calendars/shop")
    assert (refused.status_code, "backup" in refused.get_json()["detail"]) == (409, True)
    client.put("/api/calendars/shop", json={"dates": [{"date": "2026-12-27"}], "weekend": []})
    watch = HeartbeatWatch(store)
    watch.look_page(BEGIN + timedelta(hours=1))
    assert shown(client)["due_at"] == "2026-11-27T01:30:00Z"
    watch.look_page(DUE + 600 * SECOND)
    assert [each["subject"] for each in open_causes(client)] == ["backup"]


def test_deleting_one_that_is_missed_ends_its_cause(
    client: FlaskClient, store: Store, time: ToldTime
) -> None:
    path = made(client)
    client.get(f"{path}/fail")
    HeartbeatWatch(store).look_page(time.at + SECOND)
    assert len(open_causes(client)) == 1
    client.delete(f"{PATH}/backup")
    assert store.causes.living() == []


def test_one_whose_document_is_bent_harms_no_other(client: FlaskClient, store: Store) -> None:
    made(client, "bent")
    made(client, "sound")
    store.mongo.collection("heartbeats").update_one({"_id": "bent"}, {"$set": {"grace_seconds": "x"}})
    HeartbeatWatch(store).look_page(DUE + 600 * SECOND)
    assert [each["subject"] for each in open_causes(client)] == ["sound"]
    assert "grace_seconds" in shown(client, "bent")["corrupt"]
    [row] = store.mongo.collection("heartbeats").find({"_id": "bent"})
    assert row["look_at"] == DUE + 4_200 * SECOND, "beats do not look at it in each tick"
    assert client.post(f"{PATH}/bent/ping").status_code == 409
    assert client.put(f"{PATH}/bent", json=NIGHTLY).get_json()["result"] == "changed"
    assert shown(client, "bent")["state"] == "new"


def test_there_is_a_bound(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler_app.usecases.deeds.heartbeats.MAX_HEARTBEATS", 1)
    made(client)
    refused = client.put(f"{PATH}/another", json=NIGHTLY)
    assert (refused.status_code, "delete some" in refused.get_json()["detail"]) == (409, True)
    assert client.put(f"{PATH}/backup", json=NIGHTLY | {"note": "x"}).status_code == 200


def test_a_dry_run_answers_the_same_and_changes_nothing(client: FlaskClient, store: Store) -> None:
    dry = client.put(f"{PATH}/backup?dry_run=true", json=NIGHTLY)
    assert (dry.status_code, dry.get_json()["result"]) == (201, "created")
    assert dry.get_json()["ping_url"].endswith(f"/ping/{MASK}")
    assert client.get(PATH).get_json()["heartbeats"] == []
    path = made(client)
    [before] = store.mongo.collection("heartbeats").find({})
    changes: list[tuple[str, str, Any]] = [
        ("PUT", f"{PATH}/backup", NIGHTLY | {"note": "x"}),
        ("POST", f"{PATH}/backup/ping", None),
        ("POST", f"{PATH}/backup/token", None),
        ("DELETE", f"{PATH}/backup", None),
        ("POST", f"{path}/fail", None),
    ]
    for method, each, body in changes:
        assert client.open(f"{each}?dry_run=true", method=method, json=body).status_code == 200, each
    assert list(store.mongo.collection("heartbeats").find({})) == [before]
