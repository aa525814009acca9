"""Two tenants, each with one thing of every kind: the stranger's keys try every route, and every text that a
parameter, a body or a form may hold, with the names of what the owner has.

Routes and texts are those of the specification and of the pages' forms: a new one is tried by itself.
Whatever the owner has is called `theirs`; nothing is called `nobody`. Both must be answered alike, no answer
may hold the owner's marker, and the owner's documents must be what they were.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from scheduler_app.api.blueprint import query_parameters
from scheduler_app.api.pages.times import relative, written
from scheduler_app.clock import clock
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.cause import Tally, failing_key
from scheduler_app.domain.ids import name_of, whole_id
from scheduler_app.domain.ledger import Account, LedgerLine, OutcomeCounts, hour_of
from scheduler_app.domain.person import Person
from scheduler_app.domain.redrive import Redrive
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from tests.drawn import SEED, drawn
from tests.integration.api.openapi import specification_of
from tests.integration.api.page_forms import form_token

OWNER, STRANGER, ROOT = "owner-co", "stranger-co", "0123456789abcdef"
THEIRS, NOBODY = "theirs", "nobody"
#: In every text of the owner's that is no name.
MARKER = "zanzibar"
LATER = "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY"
SCOPES = ("read", "trigger", "write", "admin")
#: What some operations need beside the text that is tried; `{}` for those that need nothing.
BODIES: dict[str, dict[str, Any]] = {
    "create_schedule": {"name": "n", "callback_url": "http://127.0.0.1:9/", "rrule": LATER},
    "create_schedules": {
        "schedules": [{"id": "s", "name": "n", "callback_url": "http://127.0.0.1:9/", "rrule": LATER}]
    },
    "update_schedule": {"name": "n", "callback_url": "http://127.0.0.1:9/", "rrule": LATER},
    "preview_rule": {"rrule": LATER},
    "schedule_message": {"callback_url": "http://127.0.0.1:9/", "delay_seconds": 9_000},
    "schedule_messages": {"messages": [{"callback_url": "http://127.0.0.1:9/", "delay_seconds": 9_000}]},
    "pause_schedules": {"tag": "t"},
    "resume_schedules": {"tag": "t"},
    "delete_schedules": {"tag": "t"},
    "put_calendar": {"dates": [{"date": "2040-01-01"}]},
    "put_destination": {"url": "http://127.0.0.1:9/"},
    "put_silence": {"until": "2040-01-01T00:00:00Z", "reason": "r"},
    "put_heartbeat": {"every_seconds": 3_600},
    "put_notification": {"to": [{"type": "webhook", "url": "http://127.0.0.1:9/"}]},
    "put_blackout": {"cron": "0 22 * * *", "duration_seconds": 60, "all": True},
    "redrive_events": {"limit": 1},
    "create_task": {"name": "n", "command": "echo 1"},
    "schedule_task": {"scheduled_at": "2040-12-01T15:00:00Z"},
    "create_key": {"name": "k", "scopes": ["read"]},
    "redeem_verifier": {"verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"},
    "end_sign_in": {"token": "rrp_x"},
    "create_calendar_feed": {"name": "f"},
    "turn_kill_switch_on": {"tag": "t"},
    "put_tenant": {"note": "n"},
}
#: What differs from one answer to the next: instants, ids that are drawn, secrets, form tokens.
_PASSING = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d| UTC)?|\d{8}T\d{6}(\d{3})?Z"
    r"|\b([A-Z][a-z]{2} \d{1,2} [A-Z][a-z]{2}( \d{4})? )?\d\d:\d\d(:\d\d(\.\d{3})?)?\b"
    r"|msg_[0-9a-f]{24}|\b[0-9a-f]{12,64}\b|\b[0-9a-z]{12}\b|whsec_[\w+/=]+|rrs_\w+|\d+(\.\d+)? ?(ms|s)\b"
    r"|[\w-]{43}|\d+ bytes"
    r"|\b(in )?\d+ (second|minute|hour|day)s?( ago)?\b|\b(just )?now\b"
)
#: They show the whole installation, to its own keys alone, or nothing that anybody has made.
OPEN = ("/docs", "/swagger-ui", "/static", "/assets", "/echo", "/favicon.ico", "/ping/")


@dataclass
class World:
    """What the owner has: ids that are drawn, by the names of parameters, and the tokens that open them."""

    ids: dict[str, str] = field(default_factory=dict)
    cursors: list[str] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)


@pytest.fixture
def app(make_api: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch) -> Flask:
    return make_api(tasks_api=True, allowed_commands=("echo *",), api_keys=(ROOT,))


def key_of(client: FlaskClient, tenant: str, *scopes: str) -> str:
    root = {"X-API-Key": ROOT}
    assert client.put(f"/api/v1/tenants/{tenant}", json={}, headers=root).status_code in (200, 201)
    wanted = {"name": "k", "scopes": scopes or SCOPES, "tenant": tenant}
    key: str = client.post("/api/v1/keys", json=wanted, headers=root).get_json()["key"]
    return key


def make_world(client: FlaskClient, store: Store, key: str) -> World:
    """One of everything that people name, called `theirs`, with the marker in each text."""

    def made(method: str, path: str, **body: Any) -> dict[str, Any]:
        root = "" if path.startswith("/") else "/api/v1/"
        headers = {"X-API-Key": key} | ({"Idempotency-Key": path} if method == "POST" else {})
        answer = client.open(root + path, method=method, json=body or None, headers=headers)
        assert answer.status_code < 300, (path, answer.text)
        found: dict[str, Any] = answer.get_json()
        return found

    url, world = f"http://127.0.0.1:9/{MARKER}", World()
    made("PUT", "destinations/theirs", url=url, headers={"X-Note": MARKER}, allowed_methods=["GET", "POST"])
    made("PUT", "calendars/theirs", dates=[{"date": "2040-01-01", "name": MARKER}])
    made("PUT", "blackouts/theirs", cron="0 22 * * *", duration_seconds=60, tag=THEIRS, note=MARKER)
    match = {"schedules": [THEIRS], "destinations": [THEIRS], "tags": [THEIRS, MARKER]}
    made("PUT", "notifications/theirs", to=[{"type": "webhook", "url": url}], match=match)
    made("PUT", "silences/theirs", until="2040-01-01T00:00:00Z", reason=MARKER, match=match)
    heartbeat = made("PUT", "heartbeats/theirs", every_seconds=3_600, note=MARKER)
    schedule = {"name": MARKER, "tags": [THEIRS, MARKER], "rrule": LATER, "on_failure": THEIRS}
    schedule |= {"destination": THEIRS, "body": MARKER, "calendar": THEIRS, "on_holiday": "skip"}
    made("PUT", "schedules/theirs", **schedule)
    made("PUT", "schedules/theirs", **schedule | {"name": f"{MARKER} again"})
    event = made("POST", "schedules/theirs/trigger")["event_id"]
    message = {"payload": MARKER, "event_name": THEIRS, "metadata": {"m": MARKER}, "destination": THEIRS}
    made("POST", "messages", id=THEIRS, delay_seconds=9_000, **message)
    many = [message | {"id": f"{THEIRS}-{number}", "delay_seconds": 9_000} for number in range(2)]
    made("POST", "messages/bulk", messages=many)
    made("POST", "/tasks", id="their-task", name=MARKER, command=f"echo {MARKER}")
    feed = made("POST", "calendar-feeds", name=MARKER, tag=THEIRS)
    own = made("POST", "keys", name=MARKER, scopes=["read"])
    made("PUT", "kill-switch", tag=THEIRS, note=MARKER)
    made("POST", "schedules/theirs/backfill", **{"from": "2020-01-01T00:00:00Z"})
    now = clock.now()
    whole = f"{OWNER}:{event}"
    token, _ = store.claims.claim([whole], until=now, now=now, lease_seconds=60, worker="w")
    failure = {"number": 1, "error": MARKER, "response": MARKER}
    assert store.outcomes.record([OutcomeRecord(whole, token, State.ERROR, MARKER, None, failure, now)]) == []
    tally = Tally(failing_key(whole, url, 500, MARKER), now, now, dead=1)
    [cause] = store.causes.touch([tally])
    redrive = Redrive(id=whole_id(OWNER, "9" * 16), cause=None, before=now, next_due_at=now, started_at=now)
    assert store.redrives.start(redrive)
    line = LedgerLine(OWNER, 1, hour_of(now), 1, now, Account(OutcomeCounts(owed=77_777, open=1)))
    assert store.ledger.append(line.sealed())
    person = Person(whole_id(OWNER, "p" * 24), MARKER, frozenset(KeyScope), now, now, name=MARKER)
    store.people.seen(person)
    world.ids = {
        "person_id": name_of(person.id),
        "event_id": event,
        "failure_id": name_of(cause.id),
        "redrive_id": name_of(redrive.id),
        "feed_id": feed["id"],
        "key_id": own["id"],
        "edit_id": made("GET", "schedules/theirs/edits")["edits"][0]["id"],
        "task_id": "their-task",
        "deletion_id": "4k2m9x0p7q1z",
    }
    world.tokens = {"feed": feed["token"], "key": own["key"], "ping": heartbeat.get("url", "")}
    for path in ("messages?limit=1", "edits?limit=1"):
        if cursor := made("GET", path).get("next_cursor"):
            world.cursors.append(cursor)
    assert world.cursors
    return world


# -- what the specification says ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    name: str
    path_parameters: tuple[str, ...]
    query: Mapping[str, Any]
    body: Any
    """The schema of its body; None without one."""


def operations(specification: dict[str, Any]) -> Iterator[Operation]:
    for path, found in specification["paths"].items():
        shared = found.get("parameters", [])
        for method, operation in found.items():
            if method == "parameters":
                continue
            given = [_resolved(specification, each) for each in [*shared, *operation.get("parameters", [])]]
            body = (
                operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            )
            yield Operation(
                method.upper(),
                path,
                operation["operationId"],
                tuple(dict.fromkeys(each["name"] for each in given if each["in"] == "path")),
                {each["name"]: each.get("schema", {}) for each in given if each["in"] == "query"},
                body,
            )


def _resolved(specification: dict[str, Any], node: Any) -> Any:
    while isinstance(node, dict) and "$ref" in node:
        found: Any = specification
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node


def texts(specification: dict[str, Any], schema: Any, depth: int = 0) -> Iterator[tuple[str | int, ...]]:
    """Where a body may hold a text that is no word of a list and no instant: paths of names, 0 an item."""
    schema = _resolved(specification, schema)
    if not isinstance(schema, dict) or depth > 4:
        return
    for each in (*schema.get("allOf", ()), *schema.get("oneOf", ()), *schema.get("anyOf", ())):
        yield from texts(specification, each, depth + 1)
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "string" in kinds and "enum" not in schema and schema.get("format") not in ("date-time", "date"):
        yield ()
    if "array" in kinds:
        yield from ((0, *rest) for rest in texts(specification, schema.get("items"), depth + 1))
    for name, inner in schema.get("properties", {}).items():
        yield from ((name, *rest) for rest in texts(specification, inner, depth + 1))


def with_text(body: dict[str, Any], where: tuple[str | int, ...], text: str) -> dict[str, Any]:
    """The body with the text in that place; what is on the way there is made, or kept."""

    def put(node: Any, rest: tuple[str | int, ...]) -> Any:
        if not rest:
            return text
        first, others = rest[0], rest[1:]
        if first == 0:
            inner = node[0] if isinstance(node, list) and node else None
            return [put(inner, others)]
        known = dict(node) if isinstance(node, dict) else {}
        return known | {first: put(known.get(first), others)}

    found: dict[str, Any] = put(body, where)
    return found


# -- how answers are compared -------------------------------------------------------------------------------


def same(text: str, names: Iterable[str]) -> str:
    """Without the names that were asked for, and what differs from one answer to the next."""
    for name in sorted({*names}, key=len, reverse=True):
        for form in (name, quote(name, safe="")):
            text = text.replace(form, "…")
    return _PASSING.sub("~", text)


class Attack:
    """Asks the same twice, by a name of the owner's and by one that nothing has."""

    def __init__(self, client: FlaskClient, headers: Mapping[str, str]) -> None:
        self.client, self.headers = client, dict(headers)
        self.tried = 0
        self.found: list[str] = []
        self.statuses: dict[str, set[int]] = {}

    def ask(self, method: str, path: str, body: Any = None, form: Any = None) -> TestResponse:
        given: dict[str, Any] = {"json": body} if body is not None else {}
        if form is not None:
            given = {"data": form}
        return self.client.open(path, method=method, headers=self.headers, **given)

    def both(
        self,
        what: str,
        ask: Callable[[str], TestResponse],
        pairs: Iterable[tuple[str, str]],
        names: Iterable[str] = (),
    ) -> None:
        """`names` are asked for, too, and stand in errors."""
        for theirs, nobody in pairs:
            self.tried += 1
            first, second = ask(theirs), ask(nobody)
            self.statuses.setdefault(what, set()).add(first.status_code)
            asked = (theirs, nobody, THEIRS, NOBODY, *names)
            if MARKER in first.text + str(first.headers):
                self.found.append(f"{what} with {theirs}: shows the marker: {_around(first.text)}")
            elif first.status_code >= 500:
                self.found.append(f"{what} with {theirs}: {first.status_code} {first.text[:300]}")
            elif first.status_code != second.status_code:
                said = f"{first.status_code} {first.text[:300]} and {second.status_code} {second.text[:300]}"
                self.found.append(f"{what} with {theirs}: {said}")
            elif difference := _difference(same(first.text, asked), same(second.text, asked)):
                self.found.append(f"{what} with {theirs}: {difference}")


def _difference(first: str, second: str) -> str | None:
    if first == second:
        return None
    at = next(
        (number for number, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]),
        min(len(first), len(second)),
    )
    return f"{first[max(0, at - 80) : at + 120]!r} and {second[max(0, at - 80) : at + 120]!r}"


def _around(text: str) -> str:
    at = text.index(MARKER)
    return text[max(0, at - 200) : at + 100]


def documents(store: Store) -> dict[tuple[str, str], Any]:
    """What the owner has."""
    names = set(store.mongo.db.list_collection_names(filter={"type": "collection"}))
    found = {}
    for name in sorted(names - {"nodes", "partitions", "outbox"}):
        for row in store.mongo.db[name].find({}):
            if OWNER in str(row) or MARKER in str(row):
                found[name, str(row["_id"])] = {
                    key: value for key, value in row.items() if not key.startswith("last_used")
                }
    return found


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def world(client: FlaskClient, store: Store) -> World:
    return make_world(client, store, key_of(client, OWNER))


@pytest.fixture
def specification(client: FlaskClient) -> dict[str, Any]:
    return specification_of(client)


def pairs_of(parameter: str, world: World) -> list[tuple[str, str]]:
    """Names of the owner's for a parameter, each with one of the same kind that nothing has."""
    if parameter in world.ids:
        known = world.ids[parameter]
        other = known.replace(THEIRS, NOBODY).replace("their-", "nobody-")
        return [
            (known, other if other != known else _other(known)),
            (f"{OWNER}:{known}", f"{OWNER}:x{known}"),
        ]
    assert not parameter.endswith("_id") or parameter in ("schedule_id", "message_id"), (
        f"{parameter}: nothing of the owner's is known for it; give World.ids one"
    )
    if parameter == "cursor":
        return [(each, each) for each in world.cursors]
    if parameter == "token":
        # The whole token opens the calendar: that is its purpose.
        wrong, nothing = _other(world.tokens["feed"]), _other(world.ids["feed_id"])
        return [(wrong, wrong.replace(world.ids["feed_id"], nothing)), (world.tokens["key"], "rrs_x")]
    return [(THEIRS, NOBODY), (f"{OWNER}:{THEIRS}", f"{OWNER}:{NOBODY}")]


def _other(text: str) -> str:
    """One of the same form that nothing has."""
    return text[:-4] + "".join("1" if each != "1" else "2" for each in text[-4:])


def filled(path: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: quote(values[match[1]], safe=""), path)


def attack_paths(attack: Attack, found: Iterable[Operation], world: World) -> None:
    for each in found:
        if not each.path_parameters or each.path.startswith(OPEN):
            continue
        kinds = {name: pairs_of(name, world) for name in each.path_parameters}
        for number in range(2):
            both = [
                {name: pairs[min(number, len(pairs) - 1)][side] for name, pairs in kinds.items()}
                for side in (0, 1)
            ]
            body = BODIES.get(each.name, {}) if each.body is not None else None
            query = "?dry_run=true" if each.method != "GET" else _needed(each)
            paths = [f"{filled(each.path, values)}{query}" for values in both]

            def ask(path: str, each: Operation = each, body: Any = body) -> TestResponse:
                return attack.ask(each.method, path, body)

            names = [name for values in both for name in values.values()]
            attack.both(f"{each.method} {each.path}", ask, [(paths[0], paths[1])], names)


#: Queries without which some routes answer nothing but that they are missing.
_QUERIES = {"/why": "?at=2040-01-01T00:00:00Z", "/days": "?from=2040-01-01&to=2040-02-01"}


def _needed(operation: Operation) -> str:
    return _QUERIES.get(operation.path[operation.path.rindex("/") :], "")


def test_how_long_ago_something_was_or_when_it_will_be_is_no_difference() -> None:
    now, seconds = clock.now(), (-90_000, -3_600, -61, -1, 0, 1, 60, 3_599, 86_400)
    shown = {same(f"<p>· {relative(now + timedelta(seconds=each), now)}.</p>", ()) for each in seconds}
    assert len(shown) == 1


def test_at_which_time_of_which_day_something_is_is_no_difference() -> None:
    now = datetime(2026, 11, 30, 23, 59, 59, 7_000, tzinfo=UTC)
    shown = {
        same(f"<td>{text}</td>", ())
        for moment in (now, now.replace(microsecond=0), now + timedelta(seconds=1), now + timedelta(days=40))
        # Without the day where that is today, as `times.short`.
        for text in (written(moment, now), written(moment, now, seconds=True), f"{moment:%H:%M}")
    }
    assert len(shown) == 1


@pytest.mark.timeout(600)  # thousands of requests
def test_no_route_shows_or_changes_what_is_another_tenant_s(
    client: FlaskClient, store: Store, world: World, specification: dict[str, Any]
) -> None:
    found = list(operations(specification))
    assert len(found) > 100
    before = documents(store)
    assert len({name for name, _ in before}) >= 18
    attack = Attack(client, {"X-API-Key": key_of(client, STRANGER)})
    # Every id in a path.
    attack_paths(attack, found, world)
    # Every text in a query.
    for each in found:
        if each.path.startswith(OPEN) or set(each.path_parameters) - {"name", "schedule_id"}:
            continue
        path = filled(each.path, dict.fromkeys(each.path_parameters, NOBODY))
        for name, schema in each.query.items():
            schema = _resolved(specification, schema)
            if list(texts(specification, schema)) == []:
                continue
            dry = {"dry_run": "true"} if each.method != "GET" else {}

            def ask(value: str, each: Operation = each, path: str = path, name: str = name) -> TestResponse:
                query = urlencode({name: value} | dry)  # noqa: B023 (asked at once)
                needed = _needed(each).removeprefix("?")
                return attack.ask(each.method, f"{path}?{query}&{needed}".rstrip("&"))

            attack.both(f"{each.method} {each.path}?{name}", ask, pairs_of(name, world))
    # Every text in a body, as a dry run.
    for each in found:
        if each.body is None or each.path.startswith(OPEN):
            continue
        path = filled(each.path, dict.fromkeys(each.path_parameters, "mine"))
        base = BODIES.get(each.name, {})
        for where in dict.fromkeys(texts(specification, each.body)):

            def by_body(
                value: str, each: Operation = each, path: str = path, where: Any = where
            ) -> TestResponse:
                return attack.ask(each.method, f"{path}?dry_run=true", with_text(base, where, value))  # noqa: B023

            attack.both(f"{each.method} {each.path} {'.'.join(map(str, where))}", by_body, [(THEIRS, NOBODY)])
    assert not attack.found, "\n\n".join(attack.found[:20])
    assert attack.tried > 400
    assert documents(store) == before


def test_no_write_by_the_owner_s_names_changes_what_it_has(
    client: FlaskClient, store: Store, world: World, specification: dict[str, Any]
) -> None:
    """The same as real writes: what the stranger makes under these names is its own."""
    before = documents(store)
    attack = Attack(client, {"X-API-Key": key_of(client, STRANGER), "Idempotency-Key": THEIRS})
    writes = [
        each for each in operations(specification) if each.method != "GET" and each.path[:6] != "/ping/"
    ]
    writes = [each for each in writes if each.name != "revoke_leaked_key"]
    for each in writes:
        values = {name: pairs_of(name, world)[0][0] for name in each.path_parameters}
        for body in [BODIES.get(each.name, {}), *({} if each.body is None else _names(each.name))]:
            answer = attack.ask(
                each.method, filled(each.path, values), body if each.body is not None else None
            )
            assert MARKER not in answer.text, (each, answer.text)
            assert answer.status_code < 500, (each, answer.text)
    assert documents(store) == before


def _names(operation: str) -> Iterator[dict[str, Any]]:
    """Bodies that name what the owner has."""
    base = BODIES.get(operation, {})
    for name in ("id", "destination", "calendar", "schedule_id", "tag", "on_failure", "origin", "cause"):
        yield base | {name: THEIRS}


def test_every_scope_alone_is_refused_or_finds_nothing(
    client: FlaskClient, store: Store, world: World, specification: dict[str, Any]
) -> None:
    found = list(operations(specification))
    before = documents(store)
    for scope in SCOPES:
        attack = Attack(client, {"X-API-Key": key_of(client, STRANGER, scope)})
        attack_paths(attack, found, world)
        assert not attack.found, (scope, "\n\n".join(attack.found[:20]))
    assert documents(store) == before


def test_another_tenant_s_name_in_the_header_is_refused_like_any(
    client: FlaskClient, world: World, specification: dict[str, Any]
) -> None:
    key = key_of(client, STRANGER)
    for each in operations(specification):
        if each.path.startswith(
            (*OPEN, "/health", "/readyz", "/api/v1/keys/revoke-leaked", "/api/v1/sign-in")
        ):
            continue
        path = filled(each.path, {name: pairs_of(name, world)[0][0] for name in each.path_parameters})
        said = []
        for tenant in (OWNER, "none-such"):
            headers = {"X-API-Key": key, "Scheduler-Tenant": tenant}
            answer = client.open(path, method=each.method, headers=headers)
            said.append((answer.status_code, answer.text))
        assert said[0] == said[1], each
        assert said[0][0] in (403, 401), (each, said[0])


def test_tokens_open_nothing_else(client: FlaskClient, store: Store, world: World) -> None:
    """A receiver's token, and an Idempotency-Key, are the owner's own."""
    before = documents(store)
    key = key_of(client, STRANGER)
    own = {"name": "n", "callback_url": "http://127.0.0.1:9/", "rrule": LATER}
    for path, body in (
        ("/api/v1/messages", BODIES["schedule_message"] | {"id": THEIRS}),
        ("/api/v1/schedules/theirs/trigger", None),
        ("/api/v1/keys", {"name": MARKER.upper(), "scopes": ["read"]}),
        ("/api/v1/schedules", own),
    ):
        headers = {"X-API-Key": key, "Idempotency-Key": path.removeprefix("/api/v1/")}
        answer = client.post(path, json=body, headers=headers)
        assert "Idempotent-Replayed" not in answer.headers, path
        assert MARKER not in answer.text
    for ending in ("complete", "fail"):
        said = []
        for event in (world.ids["event_id"], _other(world.ids["event_id"])):
            headers = {"X-Scheduler-Completion-Token": "guessed"}
            path = f"/api/v1/events/{quote(f'{OWNER}:{event}', safe='')}/{ending}"
            answer = client.post(path, headers=headers)
            said.append((answer.status_code, same(answer.text, [event])))
        assert said[0] == said[1]
        assert said[0][0] in (401, 403, 404)
    assert documents(store) == before


@pytest.mark.timeout(600)  # thousands of requests
@pytest.mark.parametrize(
    "share",
    [
        pytest.param(4, id=f"a part of the texts, drawn by {SEED}"),
        pytest.param(1, id="all texts", marks=pytest.mark.long),
    ],
)
def test_no_page_and_no_form_shows_or_changes_what_is_another_tenant_s(
    app: Flask, client: FlaskClient, store: Store, world: World, share: int
) -> None:
    """Every path, and one in `share` of the texts of queries and forms."""
    key = key_of(client, STRANGER)
    browser = app.test_client()
    token = form_token(browser, "/sign-in")
    signed_in = browser.post("/sign-in", data={"form_token": token, "key": key, "next": ""})
    assert signed_in.status_code == 303
    token = form_token(browser, "/schedules/new")
    before = documents(store)
    attack = Attack(browser, {})
    texts: list[tuple[str, Callable[[str], TestResponse], list[tuple[str, str]]]] = []
    for rule in app.url_map.iter_rules():
        blueprint, _, name = rule.endpoint.partition(".")
        if blueprint != "pages" or name in ("static", "sign_out", "sign_in", "begin_session"):
            continue
        view = app.view_functions[rule.endpoint]
        parameters = [re.sub(r"\W", "", each.split(":")[-1]) for each in re.findall(r"<([^>]+)>", rule.rule)]
        path = re.sub(r"<(?:[^:>]+:)?(\w+)>", r"{\1}", rule.rule)
        fields = [
            name
            for where, schema in getattr(view, "declared_arguments", ())
            if where == "form"
            for name in schema.load_fields
        ]
        methods = (rule.methods or set()) & {"GET", "POST"}
        for method in sorted(methods):
            form = {"form_token": token} if method == "POST" else None

            values = [{each: pairs_of(each, world)[0][side] for each in parameters} for side in (0, 1)]
            paths = [filled(path, each) for each in values]

            def by_path(asked: str, method: str = method, form: Any = form) -> TestResponse:
                return attack.ask(method, asked, form=form)

            if parameters:
                names = [name for each in values for name in each.values()]
                attack.both(f"{method} {rule.rule}", by_path, [(paths[0], paths[1])], names)
            nobody = paths[1]
            for name in query_parameters(view):

                def by_query(
                    value: str, name: str = name, method: str = method, path: str = nobody, form: Any = form
                ) -> TestResponse:
                    return attack.ask(method, f"{path}?{urlencode({name: value})}", form=form)

                texts.append((f"{method} {rule.rule}?{name}", by_query, pairs_of(name, world)[:1]))
            for name in fields if method == "POST" else ():

                def by_form(
                    value: str, name: str = name, method: str = method, path: str = nobody
                ) -> TestResponse:
                    return attack.ask(method, path, form={"form_token": token, name: value})

                texts.append((f"{method} {rule.rule} {name}", by_form, pairs_of(name, world)[:1]))
    assert len(texts) > 200
    for text in drawn(texts, "pages", share):
        attack.both(*text)
    assert not attack.found, f"with FAULTS_SEED={SEED}:\n" + "\n\n".join(attack.found[:20])
    assert attack.tried > 100
    assert documents(store) == before
