"""Wrong keys: they are limited and logged by address, and stop nobody who has the right one."""

from collections.abc import Callable

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from scheduler_app.api import auth
from tests.integration.api.test_behind_a_proxy import STRANGER, Outside
from tests.integration.api.test_pages_access import KEY

WRONG = "a-wrong-key-entirely"
OTHER_STRANGER = "203.0.113.10"


@pytest.fixture
def keyed(make_api: Callable[..., Flask]) -> Flask:
    return make_api(api_keys=(KEY,))


def ask(app: Flask, key: str, address: str = STRANGER) -> TestResponse:
    return Outside(app, address).client.get("/api/schedules", headers={"Authorization": f"Bearer {key}"})


def test_wrong_keys_are_limited_and_the_right_one_always_opens_by_the_api(keyed: Flask) -> None:
    for _ in range(auth.MAX_WRONG_KEYS):
        assert ask(keyed, WRONG).status_code == 401
    limited = ask(keyed, WRONG)
    assert (limited.status_code, limited.headers["Retry-After"]) == (429, "60")
    assert ask(keyed, KEY).status_code == 200
    assert ask(keyed, WRONG, OTHER_STRANGER).status_code == 401


def test_wrong_keys_are_limited_and_the_right_one_always_opens_by_the_sign_in(keyed: Flask) -> None:
    outside = Outside(keyed, STRANGER)
    for _ in range(auth.MAX_WRONG_KEYS):
        assert outside.sign_in(WRONG).status_code == 401
    limited = outside.sign_in(WRONG)
    assert (limited.status_code, limited.headers["Retry-After"]) == (429, "60")
    assert outside.sign_in(KEY).status_code == 303


def test_right_keys_and_missing_ones_do_not_count(keyed: Flask) -> None:
    for _ in range(auth.MAX_WRONG_KEYS + 5):
        assert ask(keyed, KEY).status_code == 200
        assert Outside(keyed, STRANGER).client.get("/api/schedules").status_code == 401
    assert ask(keyed, WRONG).status_code == 401


def test_wrong_keys_are_logged_by_address_without_the_key_and_no_more_than_are_answered(
    keyed: Flask, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(auth.MAX_WRONG_KEYS + 50):
        ask(keyed, WRONG)
    written = "".join(capsys.readouterr())
    assert written.count("api.key_refused") == auth.MAX_WRONG_KEYS
    assert written.count("api.keys_limited") == 1
    assert written.count(STRANGER) == auth.MAX_WRONG_KEYS + 1
    assert WRONG not in written
