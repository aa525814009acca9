"""The list of runs with its chips, what is done to those selected, and the text of one for a customer."""

import csv
import html
import io
import itertools
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.clock import clock
from scheduler_app.domain.http_action import destination_key
from scheduler_app.domain.ids import whole_id
from scheduler_app.store import Store
from tests.builders import event
from tests.integration.api.conftest import ToldTime
from tests.integration.api.page_forms import form_token

Create = Callable[..., dict[str, Any]]
Ended = Callable[..., str]


@pytest.fixture
def ended(store: Store) -> Ended:
    """Makes a run of a schedule that ended; returns its id."""

    def made(schedule_id: str, at: datetime, *attempts: dict[str, Any], state: str = "error") -> str:
        run = event(at, schedule_id)
        store.events.insert([run], at, "made")
        numbered = [{"number": number, **each} for number, each in enumerate(attempts, 1)]
        store.mongo.collection("events").update_one(
            {"_id": run.id},
            {
                "$set": {"state": state, "archived_at": at, "attempts": numbered, "attempt": len(numbered)},
                "$unset": {"due_at": ""},
            },
        )
        return run.id

    return made


@pytest.fixture
def in_march(time: ToldTime) -> None:
    """The runs of a test are of this year, which is shown with no time of it."""
    time.at = datetime(2026, 3, 20, 12, tzinfo=UTC)


def runs(page: str) -> list[str]:
    return re.findall(r'href="/events/([^"?]+)" data-open', page)


NEVER = "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY"


def test_each_run_says_when_how_it_ended_whose_it_is_and_how_long_it_took(
    client: FlaskClient, create: Create, ended: Ended
) -> None:
    made = create(name="Report", tags=["customer:acme"], rrule=NEVER)["id"]
    at = clock.now() - timedelta(hours=1)
    failed = {"status_code": 503, "error": "status 503", "duration_ms": 4_900.0, "lag_ms": 6.0}
    ended(made, at, failed, failed)
    page = client.get("/events").text
    row = page.partition("data-row")[2].partition("</tr>")[0]
    for words in ("Failed", "Report", ">acme<", "503 Service Unavailable", "4.9 s", "6 ms", "1 hour ago"):
        assert words in row, words
    assert re.search(r'class="num">2<', row)
    assert "status 503" not in row
    assert re.search(r'data-test="found-words">1 run\.<', page)


def test_chips_narrow_the_list_say_so_in_words_and_are_dropped_one_by_one(
    client: FlaskClient, create: Create, ended: Ended
) -> None:
    at = datetime(2026, 3, 2, 12, tzinfo=UTC)
    acme = create(name="Report", tags=["customer:acme"])["id"]
    failed = ended(acme, at, {"status_code": 503})
    done = ended(acme, at - timedelta(days=2), {"status_code": 200}, state="completed")
    ended(create(name="Other")["id"], at, {"status_code": 500})
    group = "error,retrying,expired,skipped,cancelled"
    page = client.get(f"/events?tag=customer:acme&state={group}").text
    assert runs(page) == [failed]
    assert "How it ended: Not done" in page
    page = client.get("/events?tag=customer:acme&state=completed&from=2026-01-01&timezone=UTC").text
    assert runs(page) == [done]
    for words in ("Tag: customer:acme", "How it ended: Done", "Since: Thu 1 Jan", "1 run with this filter."):
        assert words in page, words
    (without,) = re.findall(r'href="([^"]+)" data-test="drop-from"', page)
    assert html.unescape(without) == "/events?tag=customer%3Aacme&state=completed"
    assert "Schedule: Report" in client.get(f"/events?schedule_id={acme}").text
    assert "No run matches." in client.get("/events?status_code=404").text


def test_the_runs_of_a_destination_are_found_by_its_name(
    client: FlaskClient, create: Create, store: Store
) -> None:
    client.put("/api/destinations/crm", json={"url": "http://127.0.0.1:9/crm"})
    given = {"name": "Import", "destination": "crm", "rrule": NEVER}
    made = client.post("/api/schedules", json=given).get_json()["id"]
    create(name="Other")
    event_id = client.post(f"/api/schedules/{made}/trigger").get_json()["event_id"]
    for schedule in client.get("/api/schedules").get_json()["schedules"]:
        if schedule["id"] != made:
            client.post(f"/api/schedules/{schedule['id']}/trigger")
    page = client.get("/events?destination=crm").text
    assert runs(page) == [event_id]
    assert "Destination: crm" in page
    both = client.get("/events?destination=crm&origin=http://a.example")
    assert both.status_code == 422
    assert "a run has one receiver" in both.text


@pytest.mark.usefixtures("in_march")
def test_a_list_that_was_cut_says_so(
    client: FlaskClient, create: Create, ended: Ended, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create(rrule=NEVER)["id"]
    for hours in range(5):
        ended(made, datetime(2026, 3, 2, 12 - hours, tzinfo=UTC), {"status_code": 503})
    page = client.get("/events?limit=2").text
    assert "The newest 2 runs." in page
    (onward,) = re.findall(r'href="([^"]+)" data-test="next-page"', page)
    page = client.get(html.unescape(onward)).text
    assert "2 more, older ones." in page
    (onward,) = re.findall(r'href="([^"]+)" data-test="next-page"', page)
    assert "The last 1 run." in client.get(html.unescape(onward)).text
    monkeypatch.setattr("scheduler_app.store.paging.MAX_EXAMINED", 2)
    page = client.get("/events?error=nothing-has-this").text
    assert "0 runs so far: looked back to Mon 2 Mar 11:00" in page
    assert 'data-test="next-page"' in page


def test_those_selected_are_sent_again_or_cancelled_and_the_filter_stays(
    client: FlaskClient, create: Create, ended: Ended, store: Store
) -> None:
    at = clock.now().replace(microsecond=0) - timedelta(hours=1)
    made = create(tags=["a"], rrule=NEVER)["id"]
    dead = [ended(made, at - timedelta(minutes=each), {"status_code": 503}) for each in range(2)]
    fine = ended(made, at - timedelta(minutes=9), {"status_code": 200}, state="completed")
    form = {"form_token": form_token(client, "/new-schedule"), "tag": "a", "from": "2026-01-01"}
    form |= {"timezone": "Europe/Zurich"}
    answer = client.post("/events/selected", data=form | {"verb": "send_again", "selected": dead})
    assert answer.status_code == 303, answer.text
    where = answer.headers["Location"]
    for part in ("tag=a", "from=2026-01-01", "timezone=Europe", "count=2"):
        assert part in where
    assert "2 sent again" in client.get(where).text
    states = {each: client.get(f"/api/events/{each}").get_json()["state"] for each in (*dead, fine)}
    assert states[fine] == "completed"
    assert "error" not in (states[dead[0]], states[dead[1]])
    left = client.post("/events/selected", data=form | {"verb": "send_again", "selected": [fine]})
    assert "only one in error can be redriven" in html.unescape(left.text)
    assert 'href="/events?tag=a&amp;from=2026-01-01' in left.text
    soon = event(clock.now() + timedelta(minutes=5), made)
    store.events.insert([soon], clock.now(), "made")
    client.post("/events/selected", data=form | {"verb": "cancel", "selected": [soon.id, "no-such"]})
    assert client.get(f"/api/events/{soon.id}").get_json()["state"] == "cancelled"


def test_a_run_that_a_worker_holds_is_not_waited_for_among_many(
    client: FlaskClient, create: Create, store: Store
) -> None:
    made = create(rrule=NEVER)["id"]
    soon = event(clock.now() + timedelta(minutes=5), made)
    store.events.insert([soon], clock.now(), "made")
    store.mongo.collection("events").update_one({"_id": soon.id}, {"$set": {"state": "running"}})
    form = {"form_token": form_token(client, "/new-schedule"), "verb": "cancel", "selected": [soon.id]}
    assert (
        "a worker holds it: cancel it on its own page, which asks the worker"
        in client.post("/events/selected", data=form).text
    )
    assert store.mongo.collection("cancel_requests").count_documents({}) == 0


def hidden(page: str, action: str) -> dict[str, str]:
    """What the form of that address sends but for what people choose."""
    form = page.partition(f'action="{action}"')[2].partition("</form>")[0]
    fields = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form)
    return {name: html.unescape(value) for name, value in fields}


def test_all_that_a_filter_finds_and_that_gave_up_is_sent_again_page_by_page(
    client: FlaskClient, create: Create, ended: Ended, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler_app.api.pages.runs_again.PAGE", 2)
    at = clock.now().replace(microsecond=0) - timedelta(hours=1)
    acme, other = (create(name=tag, tags=[tag], rrule=NEVER)["id"] for tag in ("acme", "other"))
    dead = [ended(acme, at - timedelta(minutes=each), {"status_code": 503}) for each in range(5)]
    left = [
        ended(acme, at - timedelta(minutes=8), {"status_code": 404}),
        ended(acme, at - timedelta(minutes=9), {"status_code": 503}, state="completed"),
        ended(other, at, {"status_code": 503}),
    ]
    assert 'data-test="send-all-again"' not in client.get("/events").text, "it is of a filter"
    assert 'data-test="send-all-again"' not in client.get("/events?tag=acme&state=completed").text
    page = client.get("/events?tag=acme&status_code=503&state=error,retrying").text
    (asked,) = re.findall(r'href="([^"]+)" data-test="send-all-again"', page)
    page = client.get(html.unescape(asked)).text
    assert re.search(r'data-test="question">Send 5 runs again\?<', page)
    assert [words in page for words in ("tag acme", "answer 503", "and 2 more")] == [True] * 3
    assert {client.get(f"/api/events/{each}").get_json()["state"] for each in dead} == {"error"}
    form = hidden(page, "/events/send-again") | {"rate": "1.0"}
    for so_far in (2, 4):
        answer = client.post("/events/send-again", data=form)
        assert f"{so_far} sent again so far" in answer.text, answer.text
        form = hidden(answer.text, "/events/send-again")
    answer = client.post("/events/send-again", data=form)
    assert answer.status_code == 303, answer.text
    for part in ("tag=acme", "status_code=503", "state=error", "count=5"):
        assert part in answer.headers["Location"]
    shown = [client.get(f"/api/events/{each}").get_json() for each in dead]
    assert "error" not in {each["state"] for each in shown}
    due = [datetime.fromisoformat(each["due_at"]) for each in shown]
    assert all(later - first >= timedelta(seconds=1) for first, later in itertools.pairwise(due)), due
    assert client.get(f"/api/events/{left[0]}").get_json()["state"] == "error"
    assert client.get(f"/api/events/{left[2]}").get_json()["state"] == "error"
    assert "Nothing that this filter finds gave up" in client.get("/events/send-again?error=none-has-it").text
    assert "No filter is on: these are all runs that gave up." in client.get("/events/send-again").text
    monkeypatch.setattr("scheduler_app.api.pages.runs_again.MOST_COUNTED", 1)
    assert "Send 1 run or more again?" in client.get("/events/send-again?state=error").text


def test_what_cannot_be_sent_again_is_named(client: FlaskClient, create: Create, ended: Ended) -> None:
    gone = create(tags=["a"], rrule=NEVER)["id"]
    run = ended(gone, clock.now() - timedelta(hours=1), {"status_code": 503})
    client.delete(f"/api/schedules/{gone}")
    form = hidden(client.get("/events/send-again?tag=a").text, "/events/send-again")
    page = client.post("/events/send-again", data=form).text
    assert "0 sent again, 1 not" in page
    assert f'href="/events/{run}"' in page.partition('data-test="refused"')[2]
    assert 'href="/events?tag=a"' in page
    assert client.post("/events/send-again", data={"form_token": form["form_token"]}).status_code == 422


def test_the_list_is_exported_as_a_table_that_no_spreadsheet_computes(
    client: FlaskClient, create: Create, ended: Ended
) -> None:
    at = datetime(2026, 3, 2, 12, tzinfo=UTC)
    made = create(name="=HYPERLINK(1)", tags=["a", "b"], rrule=NEVER)["id"]
    failed = {"status_code": 503, "error": "status 503", "duration_ms": 4_900.0, "lag_ms": -0.5}
    run = ended(made, at, failed, failed)
    ended(create(rrule=NEVER)["id"], at, {"status_code": 200}, state="completed")
    page = client.get("/events?state=error").text
    links = {
        name: html.unescape(path)
        for path, name in re.findall(r'href="([^"]+)" data-test="export-(\w+)"', page)
    }
    file = client.get(links["csv"])
    assert (file.mimetype, 'filename="runs.csv"' in file.headers["Content-Disposition"]) == ("text/csv", True)
    (row,) = csv.DictReader(io.StringIO(file.text))
    assert row == {
        "due": "2026-03-02T12:00:00Z",
        "how it ended": "Failed",
        "schedule": "'=HYPERLINK(1)",
        "schedule id": made,
        "tags": "a b",
        "answer": "503",
        "error": "status 503",
        "tries": "2",
        "late ms": "-0.5",
        "took ms": "4900.0",
        "ended": "2026-03-02T12:00:00Z",
        "run id": run,
    }
    file = client.get(links["ndjson"])
    (line,) = map(json.loads, file.text.splitlines())
    assert (file.mimetype, line["_id"], line["state"]) == ("application/x-ndjson", run, "error")
    assert client.get("/events/export?format=xml").status_code == 422


def test_an_export_has_the_newest_runs_up_to_a_bound(
    client: FlaskClient, create: Create, ended: Ended, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create(rrule=NEVER)["id"]
    at = datetime(2026, 3, 2, 12, tzinfo=UTC)
    newest = [ended(made, at - timedelta(hours=each), {"status_code": 503}) for each in range(5)]
    monkeypatch.setattr("scheduler_app.api.pages.run_exports.PAGE", 2)
    monkeypatch.setattr("scheduler_app.api.pages.run_exports.MOST_EXPORTED", 3)
    for path in ("/events/export?format=csv", "/events/export?format=csv&state=error"):
        found = [row["run id"] for row in csv.DictReader(io.StringIO(client.get(path).text))]
        assert found == newest[:3]
    monkeypatch.setattr("scheduler_app.api.pages.run_exports.MOST_LOOKS", 1)
    assert client.get("/events/export").text.count("\n") == 3


def around(client: FlaskClient, event_id: str) -> list[tuple[str, ...]]:
    """State, words, address and what stands at the end of each line of *Around it*."""
    page = client.get(f"/events/{event_id}").text.partition('data-test="around">')[2].partition("</ul>")[0]
    found = list[tuple[str, ...]]()
    for line in page.split("<li>")[1:]:
        address = re.search(r'href="([^"]+)"', line)
        words = [each for each in re.sub(r"<[^>]+>", "|", line).split("|") if each.strip()]
        found.append((*words, html.unescape(address[1]) if address else ""))
    return found


@pytest.mark.usefixtures("in_march")
def test_a_run_leads_to_what_ran_around_it(client: FlaskClient, create: Create, ended: Ended) -> None:
    at = datetime(2026, 3, 2, 12, tzinfo=UTC)
    report = create(name="Report", rrule=NEVER)["id"]
    first, failed, last = (
        ended(report, at + timedelta(days=days), {"status_code": 503 if days == 0 else 200}, state=state)
        for days, state in ((-7, "completed"), (0, "error"), (7, "completed"))
    )
    assert around(client, failed) == [
        ("Done", "The run before", "Mon 23 Feb 12:00", f"/events/{first}"),
        ("Done", "The run after", "Mon 9 Mar 12:00", f"/events/{last}"),
    ]
    assert around(client, last) == [
        ("Failed", "The run before", "Mon 2 Mar 12:00", f"/events/{failed}"),
        ("To come", "The next run", "Sun 1 Jan 2040 00:00", ""),
    ]


def test_a_run_leads_to_the_other_runs_of_its_receiver_then(
    client: FlaskClient, create: Create, ended: Ended, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = datetime(2026, 3, 2, 12, tzinfo=UTC)
    client.put("/api/destinations/crm", json={"url": "http://127.0.0.1:9/crm"})
    makes = ({"destination": "crm", "rrule": NEVER, "name": name} for name in ("Import", "Export"))
    mine, other = (client.post("/api/schedules", json=each).get_json()["id"] for each in makes)
    run = ended(mine, at, {"status_code": 503})
    beside = [
        ended(other, at + timedelta(minutes=minutes), {"status_code": 200}, state=state)
        for minutes, state in ((-4, "completed"), (1, "completed"), (4, "error"), (6, "error"))
    ]
    elsewhere = ended(create(rrule=NEVER)["id"], at, {"status_code": 200}, state="completed")
    store.mongo.collection("events").update_many(
        {"_id": {"$in": [run, *beside]}}, {"$set": {"origin": destination_key(whole_id("default", "crm"))}}
    )
    (*_, line) = around(client, run)
    assert line[:-1] == ("Not all done", "Other runs of crm then", "2 of 3")
    assert runs(client.get(line[-1]).text) == [*reversed(beside[1:3]), run, beside[0]]
    assert all("Other runs" not in each[1] for each in around(client, elsewhere))
    monkeypatch.setattr("scheduler_app.api.pages.run_neighbours.MOST_NEAR", 2)
    assert around(client, run)[-1][2].endswith("or more")


KEYS = ("reader:0123456789abcdef:read", "boss:fedcba9876543210")


def test_a_key_that_only_reads_sees_no_act_and_is_refused(make_api: Callable[..., Flask]) -> None:
    browser = make_api(api_keys=KEYS).test_client()
    headers = {"Authorization": "Bearer fedcba9876543210"}
    given = {"name": "n", "callback_url": "http://127.0.0.1:9/", "rrule": NEVER}
    made = browser.post("/api/schedules", json=given, headers=headers).get_json()["id"]
    browser.post(f"/api/schedules/{made}/trigger", headers=headers)
    token = form_token(browser, "/sign-in")
    browser.post("/sign-in", data={"form_token": token, "key": "0123456789abcdef"})
    page = browser.get("/events").text
    assert len(runs(page)) == 1
    page += browser.get(f"/events?schedule_id={made}").text
    for sign in ("send-again", "select", "select-all", "send-all-again"):
        assert f'data-test="{sign}"' not in page
    assert browser.get("/events/send-again").status_code == 403
    form = {"form_token": form_token(browser, "/you"), "verb": "cancel", "selected": runs(page)}
    assert browser.post("/events/selected", data=form).status_code == 403


ACME = {"name": "Monday report", "callback_url": "https://reports.acme.example/weekly?token=s3cret",
        "timezone": "Europe/Zurich", "rrule": NEVER}  # fmt: skip


def told(client: FlaskClient, event_id: str) -> list[str]:
    page = client.get(f"/events/{event_id}").text
    text = page.partition('data-test="customer-text">')[2].partition("</div>")[0]
    return [html.unescape(each) for each in re.findall(r"<p>(.*?)</p>", text)]


@pytest.mark.usefixtures("in_march")
def test_a_run_has_a_text_for_the_customer(client: FlaskClient, create: Create, ended: Ended) -> None:
    made = create(**ACME)["id"]
    at = datetime(2026, 3, 2, 5, tzinfo=UTC)
    late = {"error": "no answer within 10 s", "lag_ms": 6.0, "duration_ms": 10_000.0}
    seconds = (0, 40, 171, 743)
    tries = [late | {"started_at": at + timedelta(seconds=each)} for each in seconds]
    called, came_back, reference = told(client, ended(made, at, *tries))
    assert called == (
        "On Monday 2 March at 06:00 (Europe/Zurich) we called https://reports.acme.example/weekly for"
        " “Monday report”, on time."
    )
    assert came_back == (
        "Your server gave no answer (no answer within 10 s). We tried again at 06:00:40, 06:02:51 and"
        " 06:12:23, with the same result."
    )
    assert reference == f"Reference: {made}-1-20260302T050000Z"
    at -= timedelta(days=7)
    tries = [
        late | {"started_at": at, "lag_ms": 120_000.0},
        {"started_at": at + timedelta(hours=20), "status_code": 200, "duration_ms": 4_900.0},
    ]
    called, came_back, _ = told(client, ended(made, at, *tries, state="completed"))
    assert called.endswith("“Monday report”, 2 min late.")
    assert came_back == (
        "Your server gave no answer (no answer within 10 s). We tried again at 02:00:00 on Tuesday"
        " 24 February; the last time it answered 200 OK after 4.9 s."
    )


def test_the_text_for_a_customer_has_a_bound_and_says_when_nothing_was_sent(
    client: FlaskClient, create: Create, ended: Ended
) -> None:
    made = create(**ACME)["id"]
    at = datetime(2026, 3, 2, 5, tzinfo=UTC)
    tries = [{"status_code": 503, "started_at": at + timedelta(minutes=each)} for each in range(12)]
    _, came_back, _ = told(client, ended(made, at, *tries))
    assert came_back == (
        "Your server answered 503 Service Unavailable. We tried again 11 times, the last time at 06:11:00,"
        " with the same result."
    )
    planned, _ = told(client, ended(made, at - timedelta(days=1), state="cancelled"))
    assert planned.endswith(
        "a call for “Monday report” was due. It was cancelled before it began, so we sent nothing."
    )
    message = {"callback_url": "https://acme.example/in?k=s3cret", "body": "x", "event_name": "order.paid"}
    sent = client.post("/api/messages", json=message | {"delay_seconds": 3_600}).get_json()
    waiting, _ = told(client, sent["event_id"])
    assert "a message for “order.paid” was due. Nothing has been sent yet." in waiting
