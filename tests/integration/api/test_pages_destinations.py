"""The forms of destinations, asked without a browser."""

import re
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.integration.api.page_forms import fields_of, form_token

URL = "http://127.0.0.1:9/hooks"


def saved(client: FlaskClient, name: str = "crm") -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/destinations/{name}").get_json()
    return found


def test_a_destination_is_made_with_all_that_its_form_has(client: FlaskClient) -> None:
    form = {
        "form_token": form_token(client, "/new-destination"),
        "name": "crm",
        "url": f"{URL}?t=s3cr3t",
        "method": "PUT",
        "headers": "X-Team: billing\r\nX-Key: s3cr3t",
        "allowed_methods": "PUT, POST",
        "auth_type": "basic",
        "auth_username": "ann",
        "auth_secret": "pa55",
        "rate_per_second": "2.5",
        "burst": "3",
        "concurrency": "4",
        "breaker_failures": "5",
        "breaker_open_seconds": "60",
        "retry_codes": "429, 5xx",
        "max_retries": "7",
        "timeout_seconds": "9",
    }
    made = client.post("/new-destination", data=form)
    assert (made.status_code, made.headers.get("Location")) == (303, "/destinations?done=created"), made.text
    found = saved(client)
    for name, value in {
        "method": "PUT",
        "allowed_methods": ["PUT", "POST"],
        "auth": {"type": "basic", "username": "ann", "password": found["auth"]["password"]},
        "rate_per_second": 2.5,
        "burst": 3,
        "concurrency": 4,
        "breaker": {"failures": 5, "open_seconds": 60},
        "retry_codes": [429, "5xx"],
        "max_retries": 7,
        "timeout_seconds": 9,
        "signing": False,
    }.items():
        assert found[name] == value, name
    again = client.post("/new-destination", data=form)
    assert (again.status_code, 'data-test="wrong-name"' in again.text) == (409, True)


def test_what_was_chosen_for_a_destination_is_taken_back(client: FlaskClient) -> None:
    form = {"form_token": form_token(client, "/new-destination"), "name": "crm", "url": URL}
    form |= {"auth_type": "bearer", "auth_secret": "s3cr3t", "allowed_methods": "PUT"}
    assert client.post("/new-destination", data=form).status_code == 303
    found = saved(client)
    assert (found["auth"]["type"], found["allowed_methods"]) == ("bearer", ["PUT"])
    form = fields_of(client.get("/destinations/crm/edit").text) | {"allowed_methods": "", "auth_type": ""}
    answer = client.post("/destinations/crm/edit", data=form)
    assert answer.status_code == 303, answer.text
    found = saved(client)
    assert ("auth" in found, "POST" in found["allowed_methods"]) == (False, True)


def test_an_edit_of_a_destination_changes_what_was_changed_alone(client: FlaskClient) -> None:
    given = {
        "url": f"{URL}?t=s3cr3t",
        "headers": {"X-Key": "s3cr3t"},
        "auth": {"type": "bearer", "token": "s3cr3t"},
        "rate_per_second": 5,
        "burst": 2,
        "breaker": {"failures": 3, "open_seconds": 30},
        "max_retries": 4,
        "retry_codes": [429, "5xx"],
    }
    client.put("/api/destinations/crm", json=given)
    page = client.get("/destinations/crm/edit").text
    assert "s3cr3t" not in page
    form = fields_of(page)
    assert (form["auth_type"], form["retry_codes"]) == ("bearer", "429, 5xx")
    form |= {"rate_per_second": "8", "max_retries": "", "breaker_failures": "6"}
    kept = client.post("/destinations/crm/edit", data=form)
    assert kept.status_code == 303, kept.text
    found = saved(client)
    assert (found["rate_per_second"], found["burst"]) == (8, 2)
    assert found["breaker"] == {"failures": 6, "open_seconds": 30}
    assert "max_retries" not in found
    assert (found["auth"]["type"], found["retry_codes"]) == ("bearer", [429, "5xx"])
    assert client.post("/destinations/crm/edit", data=form).status_code == 409, "of another version by now"
    form = fields_of(client.get("/destinations/crm/edit").text)
    form |= {"breaker_failures": "", "breaker_open_seconds": "", "headers": "", "rate_per_second": ""}
    form |= {"burst": "", "auth_type": ""}
    assert client.post("/destinations/crm/edit", data=form).status_code == 303
    found = saved(client)
    assert not {"breaker", "rate_per_second", "auth"} & found.keys()
    assert found["headers"] == {}


@pytest.mark.parametrize(
    ("wrong", "field", "said"),
    [
        ({"name": "no blanks"}, "name", "letters"),
        ({"name": ""}, "name", "letters"),
        ({"url": "gopher://x/"}, "url", "http"),
        ({"url": ""}, "url", "missing"),
        ({"rate_per_second": "fast"}, "rate_per_second", "number"),
        ({"burst": "3"}, "burst", "belongs to a rate"),
        ({"breaker_failures": "3"}, "breaker_open_seconds", "missing"),
        ({"auth_type": "bearer"}, "auth_secret", "missing"),
        ({"auth_type": "basic", "auth_secret": "x"}, "auth_username", "missing"),
        ({"headers": "no colon"}, "headers", "Name: value"),
        ({"method": "BREW"}, "method", "GET"),
        ({"signing": "perhaps"}, "signing", "true"),
    ],
)
def test_what_is_wrong_with_a_destination_stands_beside_its_field(
    client: FlaskClient, wrong: dict[str, str], field: str, said: str
) -> None:
    form = {"form_token": form_token(client, "/new-destination"), "name": "crm", "url": URL} | wrong
    answer = client.post("/new-destination", data=form)
    assert answer.status_code == 422, answer.text
    beside = re.search(rf'data-test="wrong-{field}">([^<]*)<', answer.text)
    assert beside, answer.text
    assert said in beside[1]


def test_a_generated_signing_secret_is_shown_once(client: FlaskClient) -> None:
    form = {
        "form_token": form_token(client, "/new-destination"),
        "name": "crm",
        "url": URL,
        "signing": "true",
    }
    page = client.post("/new-destination", data=form)
    secret = re.search(r'data-test="signing-secret">(whsec_[^<]+)<', page.text)
    assert secret, page.text
    edited = client.get("/destinations/crm/edit").text
    assert secret[1] not in edited
    again = client.post("/destinations/crm/edit", data=fields_of(edited) | {"concurrency": "2"})
    assert (again.status_code, saved(client)["signing"]) == (303, True)
    unsigned = fields_of(client.get("/destinations/crm/edit").text) | {"signing": ""}
    answer = client.post("/destinations/crm/edit", data=unsigned)
    assert (answer.status_code, saved(client)["signing"]) == (303, False)


def test_a_destination_in_use_is_not_deleted_and_its_users_are_named(client: FlaskClient) -> None:
    client.put("/api/destinations/crm", json={"url": URL})
    made = client.post(
        "/api/schedules", json={"name": "n", "destination": "crm", "on_demand": True}
    ).get_json()
    form = {"form_token": form_token(client, "/destinations")}
    assert "Delete the destination crm?" in client.post("/destinations/crm/delete", data=form).text
    refused = client.post("/destinations/crm/delete", data=form | {"confirmed": "yes"})
    assert (refused.status_code, "1 schedule names" in refused.text) == (409, True)
    assert 'href="/schedules?destination=crm"' in refused.text
    assert saved(client)["name"] == "crm"
    client.delete(f"/api/schedules/{made['id']}")
    assert client.post("/destinations/crm/delete", data=form).status_code == 200
    assert saved(client)["name"] == "crm", "it was asked first"
    gone = client.post("/destinations/crm/delete", data=form | {"confirmed": "yes"})
    assert gone.status_code == 303
    assert client.get("/api/destinations/crm").status_code == 404
