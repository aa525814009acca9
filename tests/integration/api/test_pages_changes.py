"""The page of changes: who changed what, and what can be taken back."""

import html
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.api.acts import REASON_HEADER
from scheduler_app.api.pages.formatting import value_words
from scheduler_app.store import Store
from scheduler_app.store.schedules.schedules import Schedules
from tests.integration.api.page_forms import form_token

Create = Callable[..., dict[str, Any]]


def test_changes_are_listed_with_who_why_and_what_differs(
    client: FlaskClient, create: Create, store: Store
) -> None:
    made = create(name="before")["id"]
    client.put(f"/api/schedules/{made}", json={"name": "<b>after"}, headers={REASON_HEADER: "asked by Bob"})
    client.put("/api/destinations/d1", json={"url": "http://127.0.0.1:9/"})
    store.audit_chain.move_owed(limit=9)
    page = client.get("/changes")
    assert page.status_code == 200
    assert page.text.count('data-test="a-change"') == 3
    assert "“asked by Bob”" in page.text
    assert "<del>before</del><ins>&lt;b&gt;after</ins>" in page.text
    assert page.text.count('data-test="revert"') == 1, "a creation and a destination are not taken back"
    chosen = client.get("/changes?resource=destination")
    assert chosen.text.count('data-test="a-change"') == 1
    assert 'data-test="empty"' in client.get("/changes?who=nobody-like-this").text
    assert client.get("/changes?resource=/x").status_code == 422
    exported = client.get("/changes/export?resource=destination")
    assert (exported.mimetype, exported.text.count("\n")) == ("application/x-ndjson", 1)


def test_values_of_a_change_are_shown_in_words_or_as_the_api_writes_them(
    client: FlaskClient, create: Create
) -> None:
    made = create(tags=["café"])["id"]
    changes = ({"tags": ["café", 'q"'], "expect": {"max_runtime_seconds": 5}}, {"expect": None})
    assert [client.put(f"/api/schedules/{made}", json=each).status_code for each in changes] == [200, 200]
    for page in (client.get("/changes").text, client.get(f"/schedules/{made}").text):
        shown = html.unescape(page)
        assert '<del>["café"]</del><ins>["café", "q\\""]</ins>' in shown
        assert re.search(r'<del>\{"max_runtime_seconds": 5(\.0)?\}</del>', shown)
    assert [value_words(value) for value in (None, True, False, 0)] == ["nothing", "yes", "no", "0"]


def test_a_line_names_its_schedule_as_it_is_called_now_and_leads_to_it(
    client: FlaskClient, create: Create
) -> None:
    made = create(name="before")["id"]
    client.put(f"/api/schedules/{made}", json={"name": "<b>after"})
    client.put(f"/api/schedules/{made}", json={"every_seconds": 77})
    page = client.get("/changes").text
    link = f'<a href="/schedules/{made}" title="schedule/{made}">&lt;b&gt;after</a>'
    assert page.count(link) == 2


def test_a_line_of_a_deleted_schedule_keeps_its_id_and_the_name_that_it_had(
    client: FlaskClient, create: Create, store: Store
) -> None:
    made = create(name="nightly")["id"]
    client.put(f"/api/schedules/{made}", json={"every_seconds": 77})
    client.delete(f"/api/schedules/{made}")
    shown = f'nightly <span class="dim">{made}</span>'
    page = client.get("/changes").text
    assert (page.count(shown), f'href="/schedules/{made}"' in page) == (3, False)
    assert page.count('data-test="difference"') == 1, "of the edit: the others differ in the name alone"
    deleted = client.get("/api/v1/audit?what=deleted").get_json()["lines"]
    assert [each["before"] for each in deleted] == [{"name": "nightly"}]
    store.schedules.remove(made)
    page = client.get("/changes").text
    assert page.count(shown) == 2, "the line of its edit alone does not know the name"
    assert f"Edited: schedule {made}" in page


def test_a_line_of_a_deletion_keeps_the_name_where_another_schedule_has_the_id(client: FlaskClient) -> None:
    body = {"every_seconds": 60, "callback_url": "http://127.0.0.1:9/"}
    client.put("/api/schedules/nightly", json=body | {"name": "first"})
    client.delete("/api/schedules/nightly")
    client.put("/api/schedules/nightly", json=body | {"name": "second"})
    client.put("/api/destinations/nightly", json={"url": "http://127.0.0.1:9/"})
    assert (
        'Created: destination <a href="/destinations/nightly/edit">nightly</a>' in client.get("/changes").text
    )
    rows = re.findall(r"<span>(Deleted|Created): schedule <a[^>]+>([^<]+)", client.get("/changes").text)
    assert ("Deleted", "first") in rows
    assert {name for what, name in rows if what == "Created"} == {"second"}


def test_one_question_finds_the_names_of_a_page(
    client: FlaskClient, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        made = create(name=f"n{number}")["id"]
        client.put(f"/api/schedules/{made}", json={"every_seconds": 77})
    asked: list[int] = []
    ask = Schedules.for_delivery

    def counted(self: Schedules, ids: Sequence[str]) -> Any:
        asked.append(len(ids))
        return ask(self, ids)

    monkeypatch.setattr(Schedules, "for_delivery", counted)
    assert client.get("/changes").text.count('data-test="a-change"') == 3
    assert asked == [3]


def test_a_change_is_taken_back(client: FlaskClient, create: Create) -> None:
    made = create(name="before")["id"]
    client.put(f"/api/schedules/{made}", json={"name": "after"})
    action = re.search(r'action="([^"]+/revert)"', client.get("/changes").text)
    assert action
    client.post(action[1], data={"form_token": form_token(client, "/changes")})
    assert client.get(f"/api/schedules/{made}").get_json()["name"] == "before"


def test_a_bent_line_harms_only_itself(client: FlaskClient, create: Create, store: Store) -> None:
    made = create()["id"]
    for name in ("a", "b"):
        client.put(f"/api/schedules/{made}", json={"name": name})
    store.mongo.collection("audit").update_one({"after.name": "a"}, {"$set": {"by": 5}})
    page = client.get("/changes")
    assert (page.status_code, page.text.count('data-test="a-change"')) == (200, 2)
    lines = client.get("/api/v1/audit").get_json()["lines"]
    assert ["wrong" in each for each in lines] == [False, True]


def test_long_lists_go_on(client: FlaskClient, create: Create) -> None:
    made = create()["id"]
    for number in range(52):
        client.put(f"/api/schedules/{made}", json={"name": f"n{number}"})
    onward = re.search(r'href="([^"]+)" data-test="next-page"', client.get("/changes?resource=schedule").text)
    assert onward
    rest = client.get(onward[1].replace("&amp;", "&"))
    assert rest.text.count('data-test="a-change"') == 2


def test_only_the_scope_admin_opens_the_page(make_api: Callable[..., Flask]) -> None:
    client = make_api(api_keys=("eve:0123456789abcdef:read",)).test_client()
    token = form_token(client, "/sign-in")
    client.post("/sign-in", data={"form_token": token, "key": "0123456789abcdef"})
    assert client.get("/schedules").status_code == 200
    for path in ("/changes", "/changes/export"):
        assert client.get(path).status_code == 403
