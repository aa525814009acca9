"""The figures of events are those of the documents that are asked for, and of no others."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.states import FINAL, State
from scheduler_app.store import Store
from scheduler_app.store.events import figures
from scheduler_app.store.events.figures import EventSummary
from scheduler_app.store.paging import MAX_MS
from tests.examined import time_limits

SECOND = timedelta(seconds=1)


def plant(store: Store, *rows: dict[str, Any]) -> None:
    usual = {"tenant": TENANT, "schedule_id": "s1", "revision": 1, "state": "completed"}
    store.mongo.collection("events").insert_many([usual | row for row in rows])


def of_each_way(store: Store, since: datetime, until: datetime, most: int = 9) -> list[list[EventSummary]]:
    """The same events of `s1`, as each question answers."""
    ask = store.event_figures
    return [
        ask.newest(TENANT, since, until, most=most),
        ask.newest(TENANT, since, until, most=most, schedule_ids=["s1"]),
        ask.of_schedule("s1", since, until, most=most),
        ask.last_of_each(["none", "s1"], until, most=most)["s1"],
    ]


def test_an_event_is_summed_up_with_its_last_attempt(store: Store, now: datetime) -> None:
    attempts = [
        {"lag_ms": 1, "duration_ms": 2, "status_code": 500},
        {"lag_ms": 7, "duration_ms": 8.5, "status_code": 200},
    ]
    plant(store, {"_id": "e1", "run_time": now, "attempt": 2, "attempts": attempts, "archived_at": now})
    summed = EventSummary("e1", "s1", now, State.COMPLETED, 7.0, 8.5, 200, was_withdrawn=False, tries=2)
    assert of_each_way(store, now, now + SECOND) == [[summed]] * 4


def test_the_newest_of_a_span_come_first(store: Store, now: datetime) -> None:
    # The ids are in another order than the times, and two events have the same time.
    seconds = {"d": -1, "c": 0, "a": 1, "b": 1, "0": 2, "e": 3}
    plant(store, *({"_id": each, "run_time": now + at * SECOND} for each, at in seconds.items()))
    span = now, now + 3 * SECOND
    found = [[each.id for each in rows] for rows in of_each_way(store, *span)]
    assert found == [["0", "b", "a", "c"]] * 3 + [["0", "b", "a", "c", "d"]]
    assert [[each.id for each in rows] for rows in of_each_way(store, *span, most=2)] == [["0", "b"]] * 4


def test_no_other_tenant_s_and_no_other_schedule_s_events_count(store: Store, now: datetime) -> None:
    plant(
        store,
        {"_id": "mine", "run_time": now},
        {"_id": "second", "run_time": now + SECOND, "schedule_id": "s2"},
        {"_id": "third", "run_time": now + 2 * SECOND, "schedule_id": "s3"},
        {"_id": "foreign", "run_time": now, "tenant": "acme", "schedule_id": "acme:s1"},
    )
    ask, span = store.event_figures, (now, now + 9 * SECOND)
    assert [each.id for each in ask.newest(TENANT, *span, most=9)] == ["third", "second", "mine"]
    some = ask.newest(TENANT, *span, most=9, schedule_ids=["s1", "s2"])
    assert [each.id for each in some] == ["second", "mine"]
    assert [each.id for each in ask.of_schedule("s1", *span, most=9)] == ["mine"]
    found = ask.last_of_each(["s1", "s3", "s2", "none"], span[1], most=9)
    told = {each: [row.id for row in rows] for each, rows in found.items()}
    assert told == {"s1": ["mine"], "s3": ["third"], "s2": ["second"], "none": []}
    assert ask.last_of_each([], span[1], most=9) == {}


def test_only_what_was_cancelled_before_it_was_due_was_withdrawn(store: Store, now: datetime) -> None:
    cancelled = {"run_time": now, "state": "cancelled"}
    plant(
        store,
        cancelled | {"_id": "f-before", "archived_at": now - SECOND},
        cancelled | {"_id": "e-then", "archived_at": now},
        cancelled | {"_id": "d-later", "archived_at": now + SECOND},
        cancelled | {"_id": "c-bent", "archived_at": "never"},
        {"_id": "b-expired", "run_time": now, "state": "expired", "archived_at": now - SECOND},
        {"_id": "a-waits", "run_time": now, "state": "ready_queue"},
    )
    shown = ["e-then", "d-later", "c-bent", "b-expired", "a-waits"]
    all_rows, some_rows, *without = of_each_way(store, now, now + SECOND)
    assert [[each.id for each in rows] for rows in without] == [shown, shown]
    assert all_rows == some_rows
    assert [(each.id, each.was_withdrawn) for each in all_rows] == [
        ("f-before", True),
        *((each, False) for each in shown),
    ]


@pytest.mark.parametrize("attempts", ["bent", [], ["bent"], {}, None])
def test_attempts_that_are_none_have_no_figures(store: Store, now: datetime, attempts: object) -> None:
    plant(store, {"_id": "e1", "run_time": now, "attempts": attempts})
    nothing = EventSummary("e1", "s1", now, State.COMPLETED, None, None, None)
    assert of_each_way(store, now, now + SECOND) == [[nothing]] * 4


@pytest.mark.parametrize("bent", ["late", True, None])
def test_figures_of_a_wrong_type_are_none(store: Store, now: datetime, bent: object) -> None:
    attempt = {"lag_ms": bent, "duration_ms": bent, "status_code": "200"}
    plant(store, {"_id": "e1", "run_time": now, "attempt": "two", "attempts": [attempt]})
    nothing = EventSummary("e1", "s1", now, State.COMPLETED, None, None, None)
    assert of_each_way(store, now, now + SECOND) == [[nothing]] * 4


def test_documents_that_no_figure_can_be_made_of_hide_no_others(store: Store, now: datetime) -> None:
    plant(
        store,
        {"_id": "e1", "run_time": now},
        {"_id": "e2", "run_time": now, "state": "no state"},
        {"_id": "e3", "run_time": [now]},
    )
    assert [[each.id for each in rows] for rows in of_each_way(store, now, now + SECOND)] == [["e1"]] * 4
    # What has a list for its schedule is found like that schedule's.
    plant(store, {"_id": "e4", "run_time": now, "schedule_id": ["s1"]})
    (found,) = store.event_figures.last_of_each(["s1"], now + SECOND, most=9).values()
    assert [each.id for each in found] == ["e1"]


def test_the_newest_states_are_those_of_the_schedule_that_is_there(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "MOST", 3)
    store.mongo.collection("schedules").insert_many(
        [{"_id": "s1"}, {"_id": "again", "first_revision": 3}, {"_id": "other"}]
    )
    states = {"e": "error", "d": "completed", "c": "expired", "b": "running", "a": "cancelled"}
    ids = enumerate(states.items())
    plant(store, *({"_id": each, "run_time": now + at * SECOND, "state": state} for at, (each, state) in ids))
    again = {"schedule_id": "again", "run_time": now}
    plant(
        store,
        again | {"_id": "old", "state": "error", "revision": 2},
        again | {"_id": "new", "state": "completed", "revision": 3},
        {"_id": "others", "schedule_id": "other", "run_time": now},
    )
    assert store.newest_events.states(["s1", "again", "none"], FINAL) == {
        "s1": [State.CANCELLED, State.EXPIRED, State.COMPLETED],
        "again": [State.COMPLETED],
    }


def test_mongodb_gives_up_what_takes_too_long(store: Store, now: datetime) -> None:
    store.mongo.collection("schedules").insert_one({"_id": "s1"})
    plant(store, {"_id": "e1", "run_time": now})
    assert set(time_limits(store, lambda: of_each_way(store, now, now + SECOND))) == {MAX_MS}
    assert set(time_limits(store, lambda: store.newest_events.states(["s1"], FINAL))) == {MAX_MS}
