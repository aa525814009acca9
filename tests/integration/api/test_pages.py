"""What the pages show and do, asked without a browser."""

import gzip
import html
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.api.pages import dead_letters, forecast, forms
from scheduler_app.clock import clock, monotonic
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.usecases.duties.causes import CauseTending
from tests.builders import event
from tests.integration.api.page_forms import fields_of, form_token

Create = Callable[..., dict[str, Any]]


def fail(store: Store, schedule_id: str, run_time: datetime, status: int) -> str:
    """A dead letter of a schedule."""
    made = event(run_time, schedule_id)
    now = clock.now()
    store.events.insert([made], now, "made")
    token, _ = store.claims.claim([made.id], until=now, now=now, lease_seconds=9, worker="w")
    attempt = {"number": 1, "status_code": status}
    assert (
        store.outcomes.record([OutcomeRecord(made.id, token, State.ERROR, "over", None, attempt, now)]) == []
    )
    return made.id


def test_a_page_of_an_event_names_no_field_and_no_attempt_that_is_already_made(
    client: FlaskClient, create: Create, store: Store
) -> None:
    schedule_id = create()["id"]
    running, waiting = (event(datetime(2026, 1, day, tzinfo=UTC), schedule_id) for day in (1, 2))
    store.events.insert([running, waiting], now := clock.now(), "made")
    store.claims.claim([running.id], until=now, now=now, lease_seconds=60, worker="worker-1")
    shown = {each.id: client.get(f"/events/{each.id}").text for each in (running, waiting)}
    assert "Claimed by worker-1" in shown[running.id]
    assert "lease_until" not in shown[running.id]
    assert ["The first one:" in shown[each.id] for each in (running, waiting)] == [False, True]


def test_a_list_goes_on_page_by_page_with_its_filter(
    client: FlaskClient, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler_app.api.pages.forms.ROWS", 2)
    for number in range(5):
        create(name=f"called {number}", tags=["a"])
    create(name="another")
    address, names = "/schedules?tag=a", list[str]()
    for _ in range(3):
        page = client.get(address).text
        names += re.findall(r"called \d(?=</a>)", page)
        following = re.search(r'<a href="([^"]+)" data-test="next-page"', page)
        address = following[1].replace("&amp;", "&") if following else ""
    assert sorted(names) == [f"called {number}" for number in range(5)]
    assert address == ""


def test_secrets_of_a_request_are_masked_on_its_page(client: FlaskClient, create: Create) -> None:
    made = create(callback_url="http://127.0.0.1:9/?token=s3cr3t", headers={"X-Key": "s3cr3t"}, body="s3cr3t")
    page = client.get(f"/schedules/{made['id']}").text
    assert "curl -X POST" in page
    assert "s3cr3t" not in page


def test_one_that_refuses_keeps_nobody_else_from_what_was_asked(client: FlaskClient, create: Create) -> None:
    made = create()
    form = {
        "form_token": form_token(client, "/new-schedule"),
        "verb": "pause",
        "selected": [made["id"], "gone"],
    }
    answer = client.post("/schedules/selected", data=form)
    assert "1 paused, 1 not" in answer.text
    assert "there is no schedule gone" in answer.text
    assert client.get(f"/api/schedules/{made['id']}").json["state"] == "paused"  # type: ignore[index]


def test_a_schedule_that_cannot_be_read_takes_nothing_from_the_count_of_all_others(
    client: FlaskClient, create: Create, store: Store
) -> None:
    made = [create()["id"] for _ in range(3)]
    store.mongo.collection("schedules").update_one({"_id": made[0]}, {"$set": {"action": "none"}})
    token = form_token(client, "/new-schedule")
    form = {"form_token": token, "verb": "pause", "every": "yes", "confirmed": "yes"}
    answer = client.post("/schedules/selected", data=form)
    assert '<h1 data-test="so-far">2 paused, 1 not</h1>' in answer.text
    assert f"{made[0]}</a>:" in answer.text


def test_no_more_are_changed_at_once_than_a_page_has(client: FlaskClient) -> None:
    token = form_token(client, "/new-schedule")
    form = {"form_token": token, "verb": "pause", "selected": [f"s{each}" for each in range(forms.ROWS + 1)]}
    assert client.post("/schedules/selected", data=form).status_code == 422


def test_a_form_that_is_sent_twice_makes_one_schedule_and_a_changed_one_another(client: FlaskClient) -> None:
    page = client.get("/new-schedule").text
    once = re.search(r'name="once" value="([0-9a-f]{24})"', page)
    assert once
    form = {
        "form_token": form_token(client, "/new-schedule"),
        "once": once[1],
        "name": "Twice",
        "when": "0 9 * * 1-5",
        "url": "http://127.0.0.1:9/",
    }
    first, second = (client.post("/new-schedule", data=form) for _ in range(2))
    assert first.status_code == second.status_code == 303
    assert first.headers["Location"] == second.headers["Location"]
    changed = client.post("/new-schedule", data=form | {"when": "0 10 * * 1-5"})
    assert changed.headers["Location"] != first.headers["Location"]
    assert len(client.get("/api/schedules").json["schedules"]) == 2  # type: ignore[index]


@pytest.mark.parametrize(
    ("wrong", "field", "said"),
    [
        ({"when": ""}, "when", "is missing; say when"),
        ({"when": "0 99 * * *"}, "when", "99"),
        ({"url": "gopher://x/"}, "url", "http"),
        ({"timezone": "Berlin"}, "timezone", "did you mean Europe/Berlin?"),
        ({"name": "a\u202eb"}, "name", "bidirectional"),
        ({"method": "BREW"}, "method", "GET"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(
    client: FlaskClient, wrong: dict[str, str], field: str, said: str
) -> None:
    good = {"name": "n", "when": "every day at 9:00", "url": "http://127.0.0.1:9/"}
    form = {"form_token": form_token(client, "/new-schedule")} | good | wrong
    answer = client.post("/new-schedule", data=form)
    assert answer.status_code == 422
    beside = re.search(rf'data-test="wrong-{field}">([^<]*)<', answer.text)
    assert beside
    assert said in beside[1]


def test_a_text_with_several_readings_offers_them(client: FlaskClient) -> None:
    form = {"form_token": form_token(client, "/new-schedule"), "when": "0 0 1 1 1 1"}
    page = client.post("/new-schedule/preview", data=form).text
    assert 'data-test="not-understood"' in page
    assert page.count('data-test="use-reading"') == 2


@pytest.mark.parametrize(
    ("when", "kind"),
    [
        ("every weekday at 9:00", "weekly"),
        ("0 9 1 * *", "monthly"),
        ("every_seconds: 900", "interval"),
        ("*/15 8-17 * * 1-5", "working_hours"),
        ("FREQ=DAILY;INTERVAL=2;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "daily"),
        # The same rule, which begins another day.
        ("DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY;INTERVAL=300;BYHOUR=9;BYMINUTE=0;BYSECOND=0", None),
        ("every_seconds: 15", None),
        ("2040-01-05T12:00:00Z", None),
        ("on demand", None),
    ],
)
def test_the_picker_follows_what_is_written_as_far_as_it_can(
    client: FlaskClient, when: str, kind: str | None
) -> None:
    form = {"form_token": form_token(client, "/new-schedule"), "when": when, "timezone": "Europe/Berlin"}
    page = client.post("/new-schedule/preview", data=form).text
    found = re.search(r"data-picks='([^']*)'", page)
    assert found, page
    picks = json.loads(html.unescape(found[1]))
    assert (picks and picks["pick_kind"]) == kind


def test_a_cause_is_sent_again_a_page_at_a_time(
    client: FlaskClient, create: Create, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "PAGE", 2)
    made, now = create(), clock.now()
    schedule_id = str(made["id"])
    alike = [fail(store, schedule_id, now - timedelta(seconds=each), 503) for each in range(1, 4)]
    other = fail(store, schedule_id, now - timedelta(seconds=9), 404)
    page = client.get("/dead-letters").text
    assert page.count('data-test="cause"') == 2
    origin = re.search(r'name="origin" value="([^"]*)"', page)
    assert origin
    form = {"form_token": form_token(client, "/dead-letters"), "origin": origin[1], "status": "503"}
    first = client.post("/dead-letters/send-again", data=form).text
    following = re.search(r'name="cursor" value="([^"]*)"', first)
    assert following, first
    client.post("/dead-letters/send-again", data=form | {"cursor": following[1]})
    states = {
        each: client.get(f"/api/events/{each}").json["state"]  # type: ignore[index]
        for each in (*alike, other)
    }
    assert states.pop(other) == "error"
    assert "error" not in states.values(), states


def test_an_error_is_a_page_with_the_api_s_words(client: FlaskClient) -> None:
    answer = client.get("/schedules/nothing")
    assert (answer.status_code, answer.mimetype) == (404, "text/html")
    assert "there is no schedule nothing" in answer.text


def test_a_first_schedule_is_offered_a_receiver_where_callbacks_may_reach_it(
    client: FlaskClient, make_api: Callable[..., Flask]
) -> None:
    assert 'data-use="http://localhost/echo"' in client.get("/new-schedule").text
    guarded = make_api(callback_allowed_networks="").test_client()
    assert "own-receiver" not in guarded.get("/new-schedule").text


def test_a_message_is_listed_among_the_events_and_links_to_no_schedule(client: FlaskClient) -> None:
    given = {"callback_url": "http://127.0.0.1:9/", "body": "x", "delay_seconds": 3_600}
    made = client.post("/api/messages", json=given)
    assert made.status_code == 201, made.text
    listed = client.get("/events").text
    (path,) = set(re.findall(r'href="(/events/[^"?]+)"', listed))
    for page in (listed, client.get(path).text):
        assert "a message" in page
        assert 'href="/schedules/"' not in page


def test_the_built_in_receiver_says_what_it_was_sent_and_repeats_none_of_it(
    client: FlaskClient, make_api: Callable[..., Flask]
) -> None:
    sent = client.post(
        "/echo?a=s3cr3t", data=b"s3cr3t", headers={"Idempotency-Key": "k-1", "X-Key": "s3cr3t"}
    )
    assert sent.json == {"received": "POST", "bytes": 6, "idempotency_key": "k-1"}
    assert client.put("/echo/503").status_code == 503
    assert client.post("/echo", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    for path, headers in (("/echo/700", {}), ("/echo", {"Host": "scheduler.example.com"})):
        assert client.get(path, headers=headers).status_code == 404, path
    guarded = make_api(callback_allowed_networks="", api_keys=("a-key-of-16-letters",)).test_client()
    assert guarded.get("/echo").status_code == 404


def test_an_edit_in_the_form_changes_what_was_changed_in_it_alone(
    client: FlaskClient, create: Create
) -> None:
    made = create(
        callback_url="http://127.0.0.1:9/?token=s3cr3t",
        headers={"X-Key": "s3cr3t"},
        body="s3cr3t",
        tags=["a"],
        retry_codes=[429, "5xx"],
    )
    path = f"/schedules/{made['id']}/edit"
    page = client.get(path).text
    assert "s3cr3t" not in page
    form = fields_of(page)
    assert form["retry_codes"] == "429, 5xx"
    form["name"], form["max_retries"], form["tags"] = "renamed", "3", ""
    form["edit_note"] = "as Bob asked"
    saved = client.post(path, data=form)
    assert saved.status_code == 303, saved.text
    after = client.get(f"/api/schedules/{made['id']}").json
    assert after
    assert (after["name"], after["max_retries"], after.get("tags", [])) == ("renamed", 3, [])
    assert (after["version"], after["revision"]) == (2, made["revision"])
    assert after["recurrence"] == made["recurrence"]
    (edit,) = client.get(f"/api/schedules/{made['id']}/edits").get_json()["edits"]
    assert (edit["note"], edit["after"]["name"]) == ("as Bob asked", "renamed")
    assert "note" not in after
    assert client.post(path, data=form).status_code == 409, "the form is of another version by now"
    form["version"], form["max_retries"] = "2", "many"
    refused = client.post(path, data=form)
    assert (refused.status_code, 'data-test="wrong-max_retries"' in refused.text) == (422, True)


def test_an_edit_that_moves_occurrences_is_shown_before_it_is_saved(
    client: FlaskClient, create: Create
) -> None:
    made = create(rrule="DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY;COUNT=3")
    path = f"/schedules/{made['id']}/edit"
    form = fields_of(client.get(path).text)
    form["when"] = "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY;COUNT=2"
    shown = client.post(path, data=form)
    assert (shown.status_code, "1 removed" in shown.text, "2 kept" in shown.text) == (200, True, True)
    assert client.get(f"/api/schedules/{made['id']}").json["version"] == 1  # type: ignore[index]
    assert client.post(path, data=form | {"reviewed": "0" * 16}).status_code == 200
    again = fields_of(shown.text)
    assert client.post(path, data=again).status_code == 303
    after = client.get(f"/api/schedules/{made['id']}").json
    assert "COUNT=2" in after["recurrence"]  # type: ignore[index]


def test_an_editor_previews_the_times_that_the_schedule_has_until_they_are_changed(
    client: FlaskClient,
) -> None:
    now = clock.now().replace(microsecond=0)
    body = {"name": "n", "callback_url": "http://127.0.0.1:9/", "every_seconds": 86_400}
    body |= {"start_at": (now - timedelta(hours=5)).isoformat()}
    made = client.post("/api/schedules", json=body).get_json()
    path = f"/schedules/{made['id']}"
    form = fields_of(client.get(f"{path}/edit").text)

    def first(**changed: str) -> timedelta:
        page = client.post(f"{path}/preview", data=form | changed).text
        found = re.search(r'<li><time datetime="([^"]+)"', page)
        assert found, page
        return datetime.fromisoformat(found[1]) - now

    assert first(name="renamed") == timedelta(hours=19)
    assert first(when="every_seconds: 90000") >= timedelta(hours=25)
    refused = client.post(f"{path}/preview", data=form | {"when": "some blue moon"})
    assert (refused.status_code, 'data-test="not-understood"' in refused.text) == (200, True)


def test_messages_calendars_and_destinations_have_a_page_and_say_what_to_do_first(
    client: FlaskClient, create: Create
) -> None:
    for path, words in (
        ("/messages", "There is no message"),
        ("/calendars", "There is no calendar"),
        ("/destinations", "There is no destination"),
    ):
        assert words in client.get(path).text, path
    client.post(
        "/api/messages",
        json={
            "callback_url": "http://127.0.0.1:9/?t=s3cr3t",
            "event_name": "order.paid",
            "payload": {"a": "s3cr3t"},
            "delay_seconds": 3_600,
        },
    )
    client.put("/api/calendars/zurich", json={"country": "CH"})
    client.put("/api/destinations/crm", json={"url": "http://127.0.0.1:9/", "rate_per_second": 5})
    create(calendar="zurich", rrule="FREQ=DAILY")
    messages = client.get("/messages?event_name=order.paid").text
    assert messages.count('data-test="message"') == 1
    assert "s3cr3t" not in messages
    assert "No message matches" in client.get("/messages?state=completed").text
    assert "1 schedule<" in client.get("/calendars").text
    client.post("/api/schedules", json={"name": "a", "destination": "crm", "path": "/", "on_demand": True})
    destinations = client.get("/destinations").text
    assert "5 a second" in destinations
    assert re.search(r'data-test="health">Nothing sent lately<', destinations)
    assert re.search(r'<td class="num only-l"><a href="/schedules\?destination=crm">1</a>', destinations)


def test_one_goes_to_a_page_a_schedule_or_an_event_by_a_word(client: FlaskClient, create: Create) -> None:
    made = create(name="Nightly report")
    event_id = client.post(f"/api/schedules/{made['id']}/trigger").get_json()["event_id"]
    for wanted, where in (
        ("dead", "/dead-letters"),
        ("nightly REP", f"/schedules/{made['id']}"),
        (event_id, f"/events/{event_id}"),
        (made["id"], f"/schedules/{made['id']}"),
    ):
        answer = client.get("/go", query_string={"to": wanted})
        assert (answer.status_code, answer.headers.get("Location")) == (303, where), wanted
    found = client.get("/go?to=e", headers={"HX-Request": "true"}).text
    assert f'href="/schedules/{made["id"]}"' in found
    assert "<html" not in found
    assert "No name contains this" in client.get("/go?to=zzz", headers={"HX-Request": "true"}).text


def test_what_is_loaded_again_is_sent_only_where_it_differs(client: FlaskClient) -> None:
    first = client.get("/calendars")
    again = client.get("/calendars", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    client.put("/api/calendars/zurich", json={"country": "CH"})
    changed = client.get("/calendars", headers={"If-None-Match": first.headers["ETag"]})
    assert changed.status_code == 200


@pytest.mark.parametrize("name", ["page.css", "vendor/htmx.min.js", "page.js"])
def test_scripts_and_styles_are_sent_compressed_to_those_who_take_that(
    client: FlaskClient, name: str
) -> None:
    plain = client.get(f"/assets/{name}", headers={"Accept-Encoding": "br, gzip;q=0"})
    sent = client.get(f"/assets/{name}", headers={"Accept-Encoding": "gzip, br"})
    assert (plain.headers.get("Content-Encoding"), sent.headers["Content-Encoding"]) == (None, "gzip")
    assert gzip.decompress(sent.data) == plain.data
    assert int(sent.headers["Content-Length"]) == len(sent.data) < len(plain.data) / 2
    for answer in (plain, sent):
        assert "Accept-Encoding" in answer.headers["Vary"]
        again = {"Accept-Encoding": "gzip", "If-None-Match": answer.headers["ETag"]}
        assert client.get(f"/assets/{name}", headers=again).status_code == 304
    part = client.get(f"/assets/{name}", headers={"Accept-Encoding": "gzip", "Range": "bytes=0-9"})
    assert (part.status_code, part.data) == (206, plain.data[:10])


def test_a_page_is_sent_compressed_only_where_no_other_site_has_asked_for_it(client: FlaskClient) -> None:
    plain = client.get("/schedules?text=a")
    # Over plain HTTP from another machine, browsers send no Sec-Fetch-Site; the Referer is this page's then.
    ours = {"Referer": "http://localhost/schedules"}
    for asked in ({"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}, ours):
        headers = {"Accept-Encoding": "gzip"} | asked
        sent = client.get("/schedules?text=a", headers=headers)
        assert sent.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(sent.data) == plain.data
        again = headers | {"If-None-Match": sent.headers["ETag"]}
        assert client.get("/schedules?text=a", headers=again).status_code == 304
    for others in (
        {},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "cross-site"} | ours,
        {"Referer": "http://evil.example/localhost"},
        {"Referer": "http://localhost:3000/"},
        {"Referer": "http://localhost@evil.example/"},
        {"Referer": "http://[localhost/"},
    ):
        sent = client.get("/schedules?text=a", headers={"Accept-Encoding": "gzip"} | others)
        assert "Content-Encoding" not in sent.headers, others
    assert "Content-Encoding" not in client.get("/schedules", headers={"Sec-Fetch-Site": "none"}).headers


def test_the_forecast_says_how_much_falls_due_and_for_whom(
    client: FlaskClient, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Nothing is to come" in client.get("/forecast").text
    create(run_at=(clock.now() + timedelta(hours=1)).isoformat())
    monkeypatch.setattr(forecast, "monotonic", lambda: monotonic() + forecast.KEPT_SECONDS + 1)
    for path in ("/forecast", "/forecast?hours=168"):
        page = client.get(path)
        assert page.status_code == 200, page.text
        assert "to come; most in the" in page.text
    assert "http://127.0.0.1:9" in client.get("/forecast").text
    assert client.get("/forecast?hours=5").status_code == 422


def verdict(client: FlaskClient) -> str:
    shown = re.search(r'data-test="verdict">(.*?)</h1>', client.get("/").text)
    assert shown is not None
    return re.sub(r"<[^>]*>", "", shown[1])


def to_do(client: FlaskClient) -> str:
    shown = re.search(r'data-test="to-do">(.*?)</ul>', client.get("/").text, re.DOTALL)
    return re.sub(r"<[^>]*>", "", shown[1]) if shown else ""


def test_dead_letters_failing_receivers_and_dead_schedules_take_away_the_well(
    client: FlaskClient, create: Create, store: Store
) -> None:
    one, another = create()["id"], create()["id"]
    tending = CauseTending(store)
    fail(store, one, clock.now() - timedelta(days=3), 503)
    tending.tend_page(clock.now())
    assert "answers “503 Service Unavailable”" in to_do(client)
    assert "1 run gave up" in to_do(client)
    fail(store, one, clock.now() - timedelta(minutes=3), 404)
    fail(store, another, clock.now() - timedelta(minutes=2), 404)
    tending.tend_page(clock.now())
    assert "answers “404 Not Found”" in to_do(client)
    assert "2 schedules" in to_do(client)
    assert "2 runs gave up" in to_do(client)
    store.mongo.collection("schedules").update_one(
        {"_id": one}, {"$set": {"state": "error", "reason": "why"}}
    )
    assert "1 schedule makes no events any more" in to_do(client)
    assert "All is well" not in verdict(client)


def test_what_a_deletion_cancelled_before_it_was_due_is_no_outcome(
    client: FlaskClient, create: Create, store: Store
) -> None:
    schedule_id, now = create()["id"], clock.now()
    events = [event(now - timedelta(minutes=minutes), schedule_id) for minutes in (5, 6, 7)]
    store.events.insert(events, now, "made")
    rows = store.mongo.collection("events")
    for each, later in zip(events, (-60, -60, 1), strict=True):
        ended = {"state": "cancelled", "archived_at": each.run_time + timedelta(seconds=later)}
        rows.update_one({"_id": each.id}, {"$set": ended, "$unset": {"due_at": ""}})
    found = re.search(r'data-test="outcomes">(.*?)</ul>', client.get("/").text, re.DOTALL)
    assert found is not None
    assert re.sub(r"<[^>]*>", "", found[1]).split()[-2:] == ["Cancelled", "1"], "only what was due by then"
    bars = client.get("/schedules").text
    assert bars.count('class="f-off"') == 1


@pytest.mark.parametrize("address", ["/new-schedule", "/new-message", "/new-destination"])
def test_the_texts_of_a_form_are_words_for_people(client: FlaskClient, address: str) -> None:
    """Not those of a specification: no backticks, no null, no name of a setting or of a field."""
    page = client.get(address).text
    texts = re.findall(r'<small class="hint">(.*?)</small>|placeholder="(default[^"]*|)"', page)
    said = html.unescape(" ".join(" ".join(each) for each in texts))
    assert len(said) > 300
    assert not re.search(r"`|\bnull\b|\b[a-z]+_[a-z_]+\b|\b[A-Z]+_[A-Z_]+\b", said), said
    defaults = " ".join(re.findall(r"(?:placeholder=\"|default: )([^\"<]*)", page))
    assert not re.search(r"`|\b[A-Z]+_[A-Z_]+\b", html.unescape(defaults)), defaults


def test_what_was_filtered_is_still_filtered_after_a_change_of_some(
    client: FlaskClient, create: Create
) -> None:
    made = [create(tags=["kept"])["id"] for _ in range(3)]
    assert '<input type="hidden" name="tag" value="kept">' in client.get("/schedules?tag=kept").text
    token = form_token(client, "/new-schedule")
    given = {"form_token": token, "tag": "kept", "verb": "pause", "selected": made[:2]}
    answer = client.post("/schedules/selected", data=given)
    assert answer.status_code == 303
    assert parse_qs(urlsplit(answer.location).query)["tag"] == ["kept"]
