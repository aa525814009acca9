"""Settings on the pages: who is told, silences, heartbeats, the ledger."""

import html
import re

from flask.testing import FlaskClient

from tests.integration.api.page_forms import form_token

URL = "http://127.0.0.1:9/told"


def test_somebody_is_told_by_a_form_and_the_secret_is_shown_once(client: FlaskClient) -> None:
    assert "Nobody is told" in client.get("/notifications").text
    form = {"form_token": form_token(client, "/notifications"), "name": "on-call"}
    given = {
        "to": f"{URL}\r\n",
        "tags": "team:*, customer:acme",
        "after": "2",
        "on": ["failing", "recovered"],
    }
    saved = client.post("/notifications", data=form | given)
    assert (saved.status_code, 'data-test="signing-secret"' in saved.text) == (200, True)
    made = client.get("/api/notifications/on-call").get_json()
    assert made["to"] == [{"type": "webhook", "url": URL}]
    assert (made["match"], made["after_seconds"]) == ({"tags": ["team:*", "customer:acme"]}, 120)
    assert made["on"] == ["failing", "recovered"]
    again = client.post("/notifications", data=form | given | {"after": "3"})
    assert again.status_code == 303, "the secret is not shown again"
    assert 'data-test="notification"' in client.get("/notifications").text
    tried = client.post("/notifications/test", data=form)
    assert tried.headers["Location"] == "/notifications?done=tested"
    assert client.post("/notifications/delete", data=form).status_code == 303
    assert client.get("/api/notifications/on-call").status_code == 404


def test_a_wrong_notification_is_refused_beside_its_field_and_kept(client: FlaskClient) -> None:
    form = {"form_token": form_token(client, "/notifications"), "name": "on call", "to": "not-a-mailbox"}
    refused = client.post("/notifications", data=form)
    assert refused.status_code == 422
    assert 'data-test="wrong' in refused.text
    assert "not-a-mailbox" in refused.text
    assert client.get("/api/notifications").get_json()["notifications"] == []


def test_tags_are_silenced_for_some_hours_with_a_reason(client: FlaskClient) -> None:
    form = {
        "form_token": form_token(client, "/notifications"),
        "silence": "restore",
        "silenced_tags": "team:a",
    }
    refused = client.post("/notifications/silences", data=form)
    assert (refused.status_code, "say why" in refused.text) == (422, True)
    assert client.post("/notifications/silences", data=form | {"hours": "900"}).status_code == 422
    done = client.post("/notifications/silences", data=form | {"reason": "a restore", "hours": "1"})
    assert done.status_code == 303
    [silence] = client.get("/api/silences").get_json()["silences"]
    assert (silence["name"], silence["match"]) == ("restore", {"tags": ["team:a"]})
    client.post("/notifications/silences/end", data={"form_token": form["form_token"], "name": "restore"})
    assert client.get("/api/silences").get_json()["silences"] == []


def test_a_heartbeat_is_made_and_its_address_shown_once(client: FlaskClient) -> None:
    form = {"form_token": form_token(client, "/heartbeats"), "name": "backup"}
    made = client.post(
        "/heartbeats", data=form | {"when": "every day at 2:00", "timezone": "UTC", "grace": "5"}
    )
    found = re.search(r"http://[^ <]*(/ping/[^ <]+)", html.unescape(made.text))
    assert (made.status_code, found is not None) == (200, True)
    assert found is not None
    assert client.get(found[1]).text == "OK\n"
    listed = client.get("/heartbeats").text
    assert 'data-state="up"' in listed
    assert "/ping/" not in listed
    assert client.get("/api/heartbeats/backup").get_json()["grace_seconds"] == 300
    renewed = client.post("/heartbeats/new-url", data=form)
    assert client.get(found[1]).status_code == 404, "the old address opens nothing"
    assert found[1] not in renewed.text
    assert client.post("/heartbeats/delete", data=form).status_code == 303
    assert client.get("/api/heartbeats").get_json()["heartbeats"] == []


def test_a_wrong_heartbeat_is_refused_beside_its_field(client: FlaskClient) -> None:
    form = {"form_token": form_token(client, "/heartbeats"), "name": "backup", "when": "every blue moon"}
    refused = client.post("/heartbeats", data=form)
    assert (refused.status_code, 'data-test="wrong-when"' in refused.text) == (422, True)
    assert 'value="every blue moon"' in refused.text


def test_the_ledger_is_a_page_and_a_file(client: FlaskClient) -> None:
    assert "The ledger is empty" in client.get("/ledger").text
    file = client.get("/ledger/export?hours=168")
    assert (file.mimetype, file.text.startswith("hour,owed,")) == ("text/csv", True)
    assert client.get("/ledger?hours=9").status_code == 422
