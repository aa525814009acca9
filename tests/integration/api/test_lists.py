"""Lists by page and by cursor, on events and schedules that come and go."""

import random
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.store import Store, paging
from tests.builders import event, schedule

SECOND = timedelta(seconds=1)


def walk(client: FlaskClient, url: str, what: str = "events", **query: Any) -> Iterator[dict[str, Any]]:
    """Every row of a list, by its cursors."""
    while True:
        answer = client.get(url, query_string=query)
        assert answer.status_code == 200, answer.text
        page = answer.get_json()
        yield from page[what]
        if page["next_cursor"] is None:
            return
        query["cursor"] = page["next_cursor"]


def ids(rows: Any) -> list[str]:
    return [row.get("_id") or row["id"] for row in rows]


def test_events_are_listed_newest_run_time_first_within_from_and_to(
    client: FlaskClient, store: Store, now: datetime
) -> None:
    made = [event(now + i * SECOND, f"s{i % 2}") for i in range(30)]
    store.events.insert(made, now, "made")
    expected = [each.id for each in reversed(made)]
    assert ids(client.get("/api/events").get_json()["events"]) == expected[:10]
    assert ids(client.get("/api/events?limit=10&page=3").get_json()["events"]) == expected[20:]
    times = {"from": (now + 5 * SECOND).isoformat(), "to": (now + 8 * SECOND).isoformat()}
    assert ids(walk(client, "/api/events", limit=2, **times)) == [made[i].id for i in (7, 6, 5)]
    assert ids(walk(client, "/api/events", limit=4, schedule_id="s1")) == expected[::2]


def test_events_are_found_by_schedule_and_state(client: FlaskClient, store: Store, now: datetime) -> None:
    store.events.insert([event(now + i * SECOND, f"s{i % 2}") for i in range(20)], now, "made")
    store.cancellations.cancel_all("s1", 1, now, "gone")
    for state, schedule_id, count in (
        ("cancelled", "s1", 10),
        ("cancelled", "s0", 0),
        ("ready_queue", "s0", 10),
    ):
        query = {"state": state, "schedule_id": schedule_id}
        assert len(list(walk(client, "/api/events", limit=3, **query))) == count
    assert len(list(walk(client, "/api/events", limit=7, state="cancelled"))) == 10


@pytest.mark.parametrize("count", [1_200, pytest.param(10_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("query", [{}, {"schedule_id": "s1"}, {"schedule_id": "s1", "state": "ready_queue"}])
def test_a_cursor_neither_repeats_nor_misses_what_is_there_throughout(
    client: FlaskClient, store: Store, now: datetime, query: dict[str, str], count: int
) -> None:
    draw = random.Random(7)
    # Many share an instant: the id decides among them.
    lasting = [event(now + (i // 40) * SECOND, f"s{i % 2}", revision=i + 1) for i in range(count)]
    store.events.insert(lasting, now, "made")
    wanted = {each.id for each in lasting if not query or each.schedule_id == "s1"}
    ended = threading.Event()

    def come_and_go() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            fleeting = [
                event(
                    now + draw.randrange(count // 40) * SECOND,
                    f"s{draw.randrange(2)}",
                    revision=10_000 + number * 20 + i,
                )
                for i in range(20)
            ]
            store.events.insert(fleeting, now, "made")
            store.mongo.collection("events").delete_many({"_id": {"$in": [each.id for each in fleeting]}})

    changing = threading.Thread(target=come_and_go)
    changing.start()
    try:
        found = ids(walk(client, "/api/events", limit=37, **query))
    finally:
        ended.set()
        changing.join()
    assert len(found) == len(set(found))
    assert wanted <= set(found)


def test_a_rare_state_is_found_however_far_it_is(
    client: FlaskClient, store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "MAX_EXAMINED", 50)
    store.events.insert([event(now + i * SECOND, f"s{i == 3}") for i in range(220)], now, "made")
    store.cancellations.cancel_all("sTrue", 1, now, "gone")
    first = client.get("/api/events?state=cancelled").get_json()
    assert (first["events"], first["next_cursor"] is None) == ([], False)
    assert len(list(walk(client, "/api/events", state="cancelled"))) == 1


def test_schedules_made_at_one_instant_are_walked_without_a_gap(
    client: FlaskClient, store: Store, now: datetime
) -> None:
    made = [schedule(now, f"s{number:03}", tags=("a",)) for number in range(50)]
    for each in made:
        store.schedules.insert(each)
    expected = [each.id for each in reversed(made)]
    for query in ({}, {"state": "active"}, {"name": "test"}, {"tag": "a"}, {"tag": "a", "state": "active"}):
        assert ids(walk(client, "/api/schedules", "schedules", limit=7, **query)) == expected
    assert list(walk(client, "/api/schedules", "schedules", tag="b")) == []


def test_pending_and_history_go_on_by_cursor(
    client: FlaskClient, store: Store, now: datetime, create: Callable[..., dict[str, Any]]
) -> None:
    made = create()["id"]
    store.events.insert([event(now + i * SECOND, made) for i in range(20)], now, "made")
    store.cancellations.cancel_past_cut(made, 2, now + 9 * SECOND, now, "cut")
    for which, query in (("pending", {}), ("history", {"include": "cancelled"})):
        found = ids(walk(client, f"/api/schedules/{made}/events/{which}", limit=3, **query))
        assert len(set(found)) == len(found) == 10


def test_what_is_to_come_is_listed_to_its_end_however_much_is_done(
    client: FlaskClient, store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "MAX_EXAMINED", 50)
    store.events.insert([event(now + i * SECOND) for i in range(220)], now, "made")
    store.cancellations.cancel_all("s1", 1, now, "gone")
    store.events.insert([event(now + i * SECOND) for i in range(220, 223)], now, "made")
    answer = client.get("/api/schedules/s1/events/pending").get_json()
    assert (len(answer["events"]), answer["next_cursor"]) == (3, None)
