"""A key with tags sees and changes the schedules with one of them, and nothing else; each route is walked."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.api.narrowing import NARROWINGS, Narrowing, check_narrowings
from scheduler_app.clock import clock
from scheduler_app.domain.ids import TENANT
from scheduler_app.store import Store
from tests.integration.api.page_forms import form_token
from tests.integration.api.test_failures import fail
from tests.integration.api.test_pages_access import sign_in
from tests.integration.api.test_stored_keys import ROOT, by, make

SCOPES = ["read", "trigger", "write", "admin"]
OURS, THEIRS = "customer:acme", "customer:globex"
LATER = "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY"
RECEIVER = "http://127.0.0.1:9/"
#: Every rule of the application, those of open paths and of sessions aside.
_OPEN = ("/health", "/readyz", "/docs/", "/swagger", "/echo", "/ping/", "/assets/", "/static/", "/sign-")
_NAME = re.compile(r"<(?:[^:>]+:)?(\w+)>")
_QUERIES = {
    "/why": "?at=2040-01-01T00:00:00Z",
    "/days": "?from=2040-01-01&to=2040-02-01",
    "/search": "?q=nightly",
    "/figures": "?bucket=3600",
}


@pytest.fixture
def app(make_api: Callable[..., Flask]) -> Flask:
    return make_api(api_keys=(f"root:{ROOT}",), tasks_api=True, allowed_commands=("echo *",))


@pytest.fixture
def client(app: Flask, store: Store) -> FlaskClient:
    """Two schedules, an event of each, a failure of both and one of the other alone, and what else names the
    other tag. It shows a key of one tag."""
    client = app.test_client()
    for tag, name in ((OURS, "acme-nightly"), (THEIRS, "globex-nightly")):
        body = {"id": name, "name": name, "callback_url": RECEIVER, "rrule": LATER, "tags": [tag]}
        assert client.post("/api/v1/schedules", json=body, headers=by(ROOT)).status_code == 201
        assert client.post(f"/api/v1/schedules/{name}/trigger", headers=by(ROOT)).status_code < 300
    stop = {"tag": THEIRS, "note": "globex is stopped"}
    assert client.put("/api/v1/kill-switch", json=stop, headers=by(ROOT)).status_code < 300
    blackout = {"tag": THEIRS, "cron": "0 * * * *", "duration_seconds": 60, "policy": "skip"}
    assert client.put("/api/v1/blackouts/globex-quiet", json=blackout, headers=by(ROOT)).status_code == 201
    message = {"id": "globex-m", "event_name": "globex", "callback_url": RECEIVER, "delay_seconds": 9_000}
    assert client.post("/api/v1/messages", json=message, headers=by(ROOT)).status_code == 201
    now = clock.now()
    for schedule, status, tag in (
        ("acme-nightly", 500, OURS),
        ("globex-nightly", 500, THEIRS),
        ("globex-nightly", 404, THEIRS),
    ):
        fail(store, schedule, now, status=status, tags=(tag,))
        now += timedelta(seconds=1)
    key = make(client, scopes=SCOPES, tags=[OURS])
    assert key["tags"] == [OURS]
    client.environ_base["HTTP_X_API_KEY"] = key["key"]
    assert sign_in(client, key["key"]).status_code == 303
    return client


def events_of(store: Store, schedule: str) -> list[str]:
    return [str(row["_id"]) for row in store.mongo.collection("events").find({"schedule_id": schedule})]


def failures_of(client: FlaskClient) -> list[str]:
    """The ids of the failure that both share, and of that of the other alone."""
    found = client.get("/api/v1/failures", headers=by(ROOT)).get_json()["failures"]
    return [each["id"] for each in sorted(found, key=lambda each: each["since"])]


#: What these open is what their bodies hold; the key is not looked at.
NEED_NO_SCOPE = ("keys.revoke_leaked_key", "sign-in.redeem_verifier", "sign-in.end_sign_in")


def paths(app: Flask, **names: str) -> list[tuple[str, str, str]]:
    """Endpoint, method and path of each rule; `names` by parameter, others are of nothing that there is."""
    found = []
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith(_OPEN) or rule.endpoint in NEED_NO_SCOPE:
            continue
        path = _NAME.sub(lambda match: names.get(match[1], "none-such"), rule.rule)
        path += next((query for end, query in _QUERIES.items() if path.endswith(end)), "")
        found += [(rule.endpoint, method, path) for method in sorted((rule.methods or set()) - {"OPTIONS"})]
    assert len(found) > 150
    return found


def ask(client: FlaskClient, endpoint: str, method: str, path: str) -> Any:
    if method in ("GET", "HEAD"):
        return client.open(path, method=method)
    if endpoint.startswith("pages."):
        return client.post(path, data={"form_token": form_token(client, "/you")})
    return client.open(path, method=method, json={})


def test_what_no_row_of_the_table_narrows_is_refused(client: FlaskClient, app: Flask) -> None:
    refused = 0
    for endpoint, method, path in paths(app):
        if endpoint in NARROWINGS or endpoint == "pages.overview":
            continue
        answer = ask(client, endpoint, method, path)
        assert answer.status_code == 403, (endpoint, method, path, answer.text[:300])
        assert method == "HEAD" or OURS in answer.text, (endpoint, method, path, answer.text[:300])
        refused += 1
    assert refused > 80


def test_nothing_of_another_tag_is_shown_by_any_route(client: FlaskClient, app: Flask, store: Store) -> None:
    shown = 0
    shared, only_theirs = failures_of(client)
    for schedule, failure in (("globex-nightly", only_theirs), ("acme-nightly", shared)):
        theirs = events_of(store, "globex-nightly")[0]
        names = {
            "schedule_id": schedule,
            "event_id": events_of(store, schedule)[0],
            "failure_id": failure,
        }
        for endpoint, method, path in paths(app, **names):
            if endpoint not in NARROWINGS or method != "GET":
                continue
            for query in ("", f"tag={OURS}&schedule_id=globex-nightly", f"tag={THEIRS}"):
                if query and NARROWINGS[endpoint] not in (Narrowing.TAG, Narrowing.TAG_OR_SCHEDULE):
                    continue
                mark = "&" if "?" in path else "?"
                answer = client.get(path + (mark + query if query else ""))
                asked = [each for each in (theirs, "globex-nightly", THEIRS) if each in path + query]
                said = answer.text
                for each in (*asked, *(each.replace(":", "%3A") for each in asked)):
                    said = said.replace(each, "")
                assert "globex" not in said, (endpoint, path, query, said[:2_000])
                shown += answer.status_code == 200
    assert shown > 20
    for path in (
        *("/api/v1/schedules", "/api/v1/schedules/export", "/api/v1/events", "/schedules", "/events"),
        *("/api/v1/failures", f"/api/v1/failures/{shared}", "/api/v1/search?q=nightly"),
        "/api/v1/tags/summary",
    ):
        assert "acme-nightly" in client.get(path).text, path


def test_what_has_another_tag_answers_as_what_does_not_exist(
    client: FlaskClient, app: Flask, store: Store
) -> None:
    theirs = events_of(store, "globex-nightly")[0]
    _, failure = failures_of(client)
    of_path, walked = (Narrowing.SCHEDULE, Narrowing.EVENT, Narrowing.TAGS), 0
    before = [
        store.mongo.collection(name).find_one({"_id": each})
        for name, each in (("schedules", "globex-nightly"), ("events", theirs))
    ]
    foreign = paths(app, schedule_id="globex-nightly", event_id=theirs, failure_id=failure)
    for (endpoint, method, path), (_, _, nothing) in zip(foreign, paths(app), strict=True):
        if NARROWINGS.get(endpoint) not in of_path or method == "PUT":
            continue
        answers = [ask(client, endpoint, method, each) for each in (path, nothing)]
        texts = [
            answer.text.replace(theirs, "none-such")
            .replace("globex-nightly", "none-such")
            .replace(failure, "none-such")
            for answer in answers
        ]
        assert [each.status_code for each in answers] == [404, 404], (endpoint, method, texts)
        assert texts[0] == texts[1], (endpoint, method)
        walked += 1
    assert walked > 20
    taken = client.put("/api/v1/schedules/globex-nightly", json={"name": "n"})
    assert (taken.status_code, "is taken" in taken.text) == (409, True)
    assert client.get("/api/v1/events/globex-m").status_code == 404
    after = [
        store.mongo.collection(name).find_one({"_id": each})
        for name, each in (("schedules", "globex-nightly"), ("events", theirs))
    ]
    assert after == before


def test_of_a_failure_that_others_share_it_shows_what_its_own_schedules_say(client: FlaskClient) -> None:
    shared, _ = failures_of(client)
    whole = client.get(f"/api/v1/failures/{shared}", headers=by(ROOT)).get_json()
    assert (whole["events"]["failed"], whole["schedules"]["count"]) == (2, 2)
    assert whole["error"] == "status 500 for globex-nightly"
    [listed] = client.get("/api/v1/failures").get_json()["failures"]
    [of_tag] = client.get(f"/api/v1/tags/summary?tag={OURS}").get_json()["failures"]
    own = client.get(f"/api/v1/failures/{shared}").get_json()
    assert own | listed == own | of_tag == own
    assert own["events"] == {"failed": 1, "gave_up": 1, "waiting": 0, "dead_letters": 1}
    assert own["schedules"] == {"count": 1, "exact": True, "names": ["acme-nightly"]}
    assert own["tags"] == {"count": 1, "exact": True, "names": [OURS]}
    assert "1 schedule; 1 event failed for good" in own["message"]
    assert {each["schedule_id"] for each in own["newest_events"]} == {"acme-nightly"}
    assert (own["trend"], "error" in own, "event_id" in own) == ([], False, False)
    done = client.post(f"/api/v1/failures/{shared}/dismiss", json={})
    assert done.status_code == 403


def test_it_sees_the_forecast_the_figures_and_what_is_found_of_its_schedules(
    client: FlaskClient, store: Store
) -> None:
    def shown(path: str, key: str | None = None) -> Any:
        answer = client.get(f"/api/v1/{path}", headers=by(key) if key else {})
        assert answer.status_code == 200, answer.text
        return answer.get_json()

    assert (shown("forecast", ROOT)["count"], shown("forecast")["count"]) == (1, 0)  # a message
    new_year = "forecast?from=2039-12-31T00:00:00Z&to=2040-01-02T00:00:00Z"
    whole, own = shown(new_year, ROOT), shown(new_year)
    assert (own["count"], own["sources"]["rules"]) == (1, 1)
    assert (whole["blackouts"]["skipped"], own["blackouts"]["skipped"]) == (1, 0)
    assert shown(f"{new_year}&tag={OURS}", ROOT) == own
    assert [each["id"] for each in shown("search?q=NIGHTLY")["schedules"]] == ["acme-nightly"]
    assert shown("search?q=customer")["tags"] == [{"tag": OURS, "schedules": 1}]
    events = {each["id"] for each in shown("search?q=acme")["events"]}
    assert events == set(events_of(store, "acme-nightly"))
    for each in events:
        assert [row["id"] for row in shown(f"search?q={each[:-2]}")["events"]] == [each]
    assert shown(f"search?q={events_of(store, 'globex-nightly')[0]}")["events"] == []
    parts = shown("figures?schedule_id=acme-nightly")["buckets"]
    assert sum(part["error"] for part in parts[-2:]) == 1, "an hour may have ended meanwhile"
    assert client.get("/api/v1/figures?schedule_id=globex-nightly").status_code == 404
    assert client.get("/api/v1/figures?destination=x").status_code == 422
    assert shown("figures")["since"] is None


def test_what_it_makes_has_one_of_its_tags_and_keeps_one(client: FlaskClient, store: Store) -> None:
    body = {"name": "n", "callback_url": RECEIVER, "rrule": LATER}
    wrong: list[dict[str, Any]] = [{}, {"tags": []}, {"tags": [THEIRS]}]
    for tags in wrong:
        for method, path in (("POST", "/api/v1/schedules"), ("PUT", "/api/v1/schedules/new")):
            answer = client.open(path, method=method, json=body | tags)
            assert (answer.status_code, OURS in answer.text) == (422, True), (method, tags, answer.text)
    bulk = client.post(
        "/api/v1/schedules/bulk", json={"schedules": [body, body | {"tags": [OURS]}]}
    ).get_json()
    assert (bulk["created"], bulk["refused"]) == (1, 1)
    assert client.post("/api/v1/schedules", json=body | {"tags": [OURS, "a"]}).status_code == 201
    assert client.put("/api/v1/schedules/new", json=body | {"tags": [OURS]}).status_code == 201
    assert client.put("/api/v1/schedules/new", json={"name": "m"}).status_code == 200
    for tags in wrong[1:]:
        assert client.put("/api/v1/schedules/new", json=tags).status_code == 422
    assert client.put("/api/v1/schedules/new", json={"tags": ["b", OURS]}).status_code == 200
    assert client.delete("/api/v1/schedules/new").status_code == 200
    assert store.mongo.collection("schedules").count_documents({"tags": THEIRS}) == 1


def test_acts_on_many_name_one_of_its_tags(client: FlaskClient) -> None:
    for path in (
        "schedules/pause",
        "schedules/resume",
        "schedules/delete",
        "events/redrive",
        "calendar-feeds",
    ):
        named = {"name": "n"} if path == "calendar-feeds" else {}
        for body in ({}, {"tag": THEIRS}, {"tag": [OURS]}, {"all": True}):
            answer = client.post(f"/api/v1/{path}", json=named | body)
            assert (answer.status_code, "in the body" in answer.text) == (403, True), (
                path,
                body,
                answer.text,
            )
    assert client.post("/api/v1/schedules/pause", json={"tag": OURS}).get_json()["paused"] == 1
    assert client.post("/api/v1/events/redrive", json={"tag": OURS}).status_code == 202
    states = {
        each["id"]: each["state"]
        for each in client.get("/api/v1/schedules", headers=by(ROOT)).get_json()["schedules"]
    }
    assert states == {"acme-nightly": "paused", "globex-nightly": "active"}


def test_the_pages_begin_with_its_schedules_and_act_on_them_alone(client: FlaskClient) -> None:
    assert client.get("/").headers["Location"] == "/schedules"
    page = client.get("/schedules").text
    assert "acme-nightly" in page
    assert "New schedule" not in page.split("<main")[1]
    token = form_token(client, "/you")
    for chosen in ({"selected": "globex-nightly"}, {"every": "yes"}, {"every": "yes", "tag": THEIRS}):
        form = {"form_token": token, "verb": "pause", "confirmed": "yes"} | chosen
        answer = client.post("/schedules/selected", data=form)
        assert answer.status_code in (403, 404), (chosen, answer.status_code)
    for tag, status in ((None, 403), (THEIRS, 403), (OURS, 303)):
        form = {"form_token": token, "every": "yes"} | ({"tag": tag} if tag else {})
        assert client.post("/events/send-again", data=form).status_code == status, tag
    form = {"form_token": token, "verb": "pause", "confirmed": "yes", "selected": "acme-nightly"}
    assert client.post("/schedules/selected", data=form).status_code == 303
    found = client.get("/api/v1/schedules/globex-nightly", headers=by(ROOT)).get_json()
    assert found["state"] == "active"


def test_a_key_of_several_tags_names_one_in_each_question(app: Flask) -> None:
    client = app.test_client()
    key = make(client, scopes=SCOPES, tags=[OURS, "customer:aaa"])["key"]
    answer = client.get("/api/v1/schedules", headers=by(key))
    assert (answer.status_code, "customer:aaa or customer:acme" in answer.text) == (403, True)
    for tag in (OURS, "customer:aaa"):
        assert client.get(f"/api/v1/schedules?tag={tag}", headers=by(key)).status_code == 200
    assert client.get(f"/api/v1/schedules?tag={OURS}&tag={THEIRS}", headers=by(key)).status_code == 403
    assert sign_in(client, key).status_code == 303
    assert client.get("/schedules").status_code == 200


def test_a_row_that_fits_no_route_ends_the_start(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    for endpoint, how, said in (
        ("schedules.gone", Narrowing.COMMON, "not there"),
        ("keys.list_keys", Narrowing.SCHEDULE, "names no schedule"),
        ("keys.list_keys", Narrowing.TAG, "has no tag"),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(NARROWINGS, endpoint, how)
            with pytest.raises(TypeError, match=said):
                check_narrowings(app)


def test_a_document_with_corrupt_tags_opens_nothing(client: FlaskClient, store: Store) -> None:
    key = make(client, scopes=["read"], tags=[OURS])
    store.mongo.collection("api_keys").update_one(
        {"_id": key["id"], "tenant": TENANT}, {"$set": {"tags": OURS}}
    )
    assert client.get("/api/v1/schedules", headers=by(key["key"])).status_code == 401
