"""The overview: 24 hours beside the 24 before, and what was changed since yesterday."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.clock import clock
from scheduler_app.domain.figures import HOUR, MINUTE, FigurePart, FigureSubject, begin_of_part
from scheduler_app.domain.ids import TENANT
from scheduler_app.store import Store
from scheduler_app.store.schedules.schedules import Schedules
from scheduler_app.usecases.questions.timed_figures import DAY, FigureQuestions
from tests.integration.api.conftest import ToldTime
from tests.integration.api.test_pages_access import sign_in

Create = Callable[..., dict[str, Any]]
ADMIN, READER = "0123456789abcdef", "fedcba9876543210"


@pytest.fixture
def half_past(time: ToldTime) -> datetime:
    """So that each hour has a part on both sides of what is a day ago."""
    time.at = begin_of_part(clock.now(), HOUR) + 30 * MINUTE
    return time.at


def counted(store: Store, at: datetime, outcome: str = "completed", lag_ms: float = 5.0) -> None:
    """One attempt that ended then, as workers count it."""
    minute, hour = FigurePart(begin_of_part(at, MINUTE)), FigurePart(begin_of_part(at, HOUR))
    for part in (minute, hour):
        part.add(outcome, lag_ms, 10.0)
    subject = FigureSubject(TENANT)
    store.figure_counters.add([(subject, MINUTE, minute), (subject, HOUR, hour)])


def test_a_day_is_told_from_the_one_before_to_the_minute(store: Store, half_past: datetime) -> None:
    now, questions = half_past, FigureQuestions(store)
    newer = [now - MINUTE, now - 12 * HOUR, now - DAY + 29 * MINUTE, now - DAY + MINUTE]
    older = [now - DAY, now - DAY - 30 * MINUTE, now - 36 * HOUR, now - 2 * DAY + MINUTE]
    for at in (*newer, *older, now - 2 * DAY, now - 2 * DAY - 29 * MINUTE):
        counted(store, at)
    found = questions.of_day(TENANT, now)
    assert (found.start, found.end) == (now - DAY + MINUTE, now)
    assert found.total.outcomes == {"completed": 4}
    assert found.before is not None
    assert found.before.outcomes == {"completed": 4}
    assert [sum(part.outcomes.values()) for part in found.hours] == [2, *[0] * 11, 1, *[0] * 11, 1]
    assert found.hours[0].at == begin_of_part(now - DAY, HOUR)


def test_nothing_is_compared_with_a_time_of_which_nothing_is_known(store: Store, half_past: datetime) -> None:
    counted(store, half_past - 2 * DAY + HOUR)
    counted(store, half_past - HOUR)
    found = FigureQuestions(store).of_day(TENANT, half_past)
    assert (found.total.outcomes, found.before) == ({"completed": 1}, None)


def test_a_day_is_made_of_few_documents(
    store: Store, half_past: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def minutes() -> Iterator[tuple[FigureSubject, timedelta, FigurePart]]:
        for number in range(2 * 24 * 60):
            part = FigurePart(half_past - number * MINUTE)
            part.add("completed", 1.0, 1.0)
            yield FigureSubject(TENANT), MINUTE, part
            yield FigureSubject(TENANT), HOUR, FigurePart(begin_of_part(part.at, HOUR), part.outcomes)

    store.figure_counters.add(minutes())
    counters = store.figure_counters
    read, rows = counters.read, 0

    def counting(*asked: Any) -> list[FigurePart]:
        nonlocal rows
        found = read(*asked)
        rows += len(found)
        return found

    monkeypatch.setattr(counters, "read", counting)
    found = FigureQuestions(store).of_day(TENANT, half_past)
    assert found.total.outcomes == {"completed": 24 * 60}
    assert rows <= 170


def test_the_overview_says_how_many_ended_late_and_failed_beside_the_day_before(
    client: FlaskClient, store: Store, half_past: datetime
) -> None:
    assert 'data-test="day"' not in client.get("/").text, "nothing ran yet"
    for number in range(3):
        counted(store, half_past - HOUR, "error" if number == 0 else "completed", 1_500.0 * number)
    counted(store, half_past - HOUR, "retrying", 1_000.0)
    counted(store, half_past - 30 * HOUR, "error", 30_000.0)
    page = client.get("/").text
    day = re.sub("<[^>]+>", " ", page.partition('data-test="day">')[2].partition("24 hours as a table")[0])
    assert re.findall(r"in 24 hours\s+(\d+)\s+([^·]+?)(?: ·|\s\s)", day) == [
        ("3", "ended"),
        ("2", "began more than a second late"),
        ("1", "gave up"),
    ]
    bars = re.findall(
        r'height="([0-9.]+)" class="is-(completed|error)"', page.partition('data-test="day"')[2]
    )
    assert bars == [("37.3", "completed"), ("18.7", "error"), ("56.0", "error")], "each chart by its highest"
    assert "24 hours before" not in day, "two days are not known"
    assert "66.7 % done" in day
    counted(store, half_past - 2 * DAY - HOUR)
    assert client.get("/").text.count("1 the 24 hours before") == 3


def test_what_people_changed_since_yesterday_is_listed_with_the_names_of_schedules(
    client: FlaskClient, create: Create, store: Store, time: ToldTime
) -> None:
    assert 'data-test="changed"' not in client.get("/").text
    made = create(name="<b>Invoices")["id"]
    store.audit_chain.move_owed(limit=9)
    client.put(f"/api/schedules/{made}", json={"every_seconds": 77}, headers={"Scheduler-Reason": "slower"})
    client.put("/api/kill-switch", json={"tag": "t"})
    changed = client.get("/").text.partition('data-test="changed"')[2].partition("</section>")[0]
    rows = re.findall(r"<li>(.*?)</li>", changed)
    assert len(rows) == 3
    assert f'href="/schedules/{made}"' in rows[1]
    assert ("&lt;b&gt;Invoices" in rows[1], "“slower”" in rows[1]) == (True, True)
    assert re.search(r"<ins>\+[\d,]+ runs</ins>", rows[1])
    time.at += DAY + MINUTE
    assert 'data-test="changed"' not in client.get("/").text


def test_what_the_scheduler_did_by_itself_and_sign_ins_are_no_changes_and_five_are_shown(
    make_api: Callable[..., Flask], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_api(api_keys=(f"ann:{ADMIN}", f"eve:{READER}:read"))
    client, reader = app.test_client(), app.test_client()
    header = {"X-API-Key": ADMIN}
    body = {"name": "n", "delay_seconds": 86_400, "callback_url": "http://127.0.0.1:9/"}
    ids = [client.post("/api/schedules", json=body, headers=header).get_json()["id"] for _ in range(7)]
    past = clock.now() - timedelta(seconds=1)
    store.mongo.collection("schedules").update_one({"_id": ids[0]}, {"$set": {"finishes_at": past}})
    store.cursors.finish_ended(clock.now())
    store.audit_chain.move_owed(limit=99)
    sign_in(client, ADMIN)
    asked: list[int] = []
    ask = Schedules.for_delivery

    def asking(self: Schedules, ids: Sequence[str]) -> Any:
        asked.append(len(ids))
        return ask(self, ids)

    monkeypatch.setattr(Schedules, "for_delivery", asking)
    changed = client.get("/").text.partition('data-test="changed"')[2].partition("</section>")[0]
    assert re.findall(r"<b>ann</b> (\w+)", changed) == ["created"] * 5
    assert asked == [5], "one question finds all names"
    sign_in(reader, READER)
    assert 'data-test="changed"' not in reader.get("/").text, "the audit needs the scope admin"
