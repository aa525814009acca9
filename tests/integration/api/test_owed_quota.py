"""Events that a tenant may owe in an hour: estimated where rules and backfills are made or changed."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.store import Store
from scheduler_app.usecases import quotas
from tests.integration.api.conftest import ToldTime
from tests.integration.api.test_stored_keys import by
from tests.integration.api.test_tenant_quotas import (
    NIGHTLY,
    SCHEDULES,
    age,
    client,
    left,
    limit,
    limited,
    post,
    processes,
)

__all__ = ["client", "processes"]

CALL: dict[str, Any] = {"name": "call", "callback_url": "http://127.0.0.1:9/"}
EACH_MINUTE = CALL | {"every_seconds": 60}
EACH_HALF = CALL | {"every_seconds": 120}
OF = "acme:events_per_hour"


#: More than any test takes.
REFUSED_SECONDS, BOUND_SECONDS = 3_600, 7_200


@pytest.fixture(autouse=True)
def ten(time: ToldTime, monkeypatch: pytest.MonkeyPatch) -> None:
    time.at = datetime(2031, 5, 6, 10, 0, 0, tzinfo=UTC)
    monkeypatch.setattr(quotas, "EVENTS_REFUSED_SECONDS", REFUSED_SECONDS)
    monkeypatch.setattr(quotas, "EVENTS_BOUND_SECONDS", BOUND_SECONDS)


def test_rules_that_owe_more_are_refused(processes: list[FlaskClient]) -> None:
    first, second = processes
    key = limited(first, events_per_hour=100)
    made = post(first, key, **EACH_MINUTE)
    assert (made.status_code, left(made)) == (201, '"events_per_hour";r=40')
    assert made.headers["RateLimit-Policy"] == '"events_per_hour";q=100;qu="events"'
    refused = post(second, key, **EACH_MINUTE)
    assert refused.status_code == 403
    assert refused.get_json()["detail"] == (
        "the tenant acme may owe 100 events in an hour: 60 of them are used, and this request asks for 60;"
        " let some schedules run less often, pause or delete some, or ask an operator for a larger"
        " limits.events_per_hour"
    )
    assert left(post(second, key, **EACH_HALF)) == '"events_per_hour";r=10'
    # What runs once a day owes one more at most, and what waits for a person nothing.
    assert left(post(first, key, **NIGHTLY)) == '"events_per_hour";r=9'
    assert left(post(first, key, **CALL, on_demand=True)) == '"events_per_hour";r=9'


def test_the_busiest_hour_is_found_whenever_it_is(client: FlaskClient, store: Store) -> None:
    key = limited(client, events_per_hour=70)
    assert post(client, key, **CALL, cron="* 3 * * *").status_code == 201
    assert post(client, key, **EACH_HALF).status_code == 403
    # Those of another hour are added until the whole is looked at again.
    age(store, "counted_at", BOUND_SECONDS, OF)
    assert left(post(client, key, **CALL, cron="*/6 12 * * *")) == '"events_per_hour";r=0'
    assert post(client, key, **CALL, cron="*/6 14 * * *").status_code == 403
    age(store, "counted_at", BOUND_SECONDS, OF)
    assert left(post(client, key, **CALL, cron="*/6 14 * * *")) == '"events_per_hour";r=0'


def test_a_refusal_stands_for_seconds_and_then_what_is_owed_is_counted_anew(
    client: FlaskClient, store: Store
) -> None:
    key = limited(client, events_per_hour=60)
    made = post(client, key, **EACH_MINUTE).get_json()["id"]
    assert client.post(f"{SCHEDULES}/{made}/pause", headers=by(key)).status_code == 200
    assert post(client, key, **EACH_HALF).status_code == 403
    age(store, "counted_at", REFUSED_SECONDS, OF)
    assert post(client, key, **EACH_HALF).status_code == 201
    resumed = client.post(f"{SCHEDULES}/{made}/resume", headers=by(key))
    assert (resumed.status_code, "may owe 60 events" in resumed.text) == (403, True)
    assert client.get(f"{SCHEDULES}/{made}", headers=by(key)).get_json()["state"] == "paused"


def test_an_edit_may_owe_less_and_not_more_than_there_is_room_for(client: FlaskClient) -> None:
    key = limited(client, events_per_hour=60)
    path = f"{SCHEDULES}/{post(client, key, **EACH_HALF).get_json()['id']}"

    def put(**body: Any) -> int:
        return client.put(path, json=body, headers=by(key)).status_code

    assert put(every_seconds=30) == 403
    assert client.get(path, headers=by(key)).get_json()["every_seconds"] == 120
    assert [put(every_seconds=60), put(every_seconds=600), put(name="another")] == [200, 200, 200]
    assert put(every_seconds=1) == 403


def test_of_a_bulk_those_that_fit_are_made(client: FlaskClient) -> None:
    key = limited(client, events_per_hour=100, schedules=3)
    items = [EACH_MINUTE, EACH_MINUTE, EACH_HALF, NIGHTLY, NIGHTLY]
    answer = client.post(f"{SCHEDULES}/bulk", json={"schedules": items}, headers=by(key))
    results = answer.get_json()["results"]
    assert [each["status"] for each in results] == [201, 403, 201, 201, 403]
    assert "limits.events_per_hour" in results[1]["problem"]["detail"]
    assert "limits.schedules" in results[4]["problem"]["detail"]
    assert left(answer) == '"events_per_hour";r=9, "schedules";r=0'


def test_a_backfill_owes_what_it_makes_in_an_hour(client: FlaskClient) -> None:
    key = limited(client, events_per_hour=30)
    daily = CALL | {"rrule": "DTSTART:20300101T220000Z\nRRULE:FREQ=DAILY"}
    path = f"{SCHEDULES}/{post(client, key, **daily).get_json()['id']}/backfill"
    days = {"from": "2031-01-01T00:00:00Z", "to": "2031-03-01T00:00:00Z", "rate_per_second": 1}
    refused = client.post(path, json=days, headers=by(key))
    assert (refused.status_code, "and this request asks for 59" in refused.text) == (403, True), refused.text
    days["from"] = "2031-02-10T00:00:00Z"
    started = client.post(path, json=days, headers=by(key))
    assert (started.status_code, left(started)) == (202, '"events_per_hour";r=10'), started.text


def test_creators_at_once_do_not_owe_more_than_there_is_room_for(processes: list[FlaskClient]) -> None:
    key = limited(processes[0], events_per_hour=100)

    def create(number: int) -> int:
        with processes[number % 2].application.test_client() as one:
            return post(one, key, **EACH_HALF).status_code

    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(create, range(8)))
    assert statuses.count(201) <= 3
    assert set(statuses) == {201, 403}


def test_what_rules_owe_beyond_the_limit_is_made_all_the_same(client: FlaskClient) -> None:
    key = limited(client, events_per_hour=60)
    made = post(client, key, **EACH_MINUTE).get_json()["id"]
    limit(client, events_per_hour=1)
    services = client.application.extensions["scheduler"]
    path = f"{SCHEDULES}/{made}/events/pending"
    before = len(client.get(path, headers=by(key)).get_json()["events"])
    services.expansion.expand_page(services.now() + timedelta(minutes=5))
    assert len(client.get(path, headers=by(key)).get_json()["events"]) == before + 5
