"""Dead letters are told apart by what their last attempts have in common."""

from datetime import datetime, timedelta
from typing import Any

from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from tests.builders import event

SECOND = timedelta(seconds=1)


def fail(store: Store, now: datetime, number: int, **attempt: object) -> None:
    made = event(now + number * SECOND, f"s{number}")
    store.events.insert([made], now, "made")
    token, _ = store.claims.claim([made.id], until=now + 99 * SECOND, now=now, lease_seconds=600, worker="w")
    ended = OutcomeRecord(made.id, token, State.ERROR, "the end", None, {"number": 1, **attempt}, now)
    assert store.outcomes.record([ended]) == []


def test_causes_are_counted_the_most_frequent_first(store: Store, now: datetime) -> None:
    for number in range(3):
        fail(store, now, number, status_code=503)
    fail(store, now, 3, status_code=None, error="timed out")
    found = store.event_lists.dead_letter_causes("default", most=100).rows
    assert [(each.status, each.error, each.count) for each in found] == [
        (503, None, 3),
        (None, "timed out", 1),
    ]
    assert (found[0].first, found[0].last) == (now, now + 2 * SECOND)


def test_only_the_newest_are_read(store: Store, now: datetime) -> None:
    for number in range(5):
        fail(store, now, number, status_code=500 + number)
    found = store.event_lists.dead_letter_causes("default", most=2).rows
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
    found = store.event_lists.dead_letter_causes("default", most=100).rows
    assert sum(each.count for each in found) == 3
    assert (503, 1) in [(each.status, each.count) for each in found]


def test_a_cause_names_its_schedules_and_is_narrowed_by_time_and_tag(store: Store, now: datetime) -> None:
    for number in range(4):
        fail(store, now, number % 3, status_code=503) if number < 3 else fail(store, now, 9, status_code=500)
    rows = [
        {"_id": f"s{number}", "tenant": "default", "tags": ["billing"], "created_at": now}
        for number in (0, 2, 9)
    ]
    store.mongo.collection("schedules").insert_many(rows)

    def found(**filters: Any) -> list[tuple[int | None, int, tuple[str, ...]]]:
        causes = store.event_lists.dead_letter_causes("default", most=100, **filters)
        return [(each.status, each.count, each.schedules) for each in causes.rows]

    assert found() == [(503, 3, ("s0", "s1", "s2")), (500, 1, ("s9",))]
    assert found(tag="billing") == [(503, 2, ("s0", "s2")), (500, 1, ("s9",))]
    assert found(tag="nothing has it") == []
    assert found(since=now + SECOND, until=now + 9 * SECOND) == [(503, 2, ("s1", "s2"))]
    assert found(tag="billing", since=now + SECOND, until=now + 9 * SECOND) == [(503, 1, ("s2",))]


def test_how_many_were_read_does_not_depend_on_the_tag(store: Store, now: datetime) -> None:
    for number in range(3):
        fail(store, now, number, status_code=503)
    for tag in (None, "nothing has it"):
        assert store.event_lists.dead_letter_causes("default", most=2, tag=tag).read == 2
