"""Search by words, and tags with what ran of each."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.api.services import Services
from scheduler_app.domain.cause import Tally, failing_key
from scheduler_app.domain.ids import TENANT
from scheduler_app.store import Store
from scheduler_app.store import search as search_store
from scheduler_app.usecases.questions import search as questions
from scheduler_app.usecases.questions.search import SearchQuestions
from tests.builders import event, schedule
from tests.examined import examined
from tests.integration.api.conftest import ToldTime
from tests.integration.conftest import NOON

Create = Callable[..., dict[str, Any]]
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)


def found(client: FlaskClient, words: str, **query: Any) -> dict[str, Any]:
    answer = client.get("/api/search", query_string={"q": words, **query})
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.get_json()
    return shown


def test_words_are_found_in_names_tags_phrases_and_urls_whatever_the_case(
    client: FlaskClient, create: Create
) -> None:
    url = "http://127.0.0.1:9/Reports/weekly?token=hidden-acme-token"
    report = create(name="Monday Report (v2.*)", tags=["customer:acme"], callback_url=url)["id"]
    worded = create(name="other", phrase="every last friday at 9")["id"]

    def schedules(words: str) -> list[tuple[str, str]]:
        return [(each["id"], each["found_in"]) for each in found(client, words)["schedules"]]

    assert schedules("monday rep") == schedules("DAY REPORT (V2.*)") == [(report, "name")]
    assert schedules("ACME") == [(report, "tag")]
    assert schedules("Last Friday") == [(worded, "phrase")]
    assert schedules("reports/WEEKLY") == [(report, "url")]
    assert schedules(worded) == [(worded, "id")]
    # The query of a URL may hold secrets: it is not searched, and not shown.
    assert schedules("hidden") == schedules("token=") == []
    assert "hidden" not in client.get("/api/search?q=report").text
    assert schedules(".*") == [(report, "name")]
    assert found(client, "acme")["tags"] == [{"tag": "customer:acme", "schedules": 1}]
    assert client.delete(f"/api/schedules/{report}").status_code == 200
    assert schedules("acme") == []
    assert found(client, "acme")["tags"] == []


def test_destinations_events_and_messages_are_found(client: FlaskClient, create: Create) -> None:
    body = {"url": "http://127.0.0.1:9/Erp/in?key=hidden"}
    assert client.put("/api/destinations/acme-reports", json=body).status_code == 201
    made = create(id="nightly-7", run_at="2040-01-01T00:00:00Z")["id"]
    event_id = client.post(f"/api/schedules/{made}/trigger").get_json()["event_id"]
    message = {
        "id": "order-4711",
        "callback_url": "http://127.0.0.1:9/",
        "scheduled_at": "2040-01-01T00:00:00Z",
    }
    assert client.post("/api/messages", json=message).status_code == 201
    for words in ("ACME-rep", "erp/"):
        (destination,) = found(client, words)["destinations"]
        assert destination["name"] == "acme-reports"
        assert "hidden" not in destination["url"]
    assert found(client, "hidden")["destinations"] == []
    (seen,) = found(client, event_id[:-3])["events"]
    assert (seen["id"], seen["schedule_id"]) == (event_id, made)
    assert [each["id"] for each in found(client, "order-4")["messages"]] == ["order-4711"]
    # The beginning alone: the rest of an id is looked for by nobody.
    assert found(client, "4711")["messages"] == []


def test_ids_that_begin_as_those_of_other_tenants_are_found_without_reading_their_events(
    store: Store,
) -> None:
    now = NOON
    others = ("a", "acme", "acme-2", "beta")
    mine = ["acme-nightly", "acme"]
    every = [*mine, *(f"{tenant}:s{number}" for tenant in others for number in range(300))]
    store.events.insert([event(now, each) for each in every], now, "made")
    found, read = examined(store, lambda: store.search.events(TENANT, "ac", limit=5))
    assert {each.schedule_id for each in found} == set(mine)
    assert read.documents <= 5 * len(others)
    assert [each.schedule_id for each in store.search.events("acme", "s29", limit=2)] == [
        "acme:s299",
        "acme:s298",
    ]


def test_what_is_old_is_found_within_the_time_or_the_answer_says_that_it_is_incomplete(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_store, "CHUNK", 10)
    many = [
        schedule(NOON + number * SECOND, f"s{number}", name=f"job {number} {'old' if number < 3 else ''}")
        for number in range(45)
    ]
    # Of one instant there may be more than a chunk has.
    many += [schedule(NOON + 20 * SECOND, f"t{number}", name=f"twin {number}") for number in range(15)]
    assert all(store.schedules.insert_many(many))
    whole = SearchQuestions(store, seconds=300).search(TENANT, "old", limit=5)
    assert [each.id for each in whole.schedules] == ["s2", "s1", "s0"]
    assert not whole.incomplete
    assert len(SearchQuestions(store, seconds=300).search(TENANT, "twin", limit=50).schedules) == 15
    short = SearchQuestions(store, seconds=-1)
    assert (
        short.search(TENANT, "old", limit=5).schedules,
        short.search(TENANT, "old", limit=5).incomplete,
    ) == (
        [],
        True,
    )
    # The beginning of a name is found by its index, however old it is.
    assert [each.id for each in short.search(TENANT, "job 1 o", limit=5).schedules] == ["s1"]
    assert SearchQuestions(store, seconds=300).search(TENANT, "job", limit=5).incomplete


def test_tags_are_listed_by_their_beginning_page_by_page(
    client: FlaskClient, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tags in (["team:a", "customer:acme"], ["customer:acme", "customer:b"], ["customer:c"], ["x"]):
        create(tags=tags)
    every = client.get("/api/tags").get_json()
    assert [each["tag"] for each in every["tags"]] == [
        "customer:acme",
        "customer:b",
        "customer:c",
        "team:a",
        "x",
    ]
    assert every["next"] is None
    first = client.get("/api/tags?prefix=customer:&limit=2").get_json()
    assert first == {
        "tags": [{"tag": "customer:acme", "schedules": 2}, {"tag": "customer:b", "schedules": 1}],
        "next": "customer:b",
    }
    rest = client.get("/api/tags?prefix=customer:&limit=2&after=customer:b").get_json()
    assert rest == {"tags": [{"tag": "customer:c", "schedules": 1}], "next": None}
    monkeypatch.setattr(questions, "MOST_COUNTED", 1)
    assert client.get("/api/tags?prefix=customer:a").get_json()["tags"][0]["schedules"] == 1


def test_a_tag_is_summed_up_by_day_with_what_of_it_fails(
    app: Flask, client: FlaskClient, create: Create, time: ToldTime
) -> None:
    time.at = NOON
    services: Services = app.extensions["scheduler"]
    store = services.store
    made = create(tags=["customer:acme"], rrule="DTSTART:20200101T150000Z\nRRULE:FREQ=DAILY")["id"]
    create(rrule="DTSTART:20200101T150000Z\nRRULE:FREQ=DAILY")
    store.events.insert([event(NOON - DAY, made)], NOON, "made")
    store.mongo.collection("events").update_one(
        {"_id": event(NOON - DAY, made).id}, {"$set": {"state": "error"}}
    )
    key = failing_key("e", "http://127.0.0.1:9", 503, None)
    tally = Tally(key, NOON, NOON, dead=1)
    tally.add("e", made, NOON, "503", tags=("customer:acme",), is_first=True, gave_up=True, is_dead=True)
    store.causes.touch([tally])
    query = {"tag": "customer:acme", "from": (NOON - 2 * DAY).isoformat(), "to": (NOON + 2 * DAY).isoformat()}
    shown = client.get("/api/tags/summary", query_string=query).get_json()
    assert (shown["tag"], shown["schedules"], shown["notes"]) == ("customer:acme", 1, [])
    days = [(day["from"][:10], day["failed"], day["to_come"]) for day in shown["days"]]
    today = NOON.date()
    assert days == [
        (f"{today + number * DAY}", int(number == -1), int(number in (0, 1))) for number in range(-2, 3)
    ]
    assert [each["schedules"]["count"] for each in shown["failures"]] == [1]
    other = client.get("/api/tags/summary?tag=nobody").get_json()
    assert (other["schedules"], other["failures"]) == (0, [])


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/api/search", "q"),
        ("/api/search?q=", "q"),
        ("/api/search?q=a%00b", "q"),
        (f"/api/search?q={'a' * 201}", "q"),
        ("/api/search?q=a&limit=51", "limit"),
        ("/api/tags?limit=101", "limit"),
        ("/api/tags/summary", "tag"),
        ("/api/tags/summary?tag=a&timezone=Mars/Base", "timezone"),
        ("/api/tags/summary?tag=a&from=2040-01-01T00:00:00Z&to=2041-01-01T00:00:00Z", "to"),
    ],
)
def test_a_wrong_question_is_refused_by_its_field(client: FlaskClient, path: str, field: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["pointer"].endswith(field)
