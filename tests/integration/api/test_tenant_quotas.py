"""Schedules that a tenant may have, and messages that it may make in a day: refused beyond, at every door."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from scheduler_app.domain.act import Act, Actor, ActorKind
from scheduler_app.domain.errors import LimitReached, QuotaExceeded
from scheduler_app.domain.tenant import TenantLimits
from scheduler_app.store import Store
from scheduler_app.store.acting import acting
from scheduler_app.store.quotas import LEASE_SECONDS
from scheduler_app.usecases import quotas
from scheduler_app.usecases.quotas import SCHEDULES_BOUND_SECONDS
from tests.builders import draft
from tests.integration.api.conftest import ToldTime
from tests.integration.api.page_forms import form_token
from tests.integration.api.test_pages_access import sign_in
from tests.integration.api.test_stored_keys import ROOT, by, make

TENANTS, SCHEDULES, MESSAGES = "/api/v1/tenants", "/api/v1/schedules", "/api/v1/messages"
NIGHTLY = {"name": "nightly", "cron": "0 22 * * *", "callback_url": "http://127.0.0.1:9/"}
NOTE = {"callback_url": "http://127.0.0.1:9/", "delay_seconds": 3_600}
SCOPES = ["read", "trigger", "write"]


@pytest.fixture
def processes(make_api: Callable[..., Flask]) -> list[FlaskClient]:
    """Two processes of the API."""
    settings: dict[str, Any] = {"api_keys": (f"root:{ROOT}",), "tasks_api": True}
    made = [make_api(**settings, allowed_commands=("echo *",)) for _ in range(2)]
    return [each.test_client() for each in made]


@pytest.fixture
def client(processes: list[FlaskClient]) -> FlaskClient:
    return processes[0]


def limit(client: FlaskClient, name: str = "acme", **limits: int) -> None:
    """Sets the limits of a tenant, and has this process know them."""
    put = client.put(f"{TENANTS}/{name}", json={"limits": limits}, headers=by(ROOT))
    assert put.status_code in (200, 201), put.text
    client.application.extensions["known_keys"].tenants._found.clear()


def limited(client: FlaskClient, name: str = "acme", **limits: int) -> str:
    """A key of a tenant with these limits."""
    limit(client, name, **limits)
    return str(make(client, tenant=name, scopes=SCOPES)["key"])


def post(client: FlaskClient, key: str, path: str = SCHEDULES, **body: Any) -> TestResponse:
    given = body or (NIGHTLY if path == SCHEDULES else NOTE)
    return client.post(path, json=given, headers=by(key))


def left(answer: TestResponse) -> str:
    return answer.headers["RateLimit"]


def test_schedules_beyond_the_limit_are_refused_by_every_process(processes: list[FlaskClient]) -> None:
    first, second = processes
    key = limited(first, schedules=2)
    made = post(first, key)
    assert (made.status_code, left(made)) == (201, '"schedules";r=1')
    assert made.headers["RateLimit-Policy"] == '"schedules";q=2;qu="schedules"'
    assert left(post(second, key)) == '"schedules";r=0'
    for client in processes:
        refused = post(client, key)
        assert (refused.status_code, refused.mimetype) == (403, "application/problem+json")
        assert refused.get_json()["limit"] == "schedules"
        assert refused.get_json()["detail"] == (
            "the tenant acme may have 2 schedules: 2 of them are used, and this request asks for 1; delete"
            " some, or ask an operator for a larger limits.schedules"
        )
        assert left(refused) == '"schedules";r=0'
    # Nobody else is concerned, and what is deleted makes room at once.
    assert post(first, limited(first, "globex")).status_code == 201
    once = by(key) | {"Idempotency-Key": "once"}
    assert first.post(SCHEDULES, json=NIGHTLY, headers=once).status_code == 403
    path = f"{SCHEDULES}/{made.get_json()['id']}"
    assert first.delete(path, headers=by(key)).status_code == 200
    again = first.post(SCHEDULES, json=NIGHTLY, headers=once)
    assert again.status_code == 201
    assert first.delete(f"{SCHEDULES}/{again.get_json()['id']}", headers=by(key)).status_code == 200
    assert [post(client, key).status_code for client in processes] == [201, 403]


def test_creators_at_once_do_not_exceed_the_limit_and_reach_it(
    processes: list[FlaskClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow the machine is: who waits for less is refused without need.
    monkeypatch.setattr(quotas, "WAIT_SECONDS", 60.0)
    key = limited(processes[0], schedules=7)

    def create(number: int) -> int:
        with processes[number % 2].application.test_client() as client:
            return post(client, key).status_code

    with ThreadPoolExecutor(20) as threads:
        statuses = sorted(threads.map(create, range(20)))
    assert statuses == [201] * 7 + [403] * 13


def test_what_was_made_counts_whoever_made_it(client: FlaskClient, store: Store) -> None:
    key = limited(client, schedules=2)
    assert post(client, key).status_code == 201
    # Without limits nothing is noted: an older count says nothing of what was made since.
    limit(client)
    assert post(client, key).status_code == 201
    limit(client, schedules=2)
    age(store, "counted_at", SCHEDULES_BOUND_SECONDS)
    assert post(client, key).status_code == 403


def test_what_a_process_was_making_when_it_died_is_forgotten_and_counted(
    client: FlaskClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "WAIT_SECONDS", 0.0)
    key = limited(client, schedules=2)
    assert left(post(client, key)) == '"schedules";r=1'
    store.quotas.note("acme:schedules", "dead", 1, bound_seconds=60)
    refused = post(client, key)
    assert refused.status_code == 403
    age(store, "making.0.until", LEASE_SECONDS)
    assert left(post(client, key)) == '"schedules";r=0'
    assert post(client, key).status_code == 403


def age(store: Store, field: str, seconds: int, of: str = "acme:schedules") -> None:
    """Makes an instant in the tenant's document so much older."""
    documents = store.mongo.collection("quotas")
    row = documents.find_one({"_id": of})
    assert row is not None
    path = field.split(".")
    value: Any = row[path[0]] if len(path) == 1 else row[path[0]][int(path[1])][path[2]]
    older = value - timedelta(seconds=seconds + 1)
    documents.update_one({"_id": of}, {"$set": {field: older}})


def test_a_lowered_limit_deletes_nothing(client: FlaskClient) -> None:
    key = limited(client, schedules=5)
    for _ in range(3):
        assert post(client, key).status_code == 201
    limit(client, schedules=1)
    refused = post(client, key)
    assert (refused.status_code, left(refused)) == (403, '"schedules";r=0')
    assert "may have 1 schedules: 3 of them are used" in refused.get_json()["detail"]
    assert len(client.get(SCHEDULES, headers=by(key)).get_json()["schedules"]) == 3


def test_of_a_bulk_the_first_ones_are_made_and_the_others_refused(client: FlaskClient) -> None:
    key = limited(client, schedules=3)
    assert post(client, key, **NIGHTLY, id="there").status_code == 201
    items: list[Any] = [NIGHTLY | {"id": "a"}, {"name": "bad"}, NIGHTLY | {"id": "there"}]
    items += [NIGHTLY | {"id": each} for each in ("b", "c")]
    answer = client.post(f"{SCHEDULES}/bulk", json={"schedules": items}, headers=by(key))
    body = answer.get_json()
    assert [each["status"] for each in body["results"]] == [201, 422, 409, 201, 403]
    assert (
        "may have 3 schedules: 1 of them are used, and this request asks for 4"
        in body["results"][-1]["problem"]["detail"]
    )
    assert left(answer) == '"schedules";r=0'


def test_a_request_that_is_begun_again_makes_what_it_would_have_made(client: FlaskClient) -> None:
    limit(client, schedules=2)
    services = client.application.extensions["scheduler"]
    act = Act(Actor(ActorKind.KEY, "ann"), limits=TenantLimits(schedules=2, messages_per_day=0))
    drafts = [(None, draft()), (None, draft())]
    with acting(act):
        first, again = (
            services.creation.create_many("acme", drafts, services.now(), request_seed="s") for _ in range(2)
        )
        one = services.creation.create("acme", draft(), services.now(), request_seed="s-0")
        assert [each.id for each in first] == [each.id for each in again]
        assert one.id == first[0].id
        with pytest.raises(LimitReached):
            services.creation.create("acme", draft(), services.now(), request_seed="another")
    triggered = services.manager.trigger(one.id, services.now(), request_seed="t")
    with acting(act):
        assert services.manager.trigger(one.id, services.now(), request_seed="t").id == triggered.id
        with pytest.raises(QuotaExceeded):
            services.manager.trigger(one.id, services.now(), request_seed="another")


def test_every_door_that_makes_schedules_has_the_limit(client: FlaskClient) -> None:
    key = limited(client, schedules=0)
    assert client.put(f"{SCHEDULES}/new", json=NIGHTLY, headers=by(key)).status_code == 403
    dry = client.post(f"{SCHEDULES}?dry_run=true", json=NIGHTLY, headers=by(key))
    assert dry.status_code == 403
    task = {"id": "t1", "name": "t", "command": "echo a"}
    refused = client.post("/tasks", json=task, headers=by(key))
    assert (refused.status_code, "may have 0 schedules" in refused.get_json()["error"]) == (403, True)
    # Whoever runs the installation and acts in the tenant has its limits, too.
    root = by(ROOT) | {"Scheduler-Tenant": "acme"}
    assert client.post(SCHEDULES, json=NIGHTLY, headers=root).status_code == 403
    assert client.post(SCHEDULES, json=NIGHTLY, headers=by(ROOT)).status_code == 201


def test_the_limits_of_the_default_tenant_hold_for_stored_keys(client: FlaskClient) -> None:
    key = limited(client, "default", schedules=1)
    assert [post(client, key).status_code for _ in range(2)] == [201, 403]
    assert post(client, ROOT).status_code == 201


def test_a_dry_run_judges_and_uses_nothing(client: FlaskClient) -> None:
    key = limited(client, schedules=1, messages_per_day=1)
    for path, body in ((SCHEDULES, NIGHTLY), (MESSAGES, NOTE)) * 2:
        dry = client.post(f"{path}?dry_run=true", json=body, headers=by(key))
        assert dry.status_code == 201, dry.text
    assert [post(client, key, path).status_code for path in (SCHEDULES, MESSAGES)] == [201, 201]


def test_messages_and_triggers_of_a_day_are_counted_and_the_next_day_begins_anew(
    processes: list[FlaskClient], time: ToldTime
) -> None:
    first, second = processes
    time.at = datetime(2031, 5, 6, 23, 0, 0, tzinfo=UTC)
    key = limited(first, messages_per_day=3)
    made = post(first, key, MESSAGES, **NOTE, id="m1")
    assert (made.status_code, left(made)) == (201, '"messages_per_day";r=2;t=3600')
    assert made.headers["RateLimit-Policy"] == '"messages_per_day";q=3;qu="messages";w=86400'
    # What is there already is not made again.
    known = post(second, key, MESSAGES, **NOTE, id="m1")
    assert (known.status_code, left(known)) == (200, '"messages_per_day";r=2;t=3600')
    schedule = post(second, key).get_json()["id"]
    triggered = second.post(f"{SCHEDULES}/{schedule}/trigger", headers=by(key))
    assert (triggered.status_code, left(triggered)) == (202, '"messages_per_day";r=1;t=3600')
    assert left(post(second, key, MESSAGES)) == '"messages_per_day";r=0;t=3600'
    for client, path in ((first, MESSAGES), (second, f"{SCHEDULES}/{schedule}/trigger")):
        refused = client.post(path, json=NOTE if path == MESSAGES else None, headers=by(key))
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "3600")
        assert refused.get_json()["limit"] == "messages_per_day"
        assert refused.get_json()["detail"] == (
            "the tenant acme may make 3 messages and triggers a day: 3 of them are used, and this request"
            " asks for 1; go on after 00:00 UTC, or ask an operator for a larger limits.messages_per_day"
        )
    assert post(first, key, MESSAGES, **NOTE, id="m1").status_code == 200
    time.at += timedelta(hours=1)
    assert left(post(first, key, MESSAGES)) == '"messages_per_day";r=2;t=86400'


def test_of_many_messages_the_first_ones_are_made_and_the_others_refused(
    client: FlaskClient, time: ToldTime
) -> None:
    key = limited(client, messages_per_day=2)
    items = {"messages": [NOTE | {"id": each} for each in ("a", "b", "a", "c")]}
    answers = [client.post(f"{MESSAGES}/bulk", json=items, headers=by(key)) for _ in range(2)]
    statuses = [[each["status"] for each in answer.get_json()["results"]] for answer in answers]
    assert statuses == [[201, 201, 429, 429], [200, 200, 200, 429]]
    assert [left(answer).partition(";t")[0] for answer in answers] == ['"messages_per_day";r=0'] * 2


def test_messages_at_once_do_not_exceed_the_day_s_and_reach_them(
    processes: list[FlaskClient], time: ToldTime
) -> None:
    key = limited(processes[0], messages_per_day=7)

    def create(number: int) -> int:
        with processes[number % 2].application.test_client() as client:
            return post(client, key, MESSAGES).status_code

    with ThreadPoolExecutor(20) as threads:
        statuses = sorted(threads.map(create, range(20)))
    assert statuses == [201] * 7 + [429] * 13


def test_a_form_beyond_the_limit_says_so_and_keeps_what_was_typed(client: FlaskClient, store: Store) -> None:
    key = limited(client, schedules=0, messages_per_day=0)
    person = client.application.test_client()
    assert sign_in(person, key).status_code == 303
    form = {"form_token": form_token(person, "/new-schedule"), "name": "Typed", "url": "http://127.0.0.1:9/"}
    refused = person.post("/new-schedule", data=form | {"when": "0 9 * * 1-5"})
    assert (refused.status_code, "may have 0 schedules" in refused.text) == (403, True)
    assert 'value="Typed"' in refused.text
    message = {"form_token": form["form_token"], "url": form["url"], "when": "in 1 hour"}
    refused = person.post("/new-message", data=message)
    assert (refused.status_code, "may make 0 messages and triggers a day" in refused.text) == (429, True)


def test_what_is_used_is_shown_to_who_sets_the_limits(client: FlaskClient, time: ToldTime) -> None:
    key = limited(client, schedules=5_000, messages_per_day=3, events_per_hour=70)
    assert post(client, key, **NIGHTLY).status_code == 201
    assert post(client, key, MESSAGES).status_code == 201
    used = {"schedules": 1, "messages_per_day": 1, "events_per_hour": 1}
    assert client.get(f"{TENANTS}/acme", headers=by(ROOT)).get_json()["used"] == used
    acme, default = client.get(TENANTS, headers=by(ROOT)).get_json()["tenants"]
    assert (acme["used"], "used" in default) == (used, False)
    assert sign_in(client, ROOT).status_code == 303
    page = client.get("/tenants").text
    assert "1 of 5,000 schedules, 1 of 3 messages per day, 1 of 70 events per hour" in page


def test_a_list_of_tenants_counts_no_more_schedules_than_its_bound(
    client: FlaskClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, number in {"acme": 2, "globex": 3, "initech": 1}.items():
        key = limited(client, name, schedules=9)
        for _ in range(number):
            assert post(client, key).status_code == 201
    documents = store.mongo.collection("quotas")
    # When one was made last, there were others that have been deleted since.
    documents.update_many({"_id": {"$in": ["acme:schedules", "globex:schedules"]}}, {"$set": {"bound": 7}})
    documents.delete_one({"_id": "initech:schedules"})
    limit(client, "umbrella", schedules=9)
    limit(client, "hooli", messages_per_day=9)

    def listed() -> dict[str, int | None]:
        rows = client.get(TENANTS, headers=by(ROOT)).get_json()["tenants"]
        return {each["name"]: each.get("used", {}).get("schedules") for each in rows}

    whole = {"acme": 2, "default": None, "globex": 3, "hooli": None, "initech": 1, "umbrella": 0}
    assert listed() == whole
    monkeypatch.setattr(quotas, "COUNTED_IN_A_LIST", 4)
    # Counting ends among the schedules of globex.
    assert listed() == whole | {"globex": 7, "initech": None, "umbrella": None}
    monkeypatch.setattr(quotas, "COUNTED_IN_A_LIST", 2)
    assert listed() == whole | {"acme": 7, "globex": 7, "initech": None, "umbrella": None}
    # One alone is counted whatever others have.
    assert client.get(f"{TENANTS}/initech", headers=by(ROOT)).get_json()["used"] == {"schedules": 1}


@pytest.mark.parametrize("given", [-1, 1.5, "many", 10**9])
@pytest.mark.parametrize("name", ["schedules", "messages_per_day", "events_per_hour"])
def test_a_limit_that_is_none_is_refused(client: FlaskClient, name: str, given: Any) -> None:
    answer = client.put(f"{TENANTS}/acme", json={"limits": {name: given}}, headers=by(ROOT))
    assert (answer.status_code, f"limits/{name}" in answer.text) == (422, True), answer.text
