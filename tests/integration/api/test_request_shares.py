"""Requests a second of a tenant and of a key, and the threads that a tenant may have."""

from collections.abc import Callable
from time import monotonic
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.domain.request_rate import BURST_SECONDS
from scheduler_app.usecases.quotas import schedule_room
from tests.integration.api.test_stored_keys import ROOT, by, make

TENANTS, SCHEDULES = "/api/v1/tenants", "/api/v1/schedules"
#: One request in so many seconds: none of it comes back while a test runs.
SLOW = 0.01


@pytest.fixture
def processes(make_api: Callable[..., Flask]) -> list[FlaskClient]:
    """Two processes of the API, whose Redis has been there for long."""
    made = [make_api(api_keys=(f"root:{ROOT}",)) for _ in range(2)]
    limiter = made[0].extensions["scheduler"].request_rates.limiter
    limiter._client.set(f"{limiter._prefix}began", 0)
    return [each.test_client() for each in made]


def limited(client: FlaskClient, name: str, **limits: Any) -> str:
    """A key of a new tenant with these limits."""
    put = client.put(f"{TENANTS}/{name}", json={"limits": limits}, headers=by(ROOT))
    assert put.status_code == 201, put.text
    return str(make(client, tenant=name)["key"])


def test_a_tenant_s_requests_are_counted_over_keys_and_processes(
    processes: list[FlaskClient],
) -> None:
    first, second = processes
    key = limited(first, "acme", requests_per_second=SLOW)
    began = monotonic()
    other = make(first, tenant="acme")["key"]
    passed = first.get(SCHEDULES, headers=by(key))
    assert passed.status_code == 200
    assert passed.headers["RateLimit-Policy"] == '"tenant";q=1;w=100'
    assert passed.headers["RateLimit"] == '"tenant";r=0;t=100'
    for client in processes:
        refused = client.get(SCHEDULES, headers=by(other))
        assert (refused.status_code, refused.mimetype) == (429, "application/problem+json")
        assert 100 - (monotonic() - began) < int(refused.headers["Retry-After"]) <= 100
        assert refused.headers["RateLimit"] == '"tenant";r=0;t=100'
        assert "the tenant acme may make 0.01 requests a second" in refused.get_json()["detail"]
    for key_of_others in (limited(second, "globex"), ROOT):
        answer = second.get(SCHEDULES, headers=by(key_of_others))
        assert (answer.status_code, "RateLimit" in answer.headers) == (200, False)


def test_a_refused_request_says_nothing_of_what_others_have_used(processes: list[FlaskClient]) -> None:
    client = processes[0]
    key = limited(client, "acme", requests_per_second=SLOW)
    assert client.get(SCHEDULES, headers=by(key)).status_code == 200
    store = client.application.extensions["scheduler"].store
    with schedule_room(store, "globex", 5, 5):  # by no request: a duty's, or a command's
        pass
    refused = client.get(SCHEDULES, headers=by(key))
    assert (refused.status_code, refused.headers["RateLimit"]) == (429, '"tenant";r=0;t=100')


def test_what_comes_at_once_is_bounded_and_what_is_left_is_said(processes: list[FlaskClient]) -> None:
    client = processes[0]
    key = limited(client, "acme", requests_per_second=2.0)
    answers = [client.get(SCHEDULES, headers=by(key)) for _ in range(2 * BURST_SECONDS)]
    assert answers[0].headers["RateLimit-Policy"] == f'"tenant";q={2 * BURST_SECONDS};w={BURST_SECONDS}'
    left = [int(each.headers["RateLimit"].partition("r=")[2].partition(";")[0]) for each in answers]
    assert left[0] == 2 * BURST_SECONDS - 1
    assert all(each.status_code == 200 for each in answers)
    assert left == sorted(left, reverse=True) or left[-1] > 0  # some may have come back meanwhile


def test_one_key_s_requests_are_limited_beside_those_of_its_tenant(processes: list[FlaskClient]) -> None:
    client = processes[0]
    limited(client, "acme", requests_per_second=100)
    made = make(client, tenant="acme", requests_per_second=SLOW)
    assert made["requests_per_second"] == SLOW
    answer = client.get(SCHEDULES, headers=by(made["key"]))
    assert answer.status_code == 200
    assert answer.headers["RateLimit"].startswith('"tenant";r=499;t=1, "key";r=0;t=')
    refused = client.get(SCHEDULES, headers=by(made["key"]))
    assert (refused.status_code, "this key may make" in refused.text) == (429, True)
    assert client.get(SCHEDULES, headers=by(make(client, tenant="acme")["key"])).status_code == 200


def test_the_default_tenant_s_stored_keys_have_its_limit_and_those_of_the_installation_none(
    processes: list[FlaskClient],
) -> None:
    client = processes[0]
    key = make(client)["key"]
    assert client.get(SCHEDULES, headers=by(key)).status_code == 200
    put = client.put(f"{TENANTS}/default", json={"limits": {"requests_per_second": SLOW}}, headers=by(ROOT))
    assert put.get_json()["limits"] == {"requests_per_second": SLOW}
    assert client.get(f"{TENANTS}/default", headers=by(ROOT)).get_json()["limits"] == put.get_json()["limits"]
    client.application.extensions["known_keys"].tenants._found.clear()
    assert [client.get(SCHEDULES, headers=by(key)).status_code for _ in range(2)] == [200, 429]
    assert [client.get(SCHEDULES, headers=by(ROOT)).status_code for _ in range(3)] == [200] * 3


@pytest.mark.parametrize("given", [0, -1, 1e9, "many"])
def test_a_rate_that_is_none_is_refused(processes: list[FlaskClient], given: Any) -> None:
    limits = {"limits": {"requests_per_second": given}}
    answer = processes[0].put(f"{TENANTS}/acme", json=limits, headers=by(ROOT))
    assert (answer.status_code, "limits/requests_per_second" in answer.text) == (422, True), answer.text


def test_without_redis_every_request_passes(processes: list[FlaskClient]) -> None:
    client = processes[0]
    key = limited(client, "acme", requests_per_second=SLOW)
    limiter = client.application.extensions["scheduler"].request_rates.limiter
    limiter._away_until = float("inf")
    answers = [client.get(SCHEDULES, headers=by(key)) for _ in range(3)]
    assert [each.status_code for each in answers] == [200] * 3
    assert "RateLimit" not in answers[0].headers


def test_a_tenant_that_has_its_threads_is_refused_and_others_are_served(processes: list[FlaskClient]) -> None:
    client = processes[0]
    keys = {name: limited(client, name) for name in ("acme", "globex")}
    turns = client.application.extensions["thread_turns"]
    while turns.take("tenant acme", 0):
        continue
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(turns).take, "__defaults__", (0.01,))
        refused = client.get(SCHEDULES, headers=by(keys["acme"]))
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert "too many requests of this tenant" in refused.text
    for key in (keys["globex"], ROOT):
        assert client.get(SCHEDULES, headers=by(key)).status_code == 200
    turns.give_back("tenant acme")
    assert [client.get(SCHEDULES, headers=by(keys["acme"])).status_code for _ in range(2)] == [200] * 2


def test_an_answer_in_pieces_holds_a_thread_of_its_tenant_until_it_is_read(
    processes: list[FlaskClient],
) -> None:
    client = processes[0]
    limited(client, "acme")
    key = make(client, tenant="acme", scopes=["read", "admin"])["key"]
    turns = client.application.extensions["thread_turns"]
    for end in ("close", "get_data"):
        answer = client.get(f"{SCHEDULES}/export", headers=by(key))
        assert (answer.status_code, turns.known) == (200, {"tenant acme"})
        getattr(answer, end)()
        assert turns.known == set(), end
