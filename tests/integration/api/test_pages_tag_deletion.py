"""Everything of a tag is deleted on its page: counted first, confirmed by the tag, followed to its end."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.api.pages import tag_deletion
from scheduler_app.store import Store
from scheduler_app.usecases.duties.deletions import DeletionDuty
from tests.integration.api.conftest import ToldTime
from tests.integration.api.page_forms import form_token
from tests.integration.api.test_pages_access import sign_in

Create = Callable[..., dict[str, Any]]
TAG = "customer:<b>acme"
PAGE = "/tags/delete?tag=customer:%3Cb%3Eacme"
READER, ADMIN = "0123456789abcdef", "fedcba9876543210"


def confirm(client: FlaskClient, typed: str) -> Any:
    form = {"form_token": form_token(client, PAGE), "tag": TAG, "confirm": typed}
    return client.post("/tags/delete", data=form)


def test_what_goes_is_counted_before_anything_is_deleted(client: FlaskClient, create: Create) -> None:
    create(tags=[TAG])
    create(tags=[TAG, "team:sales"])
    create()
    asked = client.get(PAGE).text
    assert "<b>2 schedules</b>" in asked
    assert "1 of them has other tags, too" in asked
    assert "Delete everything of “customer:&lt;b&gt;acme”?" in asked
    assert len(client.get("/api/schedules").get_json()["schedules"]) == 3


def test_a_count_that_ended_early_says_so(
    client: FlaskClient, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        create(tags=[TAG])
    monkeypatch.setattr(tag_deletion, "MOST_COUNTED", 2)
    assert "<b>2 schedules or more</b>" in client.get(PAGE).text


@pytest.mark.parametrize("typed", ["", "customer:acme"])
def test_another_word_deletes_nothing(client: FlaskClient, create: Create, typed: str) -> None:
    made = create(tags=[TAG])["id"]
    refused = confirm(client, typed)
    assert refused.status_code == 422
    assert 'data-test="wrong-confirm"' in refused.text
    assert client.get(f"/api/schedules/{made}").status_code == 200
    assert client.get("/api/v1/deletions").get_json()["deletions"] == []


def test_the_tag_deletes_all_of_it_and_the_page_shows_how_far_it_is(
    client: FlaskClient, create: Create, store: Store, time: ToldTime
) -> None:
    made = create(tags=[TAG])["id"]
    kept = create()["id"]
    begun = confirm(client, TAG)
    assert begun.status_code == 303
    under_way = begun.headers["Location"]
    page = client.get(under_way).text
    assert ('data-test="deleting"' in page, 'hx-trigger="every 5s"' in page) == (True, True)
    own = client.get(PAGE.replace("/delete", "")).text
    assert ('data-test="being-deleted"' in own, 'data-test="delete-all"' in own) == (True, False)
    line = r'Asked for: deletion customer:&lt;b&gt;acme <span class="dim">[a-z0-9]+</span>'
    assert re.search(line, client.get("/changes").text)
    duty = DeletionDuty(store)
    store.audit_chain.move_owed(limit=9)
    for seconds in range(0, 120, 5):
        while duty.work_page(time.at + timedelta(seconds=seconds)):
            continue
    page = client.get(under_way).text
    assert ('data-test="deleted"' in page, 'hx-trigger="every 5s"' in page) == (True, False)
    removed = re.findall(r"<li>([^<]+)</li>", page.partition('data-test="removed"')[2])
    assert "1 schedule" in removed
    assert client.get(f"/api/schedules/{made}").status_code == 404
    assert client.get(f"/api/schedules/{kept}").status_code == 200
    assert 'data-test="being-deleted"' not in client.get(PAGE.replace("/delete", "")).text


def test_a_tag_that_nothing_has_is_no_deletion(client: FlaskClient) -> None:
    assert "<b>0 schedules</b>" in client.get(PAGE).text
    assert confirm(client, TAG).status_code == 404
    assert client.get(f"{PAGE}&deletion=none").status_code == 404


def test_only_the_scope_admin_sees_the_button_and_deletes(make_api: Callable[..., Flask]) -> None:
    app = make_api(api_keys=(f"eve:{READER}:read", f"ann:{ADMIN}"))
    reader, admin = app.test_client(), app.test_client()
    sign_in(reader, READER)
    sign_in(admin, ADMIN)
    shown = ['data-test="delete-all"' in each.get("/tags?tag=t").text for each in (reader, admin)]
    assert shown == [False, True]
    assert reader.get(PAGE).status_code == 403
    form = {"form_token": form_token(reader, "/you"), "tag": TAG, "confirm": TAG}
    assert reader.post("/tags/delete", data=form).status_code == 403
