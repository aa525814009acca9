"""Two tenants behind the same routes: each finds its own things under their plain names, and nothing of the
other's; no answer shows whose an id is. Each asks with a stored key of its own, and has signed in with it.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from scheduler_app.clock import clock
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from tests.integration.api.test_pages_access import sign_in

OWNER, STRANGER, KEY = "acme", "globex", "0123456789abcdef"
#: What the owner has, by the words before the names in paths.
NAMES = {"schedules": "nightly-mine", "tasks": "sweeper-mine", "destinations": "crm-mine"}
NAMES |= {"calendars": "closed-mine", "blackouts": "quiet-mine", "messages": "m1-mine"}
NAMES |= {"notifications": "ops-mine", "silences": "night-mine"}
LATER = "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY"
#: They show the whole deployment, or nothing that anybody has made.
OF_OPERATORS = ("/metrics", "/docs", "/swagger-ui", "/static", "/assets", "/echo", "/processes")
#: What some paths need beside the name.
QUERIES = {"/why": "?at=2040-01-01T00:00:00Z", "/days": "?from=2040-01-01&to=2040-02-01"}
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")

Become = Callable[[str], None]


@pytest.fixture
def become(client: FlaskClient) -> Become:
    """Says whose the requests are from then on."""

    def become(tenant: str) -> None:
        operators = {"X-API-Key": KEY, "Scheduler-Tenant": "default"}
        made = client.put(f"/api/v1/tenants/{tenant}", json={}, headers=operators)
        assert made.status_code in (200, 201), made.text
        wanted = {"name": "k", "scopes": ["read", "trigger", "write", "admin"], "tenant": tenant}
        answer = client.post("/api/v1/keys", json=wanted, headers=operators).get_json()
        client.environ_base["HTTP_X_API_KEY"] = answer["key"]
        client.delete_cookie("scheduler_session")
        assert sign_in(client, answer["key"]).status_code == 303

    return become


@pytest.fixture
def app(make_api: Callable[..., Flask]) -> Flask:
    return make_api(tasks_api=True, allowed_commands=("echo *",), api_keys=(KEY,))


def operations(app: Flask, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Every method and path of the URL map, with `names` by the words before them or by their parameters."""
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith(OF_OPERATORS):
            continue
        word = next((word for word in names if f"/{word}/<" in rule.rule), "")
        found = {each: names.get(each) or names.get(word) for each in _PARAMETER.findall(rule.rule)}
        if all(found.values()):
            path = _PARAMETER.sub(lambda match, found=found: found[match[1]], rule.rule)  # type: ignore[misc]
            yield from ((method, path) for method in sorted((rule.methods or set()) - {"OPTIONS"}))


def check_shows_no_tenant(answer: TestResponse, asked: str = "") -> None:
    """`asked` is a name in the request, which errors say again."""
    said = answer.text + "".join(f"{name}: {value}\n" for name, value in answer.headers)
    for each in (asked, quote(asked), quote(asked, safe="")) if asked else ():
        said = said.replace(each, "")
    for tenant in (OWNER, STRANGER, TENANT):
        assert not re.search(rf"\b{tenant}(:|%3A)(?=\w)", said), (answer.request.path, said[:3_000])


class World:
    """One of everything that people name, made by a tenant's requests, and one dead letter."""

    def __init__(self, client: FlaskClient, store: Store) -> None:
        self.client, self.names = client, dict(NAMES)
        put = ("PUT", "/api/v1/")
        self.made(*put, "destinations/crm-mine", url="http://127.0.0.1:9/", allowed_methods=["GET", "POST"])
        self.made(*put, "calendars/closed-mine", dates=[{"date": "2040-01-01"}])
        self.made(
            *put, "blackouts/quiet-mine", cron="0 22 * * *", duration_seconds=60, schedule="nightly-mine"
        )
        alerts = {"type": "webhook", "url": "http://127.0.0.1:9/alerts"}
        match = {"schedules": ["nightly-mine"], "destinations": ["crm-mine"]}
        self.made(*put, "notifications/ops-mine", to=[alerts], match=match)
        self.made(*put, "silences/night-mine", until="2040-01-01T00:00:00Z", reason="x", match=match)
        self.made(*put, "schedules/nightly-mine", name="x", destination="crm-mine", rrule=LATER, tags=["t"])
        self.made(
            *put, "schedules/nightly-mine", calendar="closed-mine", on_holiday="skip", on_failure="crm-mine"
        )
        post = ("POST", "/api/v1/")
        self.names["events"] = self.made(*post, "schedules/nightly-mine/trigger")["event_id"]
        self.made(*post, "messages", id="m1-mine", payload=1, destination="crm-mine", delay_seconds=9_000)
        self.made("POST", "/", "tasks", id="sweeper-mine", name="sweep", command="echo 1")
        feed = self.made(*post, "calendar-feeds", name="ops")
        self.names["feed_id"], self.token = feed["id"], feed["token"]
        self.names["key_id"] = self.made(*post, "keys", name="deploys-mine", scopes=["read"])["id"]
        self.made(*post, "schedules/nightly-mine/backfill", **{"from": "2020-01-01T00:00:00Z"})
        self.made(
            *post,
            "schedules/bulk",
            schedules=[{"id": "b", "name": "b", "destination": "crm-mine", "rrule": LATER}],
        )
        self.names["edit_id"] = self.made("GET", "/api/v1/", "schedules/nightly-mine/edits")["edits"][0]["id"]
        now = clock.now()
        ids = [f"{OWNER}:{self.names['events']}"]
        token, _ = store.claims.claim(ids, until=now, now=now, lease_seconds=60, worker="w")
        ended = OutcomeRecord(ids[0], token, State.ERROR, "over", None, {"number": 1, "error": "no"}, now)
        assert store.outcomes.record([ended]) == []
        self.made(*put, "kill-switch", destination="crm-mine")

    def made(self, method: str, root: str, path: str, **body: Any) -> dict[str, Any]:
        answer = self.client.open(root + path, method=method, json=None if method == "GET" else body)
        assert answer.status_code < 300, (path, answer.text)
        check_shows_no_tenant(answer)
        found: dict[str, Any] = answer.get_json()
        return found


def _missing(text: str, names: dict[str, str]) -> str:
    """The same with names that nothing has."""
    ids = {
        names["feed_id"]: "0" * 24,
        names["key_id"]: "0" * 12,
        names["edit_id"]: "1" * 24,
        "-mine": "-none",
    }
    for name, other in ids.items():
        text = text.replace(name, other)
    return text


def _documents(store: Store) -> dict[tuple[str, object], object]:
    names = set(store.mongo.db.list_collection_names()) - {"nodes", "cancel_requests"}
    found = {(name, row["_id"]): row for name in names for row in store.mongo.collection(name).find({})}
    for row in found.values():
        row.pop("last_used_at", None)
        row.pop("last_used_from", None)
    return dict(found)


def test_each_tenant_finds_its_own_things_and_nothing_of_the_other_s(
    client: FlaskClient, store: Store, become: Become
) -> None:
    become(OWNER)
    world = World(client, store)
    walked = list(operations(client.application, world.names))
    assert len({path for _, path in walked if "nightly-mine" in path}) > 15
    for method, path in walked:
        if method == "GET":
            answer = client.get(path + QUERIES.get(path[path.rindex("/") :], ""))
            check_shows_no_tenant(answer)
            named = any(name in path for name in world.names.values())
            assert answer.status_code == 200 or not named, (path, answer.text)
    become(STRANGER)
    before = _documents(store)
    for method, path in walked:
        # Read to its end, an answer in pieces holds no thread any more.
        asked, missing = (
            client.open(each, method=method, buffered=True) for each in (path, _missing(path, world.names))
        )
        check_shows_no_tenant(asked)
        if path != _missing(path, world.names):
            assert asked.status_code in (400, 401, 403, 404, 415, 422), (method, path, asked.text)
            assert asked.status_code == missing.status_code, (method, path, asked.text, missing.text)
            assert _missing(asked.text, world.names) == missing.text
        else:
            assert "-mine" not in asked.text, (path, asked.text)
    after = _documents(store)
    assert {key: after.get(key) for key in before} == before


def test_a_tenant_changes_its_own_things_by_every_route(
    client: FlaskClient, store: Store, become: Become
) -> None:
    for tenant in (STRANGER, OWNER):
        become(tenant)
        world = World(client, store) if tenant == OWNER else None
    assert world is not None
    event = f"/api/v1/events/{world.names['events']}"
    for method, path in (
        ("POST", "/api/v1/schedules/nightly-mine/pause"),
        ("POST", "/api/v1/schedules/nightly-mine/resume"),
        ("POST", "/api/v1/schedules/nightly-mine/signing-secret"),
        ("DELETE", "/api/v1/schedules/nightly-mine/signing-secret"),
        ("POST", f"/api/v1/schedules/nightly-mine/edits/{world.names['edit_id']}/revert"),
        ("DELETE", "/api/v1/schedules/nightly-mine/backfill"),
        ("POST", f"{event}/redrive"),
        ("POST", f"{event}/cancel"),
        ("POST", "/api/v1/messages/m1-mine/cancel"),
        ("POST", "/api/v1/destinations/crm-mine/pause"),
        ("POST", "/tasks/sweeper-mine/execute"),
        ("DELETE", "/tasks/sweeper-mine"),
        ("DELETE", "/api/v1/kill-switch?destination=crm-mine"),
        ("DELETE", "/api/v1/blackouts/quiet-mine"),
        ("POST", "/api/v1/notifications/ops-mine/test"),
        ("DELETE", "/api/v1/notifications/ops-mine"),
        ("DELETE", "/api/v1/silences/night-mine"),
        ("DELETE", f"/api/v1/calendar-feeds/{world.names['feed_id']}"),
        ("POST", f"/api/v1/keys/{world.names['key_id']}/rotate"),
        ("DELETE", f"/api/v1/keys/{world.names['key_id']}"),
        ("DELETE", "/api/v1/schedules/nightly-mine"),
        ("DELETE", "/api/v1/schedules/b"),
        ("DELETE", "/api/v1/calendars/closed-mine"),
        ("DELETE", "/api/v1/destinations/crm-mine"),
    ):
        answer = client.open(path, method=method, json={} if method == "POST" else None)
        check_shows_no_tenant(answer)
        assert answer.status_code < 300, (path, answer.text)


def test_filters_take_names(client: FlaskClient, store: Store, become: Become) -> None:
    become(OWNER)
    World(client, store)
    for path, found in (
        ("/api/v1/messages?destination=crm-mine", ("messages", 1)),
        ("/api/v1/events?schedule_id=nightly-mine&state=error", ("events", 1)),
        ("/api/v1/events?origin=destination%20crm-mine&state=error", ("events", 1)),
        ("/api/v1/events?tag=t&state=error", ("events", 1)),
    ):
        answer = client.get(path)
        check_shows_no_tenant(answer)
        assert len(answer.get_json()[found[0]]) == found[1], (path, answer.text)
    for body in ({"destination": "crm-mine"}, {"schedule_id": "nightly-mine"}):
        answer = client.post("/api/v1/backlog/expire", json=body | {"dry_run": True})
        assert answer.status_code == 200, answer.text
    page = client.get("/schedules?destination=crm-mine").text
    assert page.count('href="/schedules/') == 2
    assert (
        'href="/schedules/b"' in client.get("/calendar?destination=crm-mine&on=2040-01-01&view=agenda").text
    )
    assert 'href="/schedules/nightly-mine"' in client.get("/dead-letters").text


def test_a_feed_s_token_opens_its_tenant_s_calendar_alone(
    client: FlaskClient, store: Store, become: Become
) -> None:
    become(OWNER)
    world = World(client, store)
    become(STRANGER)
    opened = client.get(f"/api/v1/calendar.ics?token={world.token}")
    assert "UID:nightly-mine" in opened.text
    check_shows_no_tenant(opened)
    assert client.get(f"/api/v1/calendar.ics?token=globex.{world.token}").status_code == 401


@pytest.mark.parametrize("tenant", [TENANT, OWNER])
@pytest.mark.parametrize(
    "name", ["a:b", "acme:x", ":", "..", "a/b", "/", "\0", "x" * 300, "%2e%2e", "a%3Ab", "é", " "]
)
def test_a_name_that_nothing_can_have_is_refused_by_every_route(
    client: FlaskClient, become: Become, tenant: str, name: str
) -> None:
    become(tenant)
    names = dict.fromkeys(("id", "name", "edit_id", "feed_id", *NAMES, "events"), quote(name, safe=""))
    walked = [each for each in operations(client.application, names) if names["name"] in each[1]]
    assert len(walked) > 60
    for method, path in walked:
        body = {"name": "n", "callback_url": "http://127.0.0.1:9/", "rrule": "FREQ=DAILY"}
        for given in ({}, body):
            # Read to its end, a redirection holds no thread any more: a tenant's others would be refused.
            answer = client.open(
                path, method=method, json=given if method not in ("GET", "HEAD") else None, buffered=True
            )
            assert 400 <= answer.status_code < 500 or answer.status_code == 308, (method, path, answer.text)
            assert answer.status_code != 429, (method, path, answer.text)
            check_shows_no_tenant(answer, name)
