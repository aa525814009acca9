"""Events as documents: what is written of a new one, what is read of a stored one, and its queues."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.act import Act, Actor, ActorKind
from scheduler_app.domain.action import CALLBACKS, MAX_ORIGIN, UNKNOWN_ORIGIN
from scheduler_app.domain.event import manual
from scheduler_app.domain.states import Kind, State
from scheduler_app.domain.stored_fields import Corrupt
from scheduler_app.store.acting import acting
from scheduler_app.store.events.documents import (
    in_queues,
    line_of_act,
    stored_origin,
    stored_queue,
    to_event,
    to_event_document,
    to_expired_event_document,
)
from tests.builders import event

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
BY_ANNA = Act(Actor(ActorKind.PERSON, "anna", "key-1", "127.0.0.1"), "a test", "request-1")
MADE = {"time": NOON, "status": "ready_queue", "message": "made"}


def test_a_line_says_whose_act_it_is_unless_it_is_the_scheduler_s_own() -> None:
    assert line_of_act(NOON, State.READY_QUEUE, "made") == MADE
    with acting(BY_ANNA):
        assert line_of_act(NOON, State.READY_QUEUE, "made") == MADE | {
            "by": "anna",
            "key": "key-1",
            "address": "127.0.0.1",
            "reason": "a test",
            "request_id": "request-1",
        }
    with acting(Act(Actor(ActorKind.OPEN))):
        assert line_of_act(NOON, State.READY_QUEUE, "made") == MADE | {"by": "open"}


def test_a_person_s_event_says_so_and_an_occurrence_says_nothing_of_those_who_were_at_work() -> None:
    with acting(BY_ANNA):
        occurrence = to_event_document(event(NOON), NOON, "made")
        by_hand = to_event_document(manual("s1", 1, NOON), NOON, "made")
    assert occurrence["status"] == [MADE]
    assert by_hand["status"][0]["by"] == "anna"


def test_what_is_read_of_a_new_event_is_what_was_written() -> None:
    plain = event(NOON)
    special = manual("s1", 2, NOON, queue="eu", hops=3)._replace(due_since=NOON - HOUR)
    for made in (plain, special):
        assert to_event(to_event_document(made, NOON, "made")) == made
    extra = {"routed", "due_since", "hops"}
    assert not extra & to_event_document(plain, NOON, "made").keys()
    assert extra < to_event_document(special, NOON, "made").keys()


def test_a_missed_occurrence_has_ended_when_it_is_made() -> None:
    living = to_event_document(event(NOON), NOON + HOUR, "missed")
    said = {"time": NOON + HOUR, "status": "expired", "message": "missed"}
    ended = {"state": "expired", "status": [said], "archived_at": NOON + HOUR}
    del living["due_at"]
    assert to_expired_event_document(event(NOON), NOON + HOUR, "missed") == living | ended


def test_counts_that_are_missing_are_none_and_others_are_read() -> None:
    row = to_event_document(event(NOON), NOON, "made") | {"lost_leases": None}
    found = to_event(row)
    assert (found.attempts_before, found.lost_leases, found.hops) == (0, 0, 0)
    counts = {"attempts_before": 4, "lost_leases": 5, "hops": 6, "attempt": 7}
    found = to_event(row | counts | {"postponed_from": NOON - HOUR})
    assert (found.attempts_before, found.lost_leases, found.hops, found.attempt) == (4, 5, 6, 7)
    assert found.postponed_from == NOON - HOUR


@pytest.mark.parametrize(
    "wrong", [{"v": 3}, {"tenant": "another"}, {"revision": 0}, {"kind": "message"}, {"due_at": "noon"}]
)
def test_an_event_that_is_not_what_its_id_says_is_corrupt(wrong: dict[str, Any]) -> None:
    with pytest.raises(Corrupt, match=next(iter(wrong))):
        to_event(to_event_document(event(NOON), NOON, "made") | wrong)


def test_an_origin_is_text_of_a_bounded_length() -> None:
    assert stored_origin({"origin": "x" * MAX_ORIGIN}) == "x" * MAX_ORIGIN
    for wrong in ("x" * (MAX_ORIGIN + 1), 5, None):
        assert stored_origin({"origin": wrong}) == UNKNOWN_ORIGIN


@pytest.mark.parametrize(
    ("routed", "queue", "stored"),
    [
        (True, "eu", "eu"),
        (True, "no queue's name!", CALLBACKS),
        (True, None, CALLBACKS),
        (False, "eu", CALLBACKS),
        (None, "eu", CALLBACKS),
    ],
)
def test_an_event_is_in_the_queue_that_it_is_routed_to(routed: Any, queue: Any, stored: str) -> None:
    assert stored_queue({"routed": routed, "queue": queue}) == stored


def test_those_who_serve_queues_ask_for_the_events_in_them() -> None:
    in_callbacks = {"routed": {"$ne": True}}
    one, two = {"routed": True, "queue": "eu"}, {"routed": True, "queue": {"$in": ["eu", "us"]}}
    assert in_queues([CALLBACKS]) == in_callbacks
    assert in_queues(["eu"]) == one
    assert in_queues(["us", "eu"]) == two
    assert in_queues(["eu", CALLBACKS]) == {"$or": [in_callbacks, one]}
    assert in_queues(["us", CALLBACKS, "eu"]) == {"$or": [in_callbacks, two]}


def test_a_message_that_is_no_message_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="kind"):
        to_event(to_event_document(event(NOON, kind=Kind.MESSAGE), NOON, "made"))
