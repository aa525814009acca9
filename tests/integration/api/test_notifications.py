"""Notifications and silences over HTTP."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from flask.testing import FlaskClient

from scheduler_app.clock import clock
from scheduler_app.domain.cause import Tally, failing_key
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.notification_rule import NotificationRule
from scheduler_app.store import SecretBox, Store
from scheduler_app.store.notification_rules import CorruptNotificationRule, NotificationRules
from tests.builders import notification_rule

PATH = "/api/v1/notifications"
SILENCES = "/api/v1/silences"
OPS: dict[str, Any] = {
    "on": ["failing", "recovered"],
    "match": {"tags": ["team:*"], "schedules": ["nightly"], "destinations": ["erp"]},
    "after_seconds": 90.0,
    "remind_seconds": 3_600.0,
    "hours": {"cron": "0 8 * * 1-5", "timezone": "Europe/Zurich", "duration_seconds": 36_000.0},
    "to": [{"type": "webhook", "url": "http://127.0.0.1:9/alerts?token=secret"}],
}
FOR_ALWAYS = "2040-01-01T00:00:00Z"


def test_it_is_set_shown_changed_and_deleted(client: FlaskClient) -> None:
    made = client.put(f"{PATH}/ops", json=OPS)
    assert made.status_code == 201, made.text
    shown = made.get_json()
    masked = [{"type": "webhook", "url": "http://127.0.0.1:9/alerts?token=********"}]
    assert {name: shown[name] for name in OPS} == OPS | {"to": masked}
    assert shown["result"] == "created"
    assert shown["signing_secret"].startswith("whsec_")
    again = client.put(f"{PATH}/ops", json=OPS)
    assert (again.status_code, again.get_json()["result"]) == (200, "unchanged")
    assert "signing_secret" not in again.get_json()
    # What was shown may be given back: a mask stands for the value that is kept.
    changed = client.put(f"{PATH}/ops", json=OPS | {"to": masked, "after_seconds": 30})
    assert (changed.status_code, changed.get_json()["result"]) == (200, "changed")
    assert client.get(f"{PATH}/ops").get_json()["after_seconds"] == 30
    assert [each["name"] for each in client.get(PATH).get_json()["notifications"]] == ["ops"]
    assert client.delete(f"{PATH}/ops").status_code == 200
    assert client.delete(f"{PATH}/ops").status_code == 404
    assert client.get(f"{PATH}/ops").status_code == 404
    assert client.post(f"{PATH}/ops/test").status_code == 404


def test_the_address_is_stored_sealed_and_a_mask_keeps_it(client: FlaskClient, store: Store) -> None:
    client.put(f"{PATH}/ops", json=OPS)
    masked = [{"type": "webhook", "url": "http://127.0.0.1:9/alerts?token=********"}]
    client.put(f"{PATH}/ops", json=OPS | {"to": masked, "after_seconds": 30})
    found = store.notification_rules.get("ops")  # type: ignore[arg-type]
    assert found is not None
    assert not isinstance(found, CorruptNotificationRule)
    assert found.to[0].address.endswith("token=secret")
    assert "secret" not in repr(found)
    row = store.mongo.collection("notifications").find_one({"_id": "ops"}) or {}
    assert store.secret_box.encrypts == ("to" not in row)


def test_mail_needs_a_mail_server_and_says_so(client: FlaskClient) -> None:
    refused = client.put(f"{PATH}/ops", json=OPS | {"to": [{"type": "email", "address": "ops@example.com"}]})
    assert refused.status_code == 422
    (error,) = refused.get_json()["errors"]
    assert error["pointer"] == "/to"
    assert "set SMTP_URL" in error["detail"]


def test_the_url_of_a_service_is_never_shown(client: FlaskClient) -> None:
    urls = ["slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ", "ntfys://ntfy.example.com/s3cret-topic"]
    given = OPS | {"to": [{"type": "apprise", "url": url} for url in urls]}
    made = client.put(f"{PATH}/ops", json=given)
    assert made.status_code == 201, made.text
    masked = [{"type": "apprise", "url": f"{each}://********"} for each in ("slack", "ntfys")]
    assert made.get_json()["to"] == masked
    assert "signing_secret" not in made.get_json()
    assert client.put(f"{PATH}/ops", json=given | {"to": masked}).get_json()["result"] == "unchanged"
    unknown = given | {"to": [{"type": "apprise", "url": "discord://********"}]}
    assert client.put(f"{PATH}/ops", json=unknown).status_code == 422
    (tested, _) = client.post(f"{PATH}/ops/test").get_json()["message_ids"]
    shown = client.get(f"/api/v1/messages/{tested.removeprefix('msg_')}").get_json()
    assert shown["receiver"].startswith("apprise slack #")
    assert "callback_url" not in shown
    seen = made.text + str(shown) + client.get(PATH).text + client.get("/api/v1/messages").text
    assert "TIiajk" not in seen
    assert "s3cret-topic" not in seen


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"to": [{"type": "email"}]}, "/to/0/address"),
        ({"to": [{"type": "email", "address": "a@b.c", "url": "http://x.example.com/"}]}, "/to/0/url"),
        ({"to": [{"type": "webhook", "address": "a@b.c"}]}, "/to/0/url"),
        ({"to": [{"type": "apprise", "url": "json://example.com/"}]}, "/to"),
        ({"to": [{"type": "apprise", "url": "ntfys://10.0.0.1/x"}]}, "/to"),
        ({"to": []}, "/to"),
        ({"to": [{"type": "pigeon", "url": "http://127.0.0.1/"}]}, "/to/0/type"),
        ({"to": [{"type": "webhook"}]}, "/to/0/url"),
        ({"to": [{"type": "webhook", "url": "ftp://127.0.0.1/"}]}, "/to/0/url"),
        ({"to": [{"type": "webhook", "url": "http://127.0.0.1:9/x?token=********"}]}, "/to"),
        ({"on": ["nonsense"]}, "/on/0"),
        ({"after_seconds": -1}, "/after_seconds"),
        ({"remind_seconds": 1}, "/remind_seconds"),
        ({"hours": {"duration_seconds": 60}}, "/hours"),
        ({"hours": {"cron": "nonsense", "duration_seconds": 60}}, "/hours/cron"),
        ({"match": {"tags": ["x"] * 51}}, "/match/tags"),
        ({"match": {"colour": ["x"]}}, "/match/colour"),
        ({"surprise": 1}, "/surprise"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_by_name(
    client: FlaskClient, body: dict[str, Any], pointer: str
) -> None:
    answer = client.put(f"{PATH}/ops", json=OPS | body)
    assert answer.status_code == 422, answer.text
    assert pointer in [each["pointer"] for each in answer.get_json()["errors"]]
    assert client.get(PATH).get_json()["notifications"] == []


def test_there_are_no_more_than_a_hundred(client: FlaskClient) -> None:
    few = {"to": OPS["to"]}
    for number in range(100):
        assert client.put(f"{PATH}/n{number}", json=few).status_code == 201
        silence = {"until": FOR_ALWAYS, "reason": "why"}
        assert client.put(f"{SILENCES}/n{number}", json=silence).status_code == 201
    refused = client.put(f"{PATH}/more", json=few)
    assert refused.status_code == 409
    assert "delete some" in refused.get_json()["detail"]
    assert client.put(f"{SILENCES}/more", json=silence).status_code == 409
    assert client.put(f"{PATH}/n7", json=few | {"after_seconds": 5}).status_code == 200


def test_a_document_that_cannot_be_read_is_shown_and_can_be_replaced(
    client: FlaskClient, store: Store
) -> None:
    client.put(f"{PATH}/ops", json=OPS)
    bent = {"$set": {"after_seconds": "soon"}}
    store.mongo.collection("notifications").update_one({"_id": "ops"}, bent)
    assert "after_seconds" in client.get(f"{PATH}/ops").get_json()["corrupt"]
    assert client.post(f"{PATH}/ops/test").status_code == 409
    assert store.notification_rules.everybodys() == []
    assert client.put(f"{PATH}/ops", json=OPS).status_code == 200
    assert "corrupt" not in client.get(f"{PATH}/ops").get_json()


def test_a_silence_is_set_shown_changed_and_deleted(client: FlaskClient) -> None:
    night = {"match": {"tags": ["x"]}, "until": FOR_ALWAYS, "reason": "an upgrade"}
    made = client.put(f"{SILENCES}/night", json=night)
    assert made.status_code == 201, made.text
    assert {name: made.get_json()[name] for name in night} == night
    assert client.put(f"{SILENCES}/night", json=night).get_json()["result"] == "unchanged"
    changed = client.put(f"{SILENCES}/night", json=night | {"reason": "another"})
    assert (changed.status_code, changed.get_json()["result"]) == (200, "changed")
    assert client.get(f"{SILENCES}/night").get_json()["reason"] == "another"
    assert [each["name"] for each in client.get(SILENCES).get_json()["silences"]] == ["night"]
    over = client.put(f"{SILENCES}/night", json=night | {"until": "2020-01-01T00:00:00Z"})
    assert over.status_code == 422
    assert client.put(f"{SILENCES}/other", json={"until": FOR_ALWAYS}).status_code == 422
    assert client.delete(f"{SILENCES}/night").status_code == 200
    assert client.delete(f"{SILENCES}/night").status_code == 404


def test_a_dry_run_changes_nothing(client: FlaskClient) -> None:
    made = client.put(f"{PATH}/ops?dry_run=true", json=OPS)
    assert (made.status_code, made.get_json()["result"]) == (201, "created")
    assert made.get_json()["signing_secret"] == "********"
    assert client.get(f"{PATH}/ops").status_code == 404
    client.put(f"{PATH}/ops", json=OPS)
    assert client.delete(f"{PATH}/ops?dry_run=true").status_code == 200
    assert client.post(f"{PATH}/ops/test?dry_run=true").status_code == 202
    assert client.get("/api/v1/messages").get_json()["messages"] == []
    assert client.get(f"{PATH}/ops").status_code == 200


def test_the_status_shows_what_is_silenced_until_when_and_why(client: FlaskClient, store: Store) -> None:
    now = clock.now()
    store.causes.touch([Tally(failing_key("s1-1-x", "destination erp", 500, None), now, now)])
    assert "silence" not in client.get("/api/v1/status").get_json()["reasons"][0]
    about = {"match": {"destinations": ["erp"]}, "until": FOR_ALWAYS, "reason": "an upgrade"}
    client.put(f"{SILENCES}/night", json=about)
    reasons = client.get("/api/v1/status").get_json()["reasons"]
    [shown] = [each["silence"] for each in reasons if each.get("destination") == "erp"]
    assert shown == {"name": "night", "until": FOR_ALWAYS, "reason": "an upgrade"}
    assert "Silenced until" in client.get("/").text
    client.delete(f"{SILENCES}/night")
    assert not any("silence" in each for each in client.get("/api/v1/status").get_json()["reasons"])


def test_what_was_encrypted_with_an_older_key_is_encrypted_again(store: Store) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    rules = NotificationRules(store.mongo, SecretBox(old), store.calendars)
    rules.put(notification_rule(clock.now()))
    both = NotificationRules(store.mongo, SecretBox(f"{new},{old}"), store.calendars)
    assert both.reseal() == (1, {})
    assert both.reseal() == (0, {})
    found = NotificationRules(store.mongo, SecretBox(new), store.calendars).get(WholeId("ops"))
    assert isinstance(found, NotificationRule)
    assert found.to[0].address == "http://127.0.0.1:9/alerts"
    [[_, reason]] = NotificationRules(store.mongo, SecretBox(old), store.calendars).reseal()[1].items()
    assert "SECRETS_KEY" in reason


def test_its_hours_may_leave_out_the_closed_days_of_a_calendar(client: FlaskClient, store: Store) -> None:
    hours = {"cron": "0 8 * * *", "calendar": "zurich", "duration_seconds": 36_000.0}
    refused = client.put(f"{PATH}/ops", json=OPS | {"hours": hours})
    assert refused.status_code == 422
    [problem] = refused.get_json()["errors"]
    assert problem["pointer"] == "/hours/calendar"
    assert "PUT /api/v1/calendars/zurich" in problem["detail"]
    client.put("/api/v1/calendars/zurich", json={"weekend": ["SA", "SU"]})
    made = client.put(f"{PATH}/ops", json=OPS | {"hours": hours})
    assert made.status_code == 201, made.text
    assert made.get_json()["hours"] == hours | {"timezone": "UTC"}
    assert client.put(f"{PATH}/ops", json=OPS | {"hours": hours}).get_json()["result"] == "unchanged"
    without = {name: value for name, value in hours.items() if name != "calendar"}
    assert client.delete("/api/v1/calendars/zurich").status_code == 409
    found = store.notification_rules.get(WholeId("ops"))
    assert isinstance(found, NotificationRule)
    saturday = datetime(2026, 11, 28, 9, tzinfo=UTC)
    assert not found.may_ring(saturday)
    assert found.may_ring(saturday - timedelta(days=1))
    # Its days are those that the calendar has by now; what cannot be read closes none.
    client.put("/api/v1/calendars/zurich", json={"weekend": ["FR"]})
    found = store.notification_rules.get(WholeId("ops"))
    assert isinstance(found, NotificationRule)
    assert found.may_ring(saturday)
    assert not found.may_ring(saturday - timedelta(days=1))
    store.mongo.collection("calendars").delete_many({})
    found = store.notification_rules.get(WholeId("ops"))
    assert isinstance(found, NotificationRule)
    assert found.may_ring(saturday - timedelta(days=1))
    assert client.put(f"{PATH}/ops", json=OPS | {"hours": without}).get_json()["result"] == "changed"


def test_hours_that_its_calendar_closes_for_ever_are_refused(client: FlaskClient) -> None:
    client.put("/api/v1/calendars/mondays", json={"weekend": ["MO"]})
    hours = {"cron": "0 8 * * 1", "calendar": "mondays", "duration_seconds": 60}
    refused = client.put(f"{PATH}/ops", json=OPS | {"hours": hours})
    assert refused.status_code == 422
    assert [each["pointer"] for each in refused.get_json()["errors"]] == ["/hours"]
