"""What is wrong with a stored event is found field by field, replaced, and left out of what is shown."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.event import MAX_COMPLETION_TIMEOUT
from scheduler_app.domain.ids import PARTITIONS, backfill_event_id, message_event_id, partition_of
from scheduler_app.domain.notification import Notifying, OwedNotification
from scheduler_app.domain.retry import MAX_BACKOFF_SECONDS
from scheduler_app.domain.stored_fields import EARLIEST, Corrupt
from scheduler_app.store.events.fields import (
    field_faults,
    owed_notification_document,
    read_missed,
    read_owed_notification,
    read_schedule_id,
    readable_event,
    replaced_fields,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
EVENT = "team:s1-2-20260302T120000Z"
MESSAGE = message_event_id("team", "m1")


def row(**changes: Any) -> dict[str, Any]:
    """A sound event of the tenant `team`, which waits."""
    made = {
        "_id": EVENT,
        "v": 1,
        "tenant": "team",
        "schedule_id": "team:s1",
        "kind": "scheduled",
        "revision": 2,
        "run_time": NOON,
        "due_at": NOON,
        "state": "ready_queue",
        "attempt": 0,
        "status": [{"time": NOON, "status": "ready_queue", "message": "made"}],
        "attempts": [],
        "created_at": NOON - HOUR,
    }
    return {name: value for name, value in (made | changes).items() if value is not ...}


#: After the longest wait that grows, and its jitter.
LONGEST_RETRY_MS = int(2 * MAX_BACKOFF_SECONDS * 1000)
COMPLETION = {"tokens": ["a"], "attempt": 1, "seconds": 60}
WRONG: list[tuple[str, Any, str]] = [
    ("v", 0, "v is 0"),
    ("v", 3, "this release reads 2"),
    ("tenant", "default", "id is one of 'team'"),
    ("tenant", ..., "missing"),
    ("schedule_id", "s1", "another tenant's"),
    ("schedule_id", None, "missing"),
    ("kind", "other", "not one of"),
    ("kind", "message", "does not fit the event's id"),
    ("revision", 0, "not between 1"),
    ("run_time", "noon", "not a date"),
    ("run_time", datetime(1969, 1, 1, tzinfo=UTC), "not between the years"),
    ("due_at", ..., "not a date"),
    ("due_at", None, "not a date"),
    ("due_at", [NOON], "not a date"),
    ("due_at", EARLIEST - HOUR, "not a date"),
    ("due_at", datetime(9999, 1, 1, tzinfo=UTC), "not a date"),
    ("state", "lost", "not one of"),
    ("attempt", -1, "not between 0"),
    ("attempt", True, "not a whole number"),
    ("status", "x", "not a list"),
    ("status", ["x"], "an item of status is a str"),
    ("attempts", None, "not a list"),
    ("attempts", [{}, 5], "an item of attempts is an int"),
    ("created_at", 5, "not a date"),
    ("attempts_before", -1, "not between 0"),
    ("lost_leases", 0.5, "not a whole number"),
    ("dispatches", "1", "not a whole number"),
    ("dispatches", None, "not a whole number"),
    ("partition", -1, "partition is -1"),
    ("partition", PARTITIONS, f"partition is {PARTITIONS}"),
    ("archived_at", "x", "not a date"),
    ("hops", "x", "not a whole number"),
    ("origin", 5, "not text"),
    ("routed", "yes", "not true or false"),
    ("queue_by_destination", 1, "not true or false"),
    ("postponed_from", "x", "not a date"),
    ("due_since", "x", "not a date"),
    ("missed", {"first": NOON, "last": NOON}, "missed.count"),
    ("missed", 5, "not an object"),
    ("held", 5, "not text"),
    ("isolated", 5, "not text"),
    ("completion", COMPLETION | {"tokens": [5]}, "an item of completion.tokens"),
    ("completion", COMPLETION | {"tokens": None}, "completion.tokens"),
    ("completion", COMPLETION | {"attempt": 0}, "completion.attempt is 0"),
    ("completion", COMPLETION | {"seconds": 0}, "completion.seconds is 0"),
    ("completion", COMPLETION | {"attempt": 0, "seconds": 0}, "completion.attempt is 0"),
    ("completion", COMPLETION | {"seconds": MAX_COMPLETION_TIMEOUT + 1}, "completion.seconds is"),
    ("completion", COMPLETION | {"retry_in_ms": -1}, "completion.retry_in_ms is -1"),
    ("completion", COMPLETION | {"retry_in_ms": LONGEST_RETRY_MS + 1}, "completion.retry_in_ms is"),
    ("completion", COMPLETION | {"awaiting": "x"}, "completion.awaiting"),
    ("completion", COMPLETION | {"told": {"how": "x"}}, "completion.told.how"),
    ("completion", COMPLETION | {"told": {"how": "failed", "attempt": -1, "at": NOON}}, "told.attempt is -1"),
    ("completion", COMPLETION | {"told": {"how": "failed", "attempt": 1}}, "completion.told.at"),
    ("waits_for", 5, "not text"),
    ("superseded_by", 5, "not text"),
    ("isolated_losses", "x", "not a whole number"),
    ("corrupt", "x", "not an object"),
    ("notify", {"when": "never", "since": NOON}, "notify.when"),
    ("notify", {"when": "on_failure"}, "notify.since"),
    ("notify", {"when": "on_failure", "since": NOON, "hops": -1}, "notify.hops is -1"),
    ("notify", {"when": "on_failure", "since": NOON, "destination": 5}, "notify.destination"),
]


@pytest.mark.parametrize(("field", "value", "why"), WRONG)
def test_a_wrong_field_is_found_with_the_reason_and_no_other(field: str, value: Any, why: str) -> None:
    found = field_faults(row(**{field: value}))
    assert list(found) == [field]
    assert why in found[field]


def test_a_finished_event_needs_no_due_time_and_one_that_it_has_is_checked() -> None:
    assert list(field_faults(row(state="completed", due_at="noon"))) == ["due_at"]
    assert list(field_faults(row(state="completed", due_at=None))) == ["due_at"]
    assert field_faults(row(state="completed", due_at=NOON)) == {}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"state": "completed", "due_at": ...},
        {"attempts_before": None, "held": None, "missed": None, "notify": None},
        {"routed": True, "queue": "slow", "dispatches": 2.0, "hops": 0},
        {"routed": False, "queue": "no queue's name!"},
        {"missed": {"first": NOON, "last": NOON, "count": 3}},
        {"completion": COMPLETION | {"told": {"how": "timed_out", "attempt": 1, "at": NOON}}},
        {"completion": COMPLETION | {"retry_in_ms": LONGEST_RETRY_MS, "awaiting": True}},
        {"completion": COMPLETION | {"seconds": MAX_COMPLETION_TIMEOUT}},
        {"partition": PARTITIONS - 1},
        {"notify": {"when": "on_failure", "since": NOON, "destination": "d", "hops": 1}},
        {"_id": MESSAGE, "v": 2, "kind": "message", "schedule_id": ...},
    ],
)
def test_a_sound_event_has_no_fault_and_is_shown_as_it_is(changes: dict[str, Any]) -> None:
    made = row(**changes)
    assert field_faults(made) == {}
    assert readable_event(made) is made


def test_a_queue_that_no_queue_may_have_is_a_fault_where_it_is_routed() -> None:
    assert "queue" in field_faults(row(routed=True, queue="no queue's name!"))["queue"]
    assert list(field_faults(row(routed=True))) == ["queue"]


def test_an_event_has_a_schedule_and_a_message_has_none() -> None:
    assert read_schedule_id("team:s1", "schedule_id", EVENT) == "team:s1"
    assert read_schedule_id(None, "schedule_id", MESSAGE) == ""
    with pytest.raises(Corrupt, match="a message has no schedule"):
        read_schedule_id("team:s1", "schedule_id", MESSAGE)


def test_what_is_wrong_is_replaced_by_what_the_id_tells() -> None:
    names = ("v", "tenant", "schedule_id", "revision", "kind", "run_time", "partition")
    faults = dict.fromkeys(names, "wrong")
    broken = row(created_at=NOON - HOUR)
    assert [replaced_fields(broken, faults)[name] for name in names] == [
        1,
        "team",
        "team:s1",
        2,
        "scheduled",
        NOON,
        partition_of("team:s1"),
    ]
    of_message = replaced_fields(broken | {"_id": MESSAGE}, faults)
    told = [2, "team", None, 1, "message", NOON - HOUR, partition_of(MESSAGE)]
    assert [of_message[name] for name in names] == told
    by_hand = replaced_fields(broken | {"_id": "team:s1-manual-abc"}, faults)
    assert (by_hand["kind"], by_hand["revision"], by_hand["run_time"]) == ("manual", 1, NOON - HOUR)
    backfilled = replaced_fields(broken | {"_id": backfill_event_id("team:s1", "b1", NOON)}, faults)
    assert (backfilled["kind"], backfilled["schedule_id"]) == ("backfill", "team:s1")
    assert replaced_fields(broken | {"_id": 5}, {"tenant": "wrong"}).keys() == {"tenant"}


def test_what_no_id_tells_is_replaced_by_a_neutral_value() -> None:
    lines = [{"message": "kept"}, 5]
    broken = row(status=lines, attempts="x", created_at="x")
    names = ("state", "attempt", "dispatches", "lost_leases", "attempts_before", "isolated_losses")
    others = ("queue", "routed", "queue_by_destination", "created_at", "status", "attempts", "notify")
    found = replaced_fields(broken, dict.fromkeys((*names, *others, "held"), "wrong"))
    assert "held" not in found, "it is only left out"
    assert [found[name] for name in names] == ["error", 0, 0, 0, 0, 0]
    assert [found[name] for name in others] == [
        *("callbacks", False, False),
        *(NOON, [{"message": "kept"}], [], None),
    ]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, NOON - HOUR),
        ({"created_at": EARLIEST}, EARLIEST),
        ({"created_at": "x"}, NOON),
        ({"created_at": "x", "run_time": "x"}, NOON + HOUR),
        ({"created_at": "x", "run_time": "x", "due_at": 5}, NOON + 2 * HOUR),
        ({"created_at": "x", "run_time": "x", "due_at": 5, "archived_at": ...}, EARLIEST),
    ],
)
def test_a_time_that_is_not_known_is_the_first_one_that_the_event_has(
    changes: dict[str, Any], told: datetime
) -> None:
    broken = row(due_at=NOON + HOUR, archived_at=NOON + 2 * HOUR) | changes
    broken = {name: value for name, value in broken.items() if value is not ...}
    assert replaced_fields(broken, {"created_at": "wrong"}) == {"created_at": told}


def test_a_faulty_event_is_shown_mended_with_the_reasons() -> None:
    shown = readable_event(row(attempt="x", held=5, run_time="x", origin="o"))
    assert set(shown["corrupt"]) == {"attempt", "held", "run_time"}
    assert (shown["attempt"], shown["run_time"], shown["origin"]) == (0, NOON, "o")
    assert "held" not in shown
    assert (
        readable_event(row(_id=MESSAGE, v=2, kind="message", schedule_id=..., attempt="x"))["schedule_id"]
        == ""
    )
    foreign = readable_event(row(_id=7, schedule_id=5, kind=5, run_time="x"))
    assert foreign["corrupt"].keys() >= {"_id", "schedule_id", "kind", "run_time"}


LINE = {"time": NOON, "status": "error", "message": "m", "number": 1, "started_at": NOON, "duration_ms": 1.5}
LINE |= {"lag_ms": 2, "status_code": None, "error": None, "snippet": "s", "worker": "w", "late": True}
LINE |= {"output": "o", "claim": object()}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("time", "x"), ("status", 5), ("message", None), ("number", "x"), ("started_at", 5)),
        *(("duration_ms", "x"), ("duration_ms", math.nan), ("lag_ms", math.inf), ("status_code", "x")),
        *(("error", 5), ("snippet", None), ("output", 5), ("worker", 5), ("late", "x")),
    ],
)
def test_of_a_line_only_what_is_wrong_is_left_out(name: str, value: Any) -> None:
    shown = readable_event(row(attempts=[LINE, LINE | {name: value}]))
    rest = {key: kept for key, kept in LINE.items() if key != name}
    assert shown["attempts"] == [LINE, rest]
    assert shown["status"] == row()["status"]


def test_lists_that_are_none_are_shown_empty_and_lines_that_are_none_left_out() -> None:
    shown = readable_event(row(status="x", attempts=[5, LINE]))
    assert (shown["status"], shown["attempts"]) == ([], [LINE])
    assert set(shown["corrupt"]) == {"status", "attempts"}


def test_a_record_of_missed_occurrences_and_a_notification_are_read_as_they_were_written() -> None:
    missed = read_missed({"first": NOON, "last": NOON + HOUR, "count": 3}, "missed")
    assert (missed.first, missed.last, missed.count) == (NOON, NOON + HOUR, 3)
    for owed in (
        OwedNotification(when=Notifying.ON_FAILURE, since=NOON, destination="d", hops=2),
        OwedNotification(when=Notifying.ON_SUCCESS, since=NOON, destination=None, hops=0),
    ):
        assert read_owed_notification(owed_notification_document(owed), "notify") == owed
    assert owed_notification_document(owed).keys() == {"when", "since"}
