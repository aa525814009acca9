"""Dead letters are told apart by what their last attempts have in common."""

from datetime import datetime, timedelta
from typing import Any

from scheduler_app.domain.event import State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import Record
from tests.builders import event

SECOND = timedelta(seconds=1)


def fail(store: Store, now: datetime, number: int, **attempt: object) -> None:
    made = event(now + number * SECOND, f"s{number}")
    store.events.insert([made], now, "made")
    token, _ = store.claims.claim([made.id], until=now + 99 * SECOND, now=now, lease_seconds=9, worker="w")
    ended = Record(made.id, token, State.ERROR, "the end", None, {"number": 1, **attempt}, now)
    assert store.outcomes.record([ended]) == []


def test_causes_are_counted_the_most_frequent_first(store: Store, now: datetime) -> None:
    for number in range(3):
        fail(store, now, number, status_code=503)
    fail(store, now, 3, status_code=None, error="timed out")
    found = store.event_lists.dead_letter_causes(tenant="default", most=100)
    assert [(each.status, each.error, each.count) for each in found] == [
        (503, None, 3),
        (None, "timed out", 1),
    ]
    assert (found[0].first, found[0].last) == (now, now + 2 * SECOND)


def test_only_the_newest_are_read(store: Store, now: datetime) -> None:
    for number in range(5):
        fail(store, now, number, status_code=500 + number)
    found = store.event_lists.dead_letter_causes(tenant="default", most=2)
    assert {each.status for each in found} == {503, 504}


def test_corrupt_dead_letters_do_not_hide_the_others(store: Store, now: datetime) -> None:
    fail(store, now, 1, status_code=503)
    bent: list[dict[str, Any]] = [
        {"attempts": "no list", "status": 7, "origin": 3, "run_time": now},
        {"attempts": [{"status_code": "x", "error": {}}], "run_time": "never"},
    ]
    store.mongo.collection("events").insert_many(
        [
            {"_id": f"bent-{number}", "tenant": "default", "state": "error"} | each
            for number, each in enumerate(bent)
        ]
    )
    found = store.event_lists.dead_letter_causes(tenant="default", most=100)
    assert sum(each.count for each in found) == 3
    assert (503, 1) in [(each.status, each.count) for each in found]
