"""Previews and explanations have a share of the process for each key; others are served beside them."""

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
from flask import Flask

from scheduler_app.api import request_shares
from scheduler_app.usecases.questions.run_calendar import RunCalendars
from tests.integration.api.test_behind_a_proxy import STRANGER, Outside
from tests.integration.api.test_pages_access import KEY, OTHER_KEY
from tests.processes import PATIENCE_SECONDS

WHEN = {"rrule": "FREQ=DAILY"}


@pytest.fixture
def busy(make_api: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch) -> Flask:
    """An API that computes a preview for `KEY`; others do not wait for long, however much this machine has
    computed for them before."""
    monkeypatch.setattr(request_shares.Turns.take, "__defaults__", (0.01,))
    monkeypatch.setattr(request_shares, "thread_time", lambda: 0.0)
    made = make_api(api_keys=(KEY, OTHER_KEY), trusted_proxies="")
    digest = made.extensions["scheduler"].settings.keys[0].digest
    assert made.extensions["turns"].take(digest)
    return made


def test_beyond_its_share_a_key_is_refused_and_told_when_to_try_again(busy: Flask) -> None:
    client = busy.test_client()
    refused = client.post("/api/schedules/preview", json=WHEN, headers={"X-API-Key": KEY})
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert (
        client.post("/api/schedules/preview", json=WHEN, headers={"X-API-Key": OTHER_KEY}).status_code == 200
    )


@pytest.mark.parametrize("path", ["/api/schedules", "/api/events", "/api/calendars"])
def test_what_does_not_compute_is_not_held_up(busy: Flask, path: str) -> None:
    assert busy.test_client().get(path, headers={"X-API-Key": KEY}).status_code == 200


def test_every_path_that_computes_for_a_key_that_only_reads_has_its_share(busy: Flask) -> None:
    client = busy.test_client()
    for path in ("x/preview", "x/why?at=2026-01-01T00:00:00Z", "x.ics"):
        answer = client.get(f"/api/schedules/{path}", headers={"X-API-Key": KEY})
        assert answer.status_code == 429, path
    for path in (
        "/api/calendar.ics",
        "/api/tzdata/check",
        "/api/v1/search?q=x",
        "/api/calendars/x/days?from=2026-01-01&to=2026-01-02",
    ):
        assert client.get(path, headers={"X-API-Key": KEY}).status_code == 429, path


def test_all_keys_of_a_tenant_share_one_turn(busy: Flask) -> None:
    client, turns = busy.test_client(), busy.extensions["turns"]
    operators = {"X-API-Key": OTHER_KEY, "Scheduler-Tenant": "default"}
    turns.give_back(next(iter(turns.known)))

    def status(tenant: str, name: str) -> int:
        assert client.put(f"/api/v1/tenants/{tenant}", json={}, headers=operators).status_code < 300
        wanted = {"name": name, "scopes": ["read"], "tenant": tenant}
        key = client.post("/api/v1/keys", json=wanted, headers=operators).get_json()["key"]
        return client.post("/api/v1/schedules/preview", json=WHEN, headers={"X-API-Key": key}).status_code

    assert status("acme", "one") == 200
    assert turns.take("tenant acme")
    assert status("acme", "two") == 429
    turns.give_back("tenant acme")
    assert [status("acme", "three"), status("beta", "one"), status("default", "one")] == [200] * 3


def test_pages_share_with_the_key_that_signed_in(busy: Flask) -> None:
    outside = Outside(busy, STRANGER)
    outside.sign_in(KEY)
    for path in ("/calendar", "/go?to=x", "/tags?tag=x"):
        assert outside.client.get(path).status_code == 429, path
    assert outside.client.get("/schedules").status_code == 200


def test_the_overview_s_strip_takes_a_turn_and_nobody_waits_for_another_s(
    busy: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed_in = {key: Outside(busy, STRANGER) for key in (KEY, OTHER_KEY)}
    for key, outside in signed_in.items():
        outside.sign_in(key)
    path, turns = "/overview/now-and-next", busy.extensions["turns"]
    assert signed_in[KEY].client.get(path).status_code == 429
    turns.give_back(next(iter(turns.known)))
    read, answers = RunCalendars.read, list[int]()

    def read_beside(self: RunCalendars, *asked: Any, **how: Any) -> Any:
        monkeypatch.setattr(RunCalendars, "read", read)
        client = signed_in[KEY].client
        other = Thread(target=lambda: answers.append(client.get(path).status_code), daemon=True)
        other.start()
        other.join(PATIENCE_SECONDS)
        return read(self, *asked, **how)

    monkeypatch.setattr(RunCalendars, "read", read_beside)
    assert signed_in[OTHER_KEY].client.get(path).status_code == 200
    assert answers == [200]


def test_a_turn_ends_with_its_request_also_when_that_fails(busy: Flask) -> None:
    client, turns = busy.test_client(), busy.extensions["turns"]
    for body, status in ((WHEN, 200), ({"rrule": "nonsense"}, 422), ({}, 422)):
        given = client.post("/api/schedules/preview", json=body, headers={"X-API-Key": OTHER_KEY})
        assert given.status_code == status
    assert len(turns.known) == 1


def test_without_keys_each_address_has_its_share(make_api: Callable[..., Flask]) -> None:
    made = make_api(trusted_proxies="")
    assert made.extensions["turns"].take(STRANGER)
    made.extensions["turns"].take = lambda owner: owner != STRANGER
    assert Outside(made, STRANGER).client.post("/api/schedules/preview", json=WHEN).status_code == 429
    assert made.test_client().post("/api/schedules/preview", json=WHEN).status_code == 200
