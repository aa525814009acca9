"""Lists of events have what is asked for, in the order of the run times, however it is looked for."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.action import UNKNOWN_ORIGIN
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.retry import Codes
from scheduler_app.domain.states import LIVING, State
from scheduler_app.store import Store
from scheduler_app.store.events import lists
from scheduler_app.store.events.lists import (
    CAUSE_LENGTH,
    EventListFilter,
    ExpandedOccurrence,
    ExpandedOccurrences,
)
from scheduler_app.store.paging import MAX_MS, PageRequest
from tests.examined import examined, time_limits

SECOND = timedelta(seconds=1)
HTTPS = "https://example.org:443"
#: A second apart each, the first one the oldest.
ROWS: list[dict[str, Any]] = [
    {"_id": "waits", "state": "ready_queue", "due_at": 1},
    {"_id": "runs", "state": "running", "due_at": 1, "schedule_id": "s2", "attempts": [{"status_code": 500}]},
    {"_id": "done", "origin": HTTPS, "attempts": [{"status_code": 599}, {"status_code": 200}]},
    {"_id": "dead", "state": "error", "attempts": [{"status_code": 503, "error": "It Timed Out"}]},
    {
        "_id": "dead2",
        "state": "error",
        "schedule_id": "s2",
        "cause": "c1",
        "attempts": [{"status_code": 500}],
    },
    {"_id": "late", "state": "cancelled", "archived_at": 60, "status": [{"message": "TIMED OUT 100%"}]},
    {"_id": "early", "state": "cancelled", "archived_at": -60, "schedule_id": "s3"},
    {"_id": "expired", "state": "expired", "archived_at": -60, "attempts": [{"status_code": 600}, {}]},
    {"_id": "bent", "attempts": "bent", "status": {"message": "timed out"}, "schedule_id": "s3"},
]


@pytest.fixture
def planted(store: Store, now: datetime) -> Store:
    documents = []
    for at, row in enumerate(ROWS):
        run_time = now + at * SECOND
        times = {name: now + row[name] * SECOND for name in ("due_at", "archived_at") if name in row}
        usual = {"tenant": TENANT, "schedule_id": "s1", "state": "completed", "run_time": run_time}
        documents.append(usual | row | times)
    documents.append({"_id": "foreign", "tenant": "acme", "schedule_id": "acme:s", "run_time": now})
    documents[-1] |= {"state": "error", "cause": "c2"}
    store.mongo.collection("events").insert_many(documents)
    tagged = {"tenant": TENANT, "created_at": now}
    store.mongo.collection("schedules").insert_many(
        [
            tagged | {"_id": "s1", "tags": ["red", "blue"]},
            tagged | {"_id": "s2", "tags": ["red"]},
            tagged | {"_id": "s3", "tags": ["red", "lone"]},
            tagged | {"_id": "acme:s", "tenant": "acme", "tags": ["blue", "red"]},
        ]
    )
    return store


def listed(store: Store, window: PageRequest | None = None, **asked: Any) -> list[str]:
    which = {name: asked.pop(name) for name in ("schedule_id", "states", "soonest_first") if name in asked}
    narrowing = EventListFilter(**asked)
    page = store.event_lists.page(TENANT, window or PageRequest(limit=99), narrowing=narrowing, **which)
    return [each.id for each in page.rows]


def of(*schedules: str) -> list[str]:
    """The events of these schedules, the newest first."""
    return [each["_id"] for each in reversed(ROWS) if each.get("schedule_id", "s1") in schedules]


def test_a_list_is_of_one_tenant_and_perhaps_of_one_schedule(planted: Store, now: datetime) -> None:
    assert listed(planted) == of("s1", "s2", "s3")
    assert listed(planted, schedule_id="s2") == of("s2")
    assert listed(planted, soonest_first=True) == of("s1", "s2", "s3")[::-1]
    assert listed(planted, PageRequest(limit=9, since=now + SECOND, until=now + 3 * SECOND)) == [
        "done",
        "runs",
    ]


@pytest.mark.parametrize(
    ("states", "ids"),
    [
        ({State.ERROR}, ["dead2", "dead"]),
        ({State.ERROR, State.RUNNING}, ["dead2", "dead", "runs"]),
        (LIVING, ["runs", "waits"]),
        ({State.RUNNING}, ["runs"]),
        ({State.CANCELLED}, ["early", "late"]),
    ],
)
def test_states_are_of_all_schedules_or_of_one(planted: Store, states: Any, ids: list[str]) -> None:
    assert listed(planted, states=states) == ids
    for schedule in ("s1", "s2", "s3"):
        assert listed(planted, states=states, schedule_id=schedule) == [x for x in ids if x in of(schedule)]


@pytest.mark.parametrize(
    ("asked", "ids"),
    [
        ({"origin": HTTPS}, ["done"]),
        ({"origin": UNKNOWN_ORIGIN, "states": {State.ERROR}}, ["dead2", "dead"]),
        ({"status": Codes(("5xx",))}, ["dead2", "dead", "runs"]),
        ({"status": Codes((200, "501-503"))}, ["dead", "done"]),
        ({"error": "timed out"}, ["late", "dead"]),
        ({"error": "100%"}, ["late"]),
        ({"cause": "c1"}, ["dead2"]),
        ({"cause": "c1", "schedule_id": "s2"}, ["dead2"]),
        ({"cause": "c1", "schedule_id": "s1"}, []),
        ({"cause": "c1", "states": {State.ERROR}}, ["dead2"]),
        ({"among": ("s2", "s3"), "states": {State.RUNNING, State.CANCELLED}}, ["early", "runs"]),
        ({"among": ()}, []),
        ({"early_withdrawals": False, "states": {State.CANCELLED, State.EXPIRED}}, ["expired", "late"]),
        ({"error": "timed out", "status": Codes((503,))}, ["dead"]),
    ],
)
def test_all_filters_that_are_given_must_match(planted: Store, asked: dict[str, Any], ids: list[str]) -> None:
    assert listed(planted, **asked) == ids


@pytest.mark.parametrize("merged", [0, 1, 2, 3], ids=["asked", "one", "two", "three"])
def test_a_tag_finds_the_events_of_few_and_of_many_schedules(
    planted: Store, monkeypatch: pytest.MonkeyPatch, merged: int
) -> None:
    monkeypatch.setattr(lists, "SCHEDULES_MERGED", merged)
    assert listed(planted, tag="red") == of("s1", "s2", "s3")
    assert listed(planted, tag="blue") == of("s1")
    assert listed(planted, tag="red", schedule_id="s2") == of("s2")
    assert listed(planted, tag="lone", schedule_id="s2") == []
    assert listed(planted, tag="none has it") == []
    assert listed(planted, tag="red", states={State.ERROR}) == ["dead2", "dead"]
    assert listed(planted, tag="blue", states={State.ERROR}) == ["dead"]
    assert listed(planted, tag="red", error="timed out") == ["late", "dead"]


def test_of_many_schedules_with_a_tag_those_of_the_events_are_asked_for(
    planted: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "SCHEDULES_MERGED", 0)
    others = [{"_id": f"x{n}", "tenant": TENANT, "tags": ["blue"], "created_at": now} for n in range(200)]
    planted.mongo.collection("schedules").insert_many(others)
    found, cost = examined(planted, lambda: listed(planted, tag="blue"))
    assert found == of("s1")
    assert cost.keys < 100


def test_pages_of_several_schedules_continue_each_other(planted: Store) -> None:
    found: list[str] = []
    window = PageRequest(limit=2)
    while True:
        page = planted.event_lists.page(TENANT, window, narrowing=EventListFilter(tag="red"))
        found += [each.id for each in page.rows]
        if page.next is None:
            break
        window = PageRequest(limit=2, after=page.next)
    assert found == of("s1", "s2", "s3")


def test_dead_letters_are_counted_up_to_a_bound(planted: Store) -> None:
    count = planted.event_lists.count_dead
    assert count(TENANT, PageRequest(limit=9)) == (2, False)
    assert count(TENANT, PageRequest(limit=1)) == (1, True)
    assert count(TENANT, PageRequest(limit=9), schedule_id="s2") == (1, False)
    assert count(TENANT, PageRequest(limit=9), narrowing=EventListFilter(error="timed out")) == (1, False)
    assert count(TENANT, PageRequest(limit=9), narrowing=EventListFilter(tag="none has it")) == (0, False)


def test_occurrences_that_are_events_are_told_schedule_by_schedule(store: Store, now: datetime) -> None:
    def row(event_id: str, schedule_id: str, seconds: int, **more: Any) -> dict[str, Any]:
        usual = {"_id": event_id, "schedule_id": schedule_id, "kind": "scheduled", "revision": 3}
        return usual | {"run_time": now + seconds * SECOND} | more

    store.mongo.collection("events").insert_many(
        [
            row("a-now", "a", 0),
            row("y-next", "a", 1),
            row("x-next", "a", 1),
            row("a-later", "a", 2),
            row("a-by-hand", "a", 2, kind="manual"),
            row("b-bent", "b", 1, run_time=[now + SECOND]),
            row("b-bent-too", "b", 1, revision="3"),
            row("c-next", "c", 1),
            row("d-next", "d", 1),
        ]
    )
    ids = [("a-later", "a", 2), ("y-next", "a", 1), ("x-next", "a", 1), ("c-next", "c", 1)]
    rows = [ExpandedOccurrence(each, schedule, now + at * SECOND, 3) for each, schedule, at in ids]
    made_after = store.event_lists.made_after
    assert made_after(now, ["c", "a", "b"], limit=6) == ExpandedOccurrences(rows, None)
    assert made_after(now, ["c", "a", "b"], limit=5) == ExpandedOccurrences(rows[:3], "c")
    assert made_after(now, ["a"], limit=2) == ExpandedOccurrences(rows[:2], "a")
    store.mongo.db.command("profile", 2)
    try:
        made_after(now, ["a"], limit=2)
    finally:
        store.mongo.db.command("profile", 0)
    (asked,) = store.mongo.db.system.profile.find({"command.find": "events"})
    store.mongo.db.drop_collection("system.profile")
    assert asked["command"]["limit"] == 3, "one more tells that there are more"


def test_causes_are_told_by_the_beginning_of_what_was_said_last(store: Store, now: datetime) -> None:
    says, long = [{"message": "first"}, {"message": "was expired"}], "x" * CAUSE_LENGTH
    dead: list[dict[str, Any]] = [
        {"status": says, "origin": HTTPS},
        {"status": says, "attempts": [{"error": "an earlier one"}, {"error": f"{long} one"}]},
        {"status": says, "attempts": [{"error": f"{long} two"}], "schedule_id": ["s1"]},
        {"status": says, "attempts": [{"status_code": 500}], "origin": 7},
        {"status": says, "attempts": [{"status_code": 418}], "run_time": "never"},
        {"status": says, "attempts": [{"status_code": "500"}], "run_time": now + SECOND},
    ]
    usual = {"tenant": TENANT, "schedule_id": "s1", "state": "error", "run_time": now}
    store.mongo.collection("events").insert_many(
        [usual | row | {"_id": f"e{len(dead) - number}"} for number, row in enumerate(dead)]
    )
    found = store.event_lists.dead_letter_causes(TENANT, most=6).rows
    assert found[0].schedules == ("s1",)
    assert (found[0].first, found[0].last) == (now, now)
    told = {(each.origin, each.status, each.error, each.count) for each in found}
    assert told == {
        (UNKNOWN_ORIGIN, None, long, 2),
        (HTTPS, None, "was expired", 1),
        (UNKNOWN_ORIGIN, 500, None, 1),
        (UNKNOWN_ORIGIN, 418, None, 1),
        (UNKNOWN_ORIGIN, None, "was expired", 1),
    }
    assert [(each.first, each.last) for each in found if each.status == 418] == [(None, None)]
    newest = store.event_lists.dead_letter_causes(TENANT, most=1, until=now + 9 * SECOND).rows
    assert [each.last for each in newest] == [now + SECOND]
    assert store.event_lists.dead_letter_causes("acme", most=6).rows == []
    (limit,) = time_limits(store, lambda: store.event_lists.dead_letter_causes(TENANT, most=5))
    assert limit == MAX_MS
