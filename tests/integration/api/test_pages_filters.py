"""Filters that people type into pages: what cannot be used is said beside them. Dead letters have some."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.store import Store
from tests.integration.api.page_forms import form_token

Create = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/events?from=yesterday&tag=t", "from: "),
        ("/events?status_code=abc", "status_code"),
        ("/dead-letters?from=yesterday&tag=t", "from: "),
        ("/dead-letters?to=2026-13-45", "to: "),
        ("/messages?state=running+wild", "state: "),
    ],
)
def test_a_filter_that_cannot_be_used_stays_on_its_page_with_what_is_wrong(
    client: FlaskClient, path: str, said: str
) -> None:
    answer = client.get(path)
    assert answer.status_code == 422
    wrong = re.search(r'data-test="filter-refused">([^<]*)<', answer.text)
    assert wrong
    assert said in wrong[1]
    typed = path.partition("?")[2].partition("&")[0].partition("=")[2].replace("+", " ")
    assert f'value="{typed}"' in answer.text or "running" in typed
    assert 'data-test="filter"' in answer.text


@pytest.fixture
def dead(client: FlaskClient, create: Create, store: Store) -> Callable[..., str]:
    """Makes a dead letter of a new schedule; returns the schedule's id."""

    def made(name: str, tags: list[str], run_time: datetime) -> str:
        schedule_id: str = create(name=name, tags=tags)["id"]
        event_id = client.post(f"/api/schedules/{schedule_id}/trigger").get_json()["event_id"]
        store.mongo.collection("events").update_one(
            {"_id": event_id},
            {
                "$set": {
                    "state": "error",
                    "run_time": run_time,
                    "archived_at": datetime.now(UTC),
                    "attempts": [{"number": 1, "status_code": 503, "error": None}],
                },
                "$unset": {"due_at": ""},
            },
        )
        return schedule_id

    return made


def test_causes_name_schedules_and_tags_and_are_filtered_by_tag_and_time(
    client: FlaskClient, dead: Callable[..., str]
) -> None:
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    ids = [dead(f"Job {n}", ["billing", f"t{n}"], noon + timedelta(hours=n)) for n in range(4)]
    dead("Other", ["zoo"], noon)

    def shown(query: str) -> tuple[str, str, str]:
        page = client.get(f"/dead-letters?{query}").text
        count = re.search(r"<strong>(\d+)</strong>", page)
        cells = [
            re.sub(r"<[^>]*>", "", cell)
            for cell in re.findall(r'data-test="(?:schedules|tags)">(.*?)</div>', page, re.DOTALL)
        ]
        return (count[1], cells[0], cells[1]) if count else ("0", "", "")

    count, schedules, tags = shown("")
    assert (count, "and 2 more" in schedules, tags.startswith("billing")) == ("5", True, True)
    count, schedules, _ = shown("tag=billing")
    assert (count, "Job" in schedules, "Other" in schedules, "and 1 more" in schedules) == (
        "4",
        True,
        False,
        True,
    )
    assert shown("tag=zoo") == ("1", "Other", "zoo")
    assert shown("from=2026-03-02T13:00&to=2026-03-02T15:00")[0] == "2"
    assert shown("tag=none-has-it")[0] == "0"
    assert ids


def test_what_is_done_to_a_filtered_cause_is_done_to_nothing_else(
    client: FlaskClient, dead: Callable[..., str]
) -> None:
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    for tag, hour in (("a", 0), ("a", 5), ("b", 0)):
        dead("x", [tag], noon + timedelta(hours=hour))
    query = "tag=a&to=2026-03-02T13:00"
    page = client.get(f"/dead-letters?{query}").text
    form = dict(re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', page.partition("send-again")[2]))
    assert form["tag"] == "a"
    exported = client.get("/dead-letters/export", query_string={k: form[k] for k in ("origin", "tag", "to")})
    assert len(exported.text.splitlines()) == 1
    form["form_token"] = form_token(client, "/dead-letters")
    done = client.post("/dead-letters/send-again", data=form)
    assert (done.status_code, "count=1" in done.headers["Location"]) == (303, True)
    assert "tag=a" in done.headers["Location"]
    left = client.get("/api/events?state=error").get_json()["events"]
    assert len(left) == 2
