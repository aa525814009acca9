"""Which events of a schedule hold its next ones back, in each scope."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.schedule import OverlapScope
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from tests.builders import event

SECOND = timedelta(seconds=1)
#: The state of each, by its place in time, and whether it waits for an earlier one.
STATES = [
    (State.RUNNING, False),
    (State.READY_QUEUE, False),
    (State.READY_QUEUE, True),
    (State.RETRYING, False),
    (State.WORKER_QUEUE, True),
    (State.COMPLETED, True),
]


@pytest.fixture
def ids(store: Store, now: datetime) -> list[str]:
    made = [event(now + number * SECOND) for number in range(len(STATES))]
    store.events.insert(made, now, "made")
    events = store.mongo.collection("events")
    for each, (state, waits) in zip(made, STATES, strict=True):
        change: dict[str, Any] = {"state": state.value} | ({"waits_for": "another"} if waits else {})
        events.update_one({"_id": each.id}, {"$set": change})
    return [each.id for each in made]


@pytest.mark.parametrize(
    ("scope", "places"), [("event", [0, 1, 2, 3, 4]), ("attempt", [0, 2, 4])], ids=["events", "attempts"]
)
def test_what_is_not_finished_holds_others_back(
    store: Store, now: datetime, ids: list[str], scope: OverlapScope, places: list[int]
) -> None:
    found = store.overlaps.unfinished("s1", now + 60 * SECOND, scope=scope, limit=10)
    assert [ids.index(each.id) for each in found] == places
    assert store.overlaps.unfinished("s1", now + 60 * SECOND, scope=scope, limit=2) == found[:2]
    assert store.overlaps.unfinished("s1", now + 2 * SECOND, scope=scope, limit=10) == [
        each for each in found if each.run_time <= now + 2 * SECOND
    ]
    assert store.overlaps.unfinished("another", now + 60 * SECOND, scope=scope, limit=10) == []
