"""What people look for among events: by origin, status, error, tag, several states, local times."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.domain.event import Event
from scheduler_app.domain.states import State
from scheduler_app.store import Store, paging
from scheduler_app.store.events import lists
from scheduler_app.store.events.outcomes import OutcomeRecord
from tests.builders import event, schedule

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


def end(
    store: Store,
    now: datetime,
    events: Sequence[Event],
    state: State = State.ERROR,
    status: int | None = 503,
    error: str | None = None,
) -> None:
    """Ends events by one attempt each."""
    ids = [each.id for each in events]
    token, won = store.claims.claim(ids, until=now + HOUR, now=now, lease_seconds=25, worker="w")
    assert len(won) == len(ids)
    entry = {"number": 1, "status_code": status, "error": error}
    store.outcomes.record([OutcomeRecord(each, token, state, "said", None, entry, now) for each in ids])


def found(client: FlaskClient, **query: Any) -> list[str]:
    answer = client.get("/api/events", query_string={"limit": 100} | query)
    assert answer.status_code == 200, answer.text
    return [row["_id"] for row in answer.get_json()["events"]]


def test_events_are_found_by_each_filter_and_by_several_together(
    client: FlaskClient, store: Store, now: datetime
) -> None:
    store.schedules.insert(schedule(now, "s1", tags=("billing",)))
    store.schedules.insert(schedule(now, "s2", tags=("other",)))
    busy, broken, done, waiting = made = [
        event(now, "s1", origin="https://a.test:443"),
        event(now + SECOND, "s1", origin="https://b.test:443"),
        event(now + 2 * SECOND, "s2", origin="https://a.test:443"),
        event(now + HOUR, "s2"),
    ]
    store.events.insert(made, now, "made")
    end(store, now, [busy], status=503)
    end(store, now, [broken], status=None, error="the name was not resolved: Could not resolve host")
    end(store, now, [done], State.COMPLETED, status=204)
    for query, expected in (
        ({"origin": "https://A.test/hook?x=1"}, [done, busy]),
        ({"origin": "unknown"}, [waiting]),
        ({"status_code": "503"}, [busy]),
        ({"status_code": "5xx,200-204"}, [done, busy]),
        ({"error": "NOT RESOLVED"}, [broken]),
        ({"error": "said"}, [done, broken, busy]),
        ({"tag": "billing"}, [broken, busy]),
        ({"tag": "nobody's"}, []),
        ({"tag": "billing", "status_code": "5xx", "state": "error"}, [busy]),
        ({"state": "error,completed"}, [done, broken, busy]),
        ({"state": "ready_queue, error", "schedule_id": "s2"}, [waiting]),
    ):
        assert found(client, **query) == [each.id for each in expected], query


def test_a_filter_that_cannot_be_is_refused_by_its_name(client: FlaskClient) -> None:
    for query, remedy in (
        ({"state": "error,finished"}, "finished"),
        ({"state": ","}, "state"),
        ({"origin": "a.test"}, "https://example.com"),
        ({"status_code": "6xx"}, "5xx"),
        ({"timezone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"from": "2026-03-29T02:30:00"}, "timezone"),
        ({"error": ""}, "1"),
    ):
        answer = client.get("/api/events", query_string=query)
        assert answer.status_code == 422, query
        assert remedy in answer.text, answer.text


def test_times_of_a_zone_are_taken_as_its_clocks_show_them(
    client: FlaskClient, store: Store, now: datetime
) -> None:
    # In Zurich noon in UTC is 13:00.
    made = [event(now + i * HOUR) for i in range(3)]
    store.events.insert(made, now, "made")
    local = {"from": "2026-03-02T13:30:00", "to": "2026-03-02T14:30", "timezone": "Europe/Zurich"}
    assert found(client, **local) == [made[1].id]
    assert found(client, **(local | {"to": "2026-03-02T13:00:00Z"})) == []


@pytest.mark.parametrize("few", [True, False])
def test_a_tag_of_any_number_of_schedules_is_walked_without_a_gap(
    client: FlaskClient, store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch, few: bool
) -> None:
    monkeypatch.setattr(lists, "SCHEDULES_MERGED", 50 if few else 3)
    monkeypatch.setattr(paging, "BATCH", 7)
    for number in range(10):
        store.schedules.insert(schedule(now, f"s{number}", tags=("even" if number % 2 == 0 else "odd",)))
    made = [event(now + i * SECOND, f"s{i % 10}") for i in range(100)]
    store.events.insert(made, now, "made")
    expected = [each.id for i, each in reversed(list(enumerate(made))) if i % 2 == 0]
    walked: list[str] = []
    query: dict[str, Any] = {"tag": "even", "limit": 9}
    while True:
        page = client.get("/api/events", query_string=query).get_json()
        walked += [row["_id"] for row in page["events"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert walked == expected
    assert found(client, tag="even", page=2, limit=9) == expected[9:18]


def test_what_is_to_come_is_listed_soonest_first_and_goes_on_by_cursor(
    client: FlaskClient, store: Store, now: datetime, create: Callable[..., dict[str, Any]]
) -> None:
    owner = create()["id"]
    made = [event(now + i * SECOND, owner) for i in range(7)]
    store.events.insert(made, now, "made")
    url = f"/api/schedules/{owner}/events/pending"
    first = client.get(url, query_string={"limit": 3}).get_json()
    assert [row["_id"] for row in first["events"]] == [each.id for each in made[:3]]
    rest = client.get(url, query_string={"limit": 4, "cursor": first["next_cursor"]}).get_json()
    assert [row["_id"] for row in rest["events"]] == [each.id for each in made[3:]]
    assert rest["next_cursor"] is None
    second = client.get(url, query_string={"limit": 3, "page": 2}).get_json()
    assert [row["_id"] for row in second["events"]] == [each.id for each in made[3:6]]


def test_history_leaves_out_what_was_withdrawn_before_it_was_due_unless_it_is_asked_for(
    client: FlaskClient, store: Store, now: datetime, create: Callable[..., dict[str, Any]]
) -> None:
    owner = create()["id"]
    done, too_late, early = made = [event(now + i * HOUR, owner) for i in (-2, -1, 1)]
    store.events.insert(made, now - 3 * HOUR, "made")
    end(store, now - 2 * HOUR, [done], State.COMPLETED, 200)
    for each in (too_late, early):
        assert store.cancellations.cancel(each.id, now, "withdrawn")
    url = f"/api/schedules/{owner}/events/history"
    shown = [row["_id"] for row in client.get(url).get_json()["events"]]
    assert shown == [too_late.id, done.id]
    everything = [row["_id"] for row in client.get(f"{url}?include=cancelled").get_json()["events"]]
    assert everything == [early.id, too_late.id, done.id]
    assert client.get(f"{url}?include=everything").status_code == 422
