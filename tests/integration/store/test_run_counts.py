"""What became of runs is counted by the parts of a time, and named where a schedule has few."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.forecast import Buckets
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.run_calendar import MOST_RARE, NamedRun, RunOutcome
from scheduler_app.store import Store
from scheduler_app.store.events import run_counts
from scheduler_app.store.events.run_counts import RunChoice
from scheduler_app.store.paging import MAX_MS
from tests.examined import examined, time_limits

SECOND = timedelta(seconds=1)
EVERYTHING = RunChoice(TENANT)


def plant(store: Store, now: datetime, *rows: dict[str, Any]) -> None:
    """Events; times are seconds from `now` on."""
    documents = []
    for row in rows:
        usual = {"tenant": TENANT, "schedule_id": "s1", "state": "completed", "kind": "scheduled"}
        times = {
            name: now + row[name] * SECOND for name in ("run_time", "due_at", "archived_at") if name in row
        }
        documents.append(usual | row | times)
    store.mongo.collection("events").insert_many(documents)


def test_each_run_counts_in_its_part_by_what_became_of_it(store: Store, now: datetime) -> None:
    plant(
        store,
        now,
        {"_id": "before", "run_time": -1},
        {"_id": "first", "run_time": 0, "attempt": 1},
        {"_id": "again", "run_time": 4, "attempt": 2},
        {"_id": "failed", "run_time": 5, "state": "error", "attempt": 3},
        {"_id": "expired", "run_time": 14, "state": "expired"},
        {"_id": "missed", "run_time": 15, "state": "skipped", "missed": {"count": 7}},
        {"_id": "bent", "run_time": 15, "state": "skipped", "missed": {"count": "x"}},
        {"_id": "withdrawn", "run_time": 16, "state": "cancelled", "archived_at": 15},
        {"_id": "cancelled", "run_time": 16, "state": "cancelled", "archived_at": 16},
        {"_id": "held", "run_time": 25, "state": "ready_queue", "held": "k", "due_at": 99},
        {"_id": "was held", "run_time": 25, "held": "k"},
        {"_id": "bent hold", "run_time": 25, "state": "ready_queue", "held": 7, "due_at": 24},
        {"_id": "waits", "run_time": 26, "state": "retrying", "due_at": 25},
        {"_id": "to come", "run_time": 27, "state": "ready_queue", "due_at": 26},
        {"_id": "unknown", "run_time": 27, "state": "no state"},
        {"_id": "end", "run_time": 40},
        {"_id": "foreign", "run_time": 1, "tenant": "acme", "schedule_id": "acme:s1"},
    )
    events = store.mongo.collection("events")
    events.insert_one({"_id": "list", "tenant": TENANT, "run_time": [now], "state": "error"})
    buckets = Buckets(now, now + 40 * SECOND, 10 * SECOND, first=now - 5 * SECOND)
    found = store.run_counting.read(EVERYTHING, buckets, now + 26 * SECOND, most=99)
    assert {key: number for key, number in found.counts.items() if number} == {
        (0, RunOutcome.DONE): 2,
        (1, RunOutcome.FAILED): 1,
        (1, RunOutcome.DID_NOT_RUN): 1,
        (2, RunOutcome.DID_NOT_RUN): 9,
        (3, RunOutcome.DONE): 1,
        (3, RunOutcome.HELD): 1,
        (3, RunOutcome.WAITING): 2,
    }
    assert +found.tried_again == Counter({0: 1})
    assert found.is_whole
    assert found.frequent == {"s1"}


def test_schedules_with_few_runs_are_named_with_them(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [{"_id": f"f{n}", "run_time": n, "schedule_id": "few"} for n in range(MOST_RARE)]
    many = [{"_id": f"m{n}", "run_time": n, "schedule_id": "many"} for n in range(MOST_RARE + 1)]
    record = {"run_time": 1, "state": "skipped", "schedule_id": "missing", "missed": {"count": MOST_RARE + 1}}
    plant(
        store,
        now,
        *few,
        *many,
        record | {"_id": "record"},
        {"_id": "next", "run_time": 3, "state": "ready_queue", "due_at": 3, "schedule_id": "rare"},
        {"_id": "last", "run_time": 2, "state": "error", "schedule_id": "rare"},
        {"_id": "gone", "run_time": 3, "state": "cancelled", "archived_at": 2, "schedule_id": "rare"},
        {"_id": "only", "run_time": 3, "state": "cancelled", "archived_at": 2, "schedule_id": "none"},
        {"_id": "message", "run_time": 3, "kind": "message", "schedule_id": None},
    )
    ids = ["few", "many", "missing", "rare", "none"]
    store.mongo.collection("schedules").insert_many([{"_id": each} for each in [*ids, "other"]])
    plant(store, now, {"_id": "other", "run_time": 1, "schedule_id": "other"})
    buckets = Buckets(now, now + 40 * SECOND, 40 * SECOND)
    at = now + SECOND
    rare = [
        NamedRun(now + 2 * SECOND, RunOutcome.FAILED, "last"),
        NamedRun(now + 3 * SECOND, RunOutcome.TO_COME, "next"),
    ]
    read = store.run_counting.read(RunChoice(TENANT, ids), buckets, at, most=99)
    named = store.run_counting.name(ids, buckets, at)
    for found in (read, named):
        assert found.frequent == {"many", "missing"}
        assert found.rare.keys() == {"few", "rare"}
        assert found.rare["rare"] == rare
        assert [each.event_id for each in found.rare["few"]] == [row["_id"] for row in few]
    assert read.counts[0, RunOutcome.DONE] == 2 * MOST_RARE + 1
    assert not named.counts
    everything = store.run_counting.read(EVERYTHING, buckets, at, most=99)
    assert everything.rare.keys() == {"few", "rare", "other"}
    assert everything.counts[0, RunOutcome.DONE] == 2 * MOST_RARE + 3
    monkeypatch.setattr(run_counts, "MOST_NAMED", 2)
    assert len(store.run_counting.read(EVERYTHING, buckets, at, most=99).rare) == 2


def test_names_are_of_runs_within_the_buckets(store: Store, now: datetime) -> None:
    store.mongo.collection("schedules").insert_one({"_id": "s1"})
    plant(store, now, *({"_id": f"{9 - at}", "run_time": at} for at in (-1, 0, 1, 2)))
    bent = {"_id": "list", "schedule_id": "s1", "run_time": [now], "state": "completed"}
    store.mongo.collection("events").insert_one(bent)
    found = store.run_counting.name(["s1"], Buckets(now, now + 2 * SECOND, SECOND), now)
    assert [each.event_id for each in found.rare["s1"]] == ["9", "8"]


def test_a_schedule_is_rare_by_its_newest_events(store: Store, now: datetime) -> None:
    store.mongo.collection("schedules").insert_one({"_id": "s1"})
    plant(store, now, *({"_id": f"{99 - at}", "run_time": at} for at in range(MOST_RARE + 1)))
    plant(store, now, {"_id": "00", "run_time": 30, "state": "cancelled", "archived_at": 0})
    found = store.run_counting.name(["s1"], Buckets(now, now + 40 * SECOND, SECOND), now)
    assert [each.at for each in found.rare["s1"]] == [now + (at + 1) * SECOND for at in range(MOST_RARE)]


def test_choices_are_of_schedules_and_of_messages_to_a_destination(store: Store, now: datetime) -> None:
    sent = {"kind": "message", "schedule_id": None, "action": {"destination": "erp"}}
    plant(
        store,
        now,
        {"_id": "d", "run_time": 0},
        {"_id": "c", "run_time": 1},
        {"_id": "b", "run_time": 2, "schedule_id": "s2"},
        {"_id": "a", "run_time": 3, "schedule_id": "s3", "action": {"destination": "erp"}},
        sent | {"_id": "m1", "run_time": 0},
        sent | {"_id": "m2", "run_time": 1},
        sent | {"_id": "m3", "run_time": 1, "action": {"destination": "other"}},
        sent | {"_id": "m4", "run_time": 1, "tenant": "acme"},
        sent | {"_id": "m5", "run_time": 4},
    )
    buckets = Buckets(now, now + 4 * SECOND, SECOND)

    def parts(most: int, ids: list[str] | None, to: str | None = None) -> tuple[list[int], bool]:
        found = store.run_counting.read(RunChoice(TENANT, ids, to), buckets, now, most=most)
        return [found.counts[part, RunOutcome.DONE] for part in range(4)], found.is_whole

    assert parts(9, None) == ([2, 3, 1, 1], True)
    assert parts(9, ["s1"]) == ([1, 1, 0, 0], True)
    assert parts(9, ["s1", "s2"]) == ([1, 1, 1, 0], True)
    assert parts(9, ["s1"], "erp") == ([2, 2, 0, 0], True)
    assert parts(9, [], "erp") == ([1, 1, 0, 0], True)
    assert parts(9, []) == ([0, 0, 0, 0], True)
    # Of more than are read, the newest.
    assert parts(2, None) == ([0, 0, 1, 1], False)
    assert parts(1, ["s1"]) == ([0, 1, 0, 0], False)
    assert parts(2, ["s1"]) == ([1, 1, 0, 0], False)
    assert parts(2, ["s3"], "erp") == ([1, 1, 0, 1], False)
    assert parts(2, ["s1", "s3"], "other")[1] is False

    def exceeds(most: int, ids: list[str] | None, to: str | None = None) -> bool:
        return store.run_counting.exceeds(RunChoice(TENANT, ids, to), buckets, most=most)

    assert [exceeds(most, None) for most in (6, 7)] == [True, False]
    assert [exceeds(most, ["s1"]) for most in (0, 1, 2)] == [True, True, False]
    assert [exceeds(most, ["s1"], "erp") for most in (2, 3, 4)] == [True, True, False]
    assert not exceeds(0, [])
    _, cost = examined(store, lambda: exceeds(2, None))
    assert (cost.documents, cost.keys <= 4) == (0, True), "no more is counted than has to be"
    edges = Buckets(now + SECOND, now + 2 * SECOND, SECOND)
    assert not store.run_counting.exceeds(RunChoice(TENANT, ["s1"]), edges, most=1)


def test_mongodb_gives_up_what_takes_too_long(store: Store, now: datetime) -> None:
    store.mongo.collection("schedules").insert_one({"_id": "s1"})
    buckets = Buckets(now, now + SECOND, SECOND)
    for ask in (
        lambda: store.run_counting.read(EVERYTHING, buckets, now, most=9),
        lambda: store.run_counting.name(["s1"], buckets, now),
    ):
        assert set(time_limits(store, ask)) == {MAX_MS}
