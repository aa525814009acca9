"""The pages of failures: whom each affects, and what people do with it."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.api.pages import failures as failures_page
from scheduler_app.clock import clock
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.usecases.duties.causes import CauseTending
from scheduler_app.usecases.questions import open_failures
from tests.integration.api.page_forms import form_token
from tests.integration.api.test_failures import fail, failing, now  # noqa: F401 - fixtures
from tests.integration.api.test_pages_access import sign_in


@pytest.fixture
def path(client: FlaskClient, failing: Store) -> str:  # noqa: F811
    [found] = client.get("/api/failures").get_json()["failures"]
    return f"/failures/{found['id']}"


def test_a_failure_is_listed_until_it_is_dismissed(client: FlaskClient, path: str) -> None:
    assert f'href="{path}"' in client.get("/failures").text
    assert f'href="{path}"' in client.get("/failures?tag=team:a").text
    assert "No failure touches this tag" in client.get("/failures?tag=team:b").text
    assert f'href="{path}"' not in client.get("/failures?state=over").text
    form = {"form_token": form_token(client, path), "note": "known"}
    assert client.post(f"{path}/dismiss", data=form).status_code == 303
    assert "Nothing fails" in client.get("/failures").text
    assert f'href="{path}"' in client.get("/failures?state=dismissed").text
    shown = client.get(path).text
    assert ("“known”" in shown, 'data-test="dismiss"' in shown) == (True, False)


def number(page: str) -> str | None:
    """The number beside *Failures* in the frame, without its word for screen readers."""
    shown = re.search(r'<b id="open-failures"( hidden)?>([^<]*)<span class="vh"> open</span></b>', page)
    assert shown is not None
    assert (shown[1] is None) == bool(shown[2])
    return shown[2] or None


def test_every_page_says_how_many_failures_are_open(client: FlaskClient, path: str) -> None:
    for page in ("/", "/calendars", "/schedules/none-such", "/failures?state=over"):
        assert number(client.get(page).text) == "1", page
    client.post(f"{path}/dismiss", data={"form_token": form_token(client, path)})
    assert number(client.get("/calendars").text) is None, "at once, where this process was told"


def test_open_failures_are_counted_for_all_who_ask_and_up_to_a_bound(
    client: FlaskClient,
    failing: Store,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = list[int]()

    def count(_: object, of: str, *, most: int) -> int:
        asked.append(most)
        return most

    monkeypatch.setattr(type(failing.causes), "count_open", count)
    monkeypatch.setattr(open_failures, "KEPT_SECONDS", 600.0)
    shown = {number(client.get(page).text) for page in ("/calendars", "/stops", "/calendars")}
    assert (shown, asked) == ({"99+"}, [100])
    monkeypatch.setattr(open_failures, "KEPT_SECONDS", 0.0)
    client.get("/calendars")
    assert asked == [100, 100]


def test_who_may_not_see_failures_is_not_told_their_number(
    make_api: Callable[..., Flask],
    failing: Store,  # noqa: F811
) -> None:
    app = make_api(api_keys=("boss:fedcba9876543210",))
    browser, operator = app.test_client(), app.test_client()
    assert ">1<" not in browser.get("/nothing-here").text
    headers = {"Authorization": "Bearer fedcba9876543210"}
    given = {"name": "acme", "scopes": ["read"], "tags": ["team:a"]}
    key = browser.post("/api/v1/keys", json=given, headers=headers).get_json()["key"]
    sign_in(browser, key)
    assert number(browser.get("/schedules").text) is None
    sign_in(operator, "fedcba9876543210")
    assert number(operator.get("/schedules").text) == "1"


def test_a_failure_names_whom_it_affects(client: FlaskClient, path: str) -> None:
    shown = client.get(path).text
    assert "answers “500 Internal Server Error”" in shown
    named = re.search(r'data-test="schedules">(.*?)</ul>', shown, re.DOTALL)
    assert named is not None
    assert re.findall(r'href="(/schedules/s\d)"', named[1]) == ["/schedules/s1", "/schedules/s2"]
    assert "1 run will be tried again" in shown
    assert "1 run gave up" in shown


def test_what_is_sent_again_is_counted_first_and_followed(client: FlaskClient, path: str) -> None:
    form = {
        "form_token": form_token(client, path),
        "which": "all",
        "when": "now",
        "rate": "5.0",
        "once": "a" * 24,
    }
    seen = client.post(f"{path}/send-again", data=form)
    assert seen.status_code == 200
    assert re.search(r'data-test="plan">.*?<strong>1 run</strong> would be sent', seen.text, re.DOTALL)
    assert "Send 1 run</button>" in seen.text
    assert 'data-test="redrive"' not in client.get(path).text, "nothing is sent yet"
    sent = client.post(f"{path}/send-again", data=form | {"confirmed": "yes"})
    assert sent.status_code == 303
    where = sent.headers["Location"]
    again = client.post(f"{path}/send-again", data=form | {"confirmed": "yes"})
    assert again.headers["Location"] == where, "one form sends once"
    shown = client.get(where).text
    assert 'data-test="redrive" data-state="running"' in shown
    assert "0 of 1 run sent again so far" in shown
    assert client.get(f"{path}?redrive=none-such").status_code == 200
    for wrong in ({"which": "some"}, {"rate": "7"}, {"when": "then"}):
        assert client.post(f"{path}/send-again", data=form | wrong).status_code == 422


def test_a_failure_is_silenced_for_two_hours(client: FlaskClient, path: str, now: datetime) -> None:  # noqa: F811
    form = {"form_token": form_token(client, path)}
    assert client.post(f"{path}/silence", data=form).status_code == 303
    [silence] = client.get("/api/silences").get_json()["silences"]
    assert silence["match"] == {"schedules": ["s1", "s2"]}
    lasts = datetime.fromisoformat(silence["until"]) - now
    assert 7_000 < lasts.total_seconds() < 7_800
    assert 'data-test="silence"' in client.get("/notifications").text
    assert 'data-test="silenced"' in client.get("/").text


def test_what_is_over_says_since_when_and_offers_to_send_only_what_is_left(
    client: FlaskClient,
    path: str,
    failing: Store,  # noqa: F811
    now: datetime,  # noqa: F811
) -> None:
    for each in ("s1", "s2"):
        fail(failing, each, now, State.COMPLETED, status=200)
    failing.mongo.collection("events").delete_many({"state": "retrying"})
    over_at = now + timedelta(hours=1)
    CauseTending(failing).tend_page(over_at)
    for shown in (client.get("/failures?state=over").text, client.get(path).text):
        assert "1 run gave up, and is not sent again" in shown
        assert re.search(rf">Over since <time datetime=.{over_at:%Y-%m-%dT%H:%M}", shown), "not its beginning"
    failing.mongo.collection("events").delete_many({"state": "error"})
    shown = client.get("/failures?state=over").text
    assert ("It is over" in shown, "0 runs" in shown, "Send 0 again" in shown) == (True, False, False)
    before = clock.now()
    client.post(f"{path}/dismiss", data={"form_token": form_token(client, path)})
    dismissed = re.search(
        r">Dismissed <time datetime=.([-\dT:.+Z]+)", client.get("/failures?state=dismissed").text
    )
    assert dismissed
    assert before <= datetime.fromisoformat(dismissed[1]) <= clock.now(), "not its beginning"


def test_a_failure_that_is_gone_is_a_page(client: FlaskClient) -> None:
    gone = client.get("/failures/none-such")
    assert (gone.status_code, 'data-test="problem"' in gone.text) == (404, True)


def test_what_would_be_sent_is_shown_at_once_and_a_changed_choice_is_shown_before_it_is_sent(
    client: FlaskClient,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = client.get(path).text
    assert 'data-test="plan"' in page
    assert "Send 1 run<" in page
    (seen,) = re.findall(r'name="seen" value="([^"]+)"', page)
    form = {"form_token": form_token(client, path), "confirmed": "yes", "seen": seen}
    changed = client.post(
        f"{path}/send-again", data=form | {"which": "newest_of_each_schedule", "rate": "5.0"}
    )
    assert changed.status_code == 200, "what was seen is not what would be sent"
    assert 'data-test="plan"' in changed.text
    (now_seen,) = re.findall(r'name="seen" value="([^"]+)"', changed.text)
    assert now_seen != seen
    monkeypatch.setattr(failures_page, "MOST_PREVIEWED", 0)
    page = client.get(path).text
    assert 'data-test="plan"' not in page
    assert 'data-test="preview">See what would be sent<' in page
    assert client.post(f"{path}/send-again", data=form).status_code == 303
