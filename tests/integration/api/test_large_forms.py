"""Forms that are larger than any person's: they are refused before they are read."""

from collections.abc import Callable

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.api.pages.access import MAX_FIELDS
from scheduler_app.webserver.limits import max_body_bytes
from tests.integration.api.page_forms import form_token
from tests.integration.api.test_pages_access import KEY

FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize("path", ["/sign-in", "/sign%2Din"])
def test_a_large_form_of_somebody_without_a_session_is_not_read(
    make_api: Callable[..., Flask], path: str
) -> None:
    client = make_api(api_keys=(KEY,)).test_client()
    body = f"form_token={form_token(client, '/sign-in')}&key="
    largest = max_body_bytes("/sign-in")
    allowed = client.post(path, data=body + "x" * 900, content_type=FORM)
    assert (allowed.status_code, "does not open anything" in allowed.text) == (401, True)
    refused = client.post(path, data=(body + "&a" * largest)[: largest + 1], content_type=FORM)
    assert (refused.status_code, "larger than" in refused.text) == (413, True)


def test_a_form_of_many_fields_is_not_read(client: FlaskClient) -> None:
    form = f"form_token={form_token(client, '/new-schedule')}&name=n"
    refused = client.post("/new-schedule", data=form + "&a" * (MAX_FIELDS - 2), content_type=FORM)
    assert refused.status_code == 422
    refused = client.post("/new-schedule", data=form + "&a" * (MAX_FIELDS - 1), content_type=FORM)
    assert (refused.status_code, f"{MAX_FIELDS:,} fields" in refused.text) == (413, True)
