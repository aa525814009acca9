"""What is stored of requests whose receivers say later how the work went, and of what they said."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.action import UNKNOWN_ORIGIN
from scheduler_app.domain.cause import failing_key
from scheduler_app.domain.event import KEPT_TOKENS, AwaitedEvent, CompletionReport
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.completions import CompletionOutcome, ExpectedCompletion
from scheduler_app.store.events.outcomes import OutcomeRecord
from tests.builders import event
from tests.documents import event_document

SECOND = timedelta(seconds=1)
CAUSE = failing_key("s1-1-x", "http://x:80", 503, None)
#: A retry in 1.5 s.
RETRY = timedelta(milliseconds=1_500)


def begin(store: Store, now: datetime, count: int = 1) -> tuple[str, list[str]]:
    """Makes and claims so many events: the claim's token, and their ids."""
    made = [event(now - number * SECOND, origin="http://x:80") for number in range(count)]
    store.events.insert(made, now, "made")
    ids = [each.id for each in made]
    token, won = store.claims.claim(ids, until=now, now=now, lease_seconds=600, worker="w1")
    assert len(won) == count
    return token, ids


def expect(store: Store, event_id: str, token: str, digest: str = "d1", **changes: Any) -> None:
    usual = ExpectedCompletion(event_id, token, digest, 1, 60.0, RETRY)
    assert store.completions.expect([usual._replace(**changes)]) == {event_id}


def answer(store: Store, event_id: str, token: str, now: datetime, waits_until: datetime) -> None:
    """The request was answered, and the work goes on."""
    record = OutcomeRecord(event_id, token, State.RUNNING, "accepted", waits_until, {"number": 1}, now)
    assert store.outcomes.record([record]) == []


def found(store: Store, event_id: str) -> AwaitedEvent:
    awaited = store.completions.find(event_id)
    assert awaited is not None
    return awaited


def change(store: Store, event_id: str, fields: dict[str, Any]) -> None:
    store.mongo.collection("events").update_one({"_id": event_id}, {"$set": fields})


def test_what_is_expected_is_found_with_all_that_its_report_needs(store: Store, now: datetime) -> None:
    token, [plain, made] = begin(store, now, 2)
    expect(store, made, token)
    assert event_document(store, made)["completion"] == {
        "tokens": ["d1"],
        "attempt": 1,
        "seconds": 60.0,
        "retry_in_ms": 1_500,
    }
    assert "row" not in event_document(store, made)
    expected = AwaitedEvent(
        *(made, "s1", now - SECOND, State.RUNNING, token),
        attempt=0,
        number=1,
        digests=("d1",),
        seconds=60.0,
        retry_in=RETRY,
        awaiting=False,
        report=None,
        last_message="Claimed by w1",
        receiver="http://x:80",
    )
    assert found(store, made) == expected
    change(store, made, {"origin": None, "attempts_before": 2})
    assert found(store, made) == expected._replace(receiver=UNKNOWN_ORIGIN, attempts_before=2)
    before = event_document(store, plain)
    assert store.completions.find(plain) is None
    assert event_document(store, plain) == before, "it is sound"


def test_the_tokens_of_the_last_attempts_are_known_and_the_rest_is_of_the_newest(
    store: Store, now: datetime
) -> None:
    token, [made] = begin(store, now)
    change(store, made, {"completion": {"tokens": "bent", "awaiting": True}})
    for number in range(KEPT_TOKENS + 2):
        expect(store, made, token, f"d{number}")
    expect(store, made, token, "last", number=13, seconds=5.0, retry_in=None)
    assert event_document(store, made)["completion"] == {
        "tokens": [*(f"d{number}" for number in range(3, KEPT_TOKENS + 2)), "last"],
        "attempt": 13,
        "seconds": 5.0,
    }
    assert found(store, made).retry_in is None


def test_events_that_waited_for_longer_than_their_time_are_found_and_no_others(
    store: Store, now: datetime
) -> None:
    token, ids = begin(store, now, 7)
    soon, later, in_time, unanswered, bent, before_all, redriven = ids
    for each in ids:
        expect(store, each, token)
        until = now + (10 if each == in_time else 2 if each == later else 1) * SECOND
        if each != unanswered:
            answer(store, each, token, now, until)
    change(store, bent, {"completion.retry_in_ms": "soon"})
    change(store, redriven, {"state": "ready_queue"})
    change(store, before_all, {"due_at": datetime(1960, 1, 1, tzinfo=now.tzinfo)})
    overdue = store.completions.overdue(now + 10 * SECOND, limit=10)
    assert [each.event_id for each in overdue] == [soon, later]
    assert [each.awaiting for each in overdue] == [True, True]
    assert event_document(store, bent)["state"] == "error"
    assert [each.event_id for each in store.completions.overdue(now + 10 * SECOND, limit=1)] == [soon]


def test_one_whose_history_says_nothing_is_found_all_the_same(store: Store, now: datetime) -> None:
    token, [made] = begin(store, now)
    expect(store, made, token)
    for lines, last in (([], ""), ([{"message": "a"}], "a"), ([{"message": "a"}, {"message": "b"}], "b")):
        change(store, made, {"status": lines})
        assert found(store, made).last_message == last
    change(store, made, {"status": [{"message": "a"}, 5]})
    assert found(store, made).last_message == ""


def test_what_is_said_before_the_answer_counts_as_an_attempt(store: Store, now: datetime) -> None:
    token, [made, other] = begin(store, now, 2)
    for each in (made, other):
        expect(store, each, token)
    living = {"dispatcher": "d", "isolated": token, "cause": "an earlier one", "hops": 2}
    change(store, made, living)
    before = event_document(store, made)
    of_other = event_document(store, other)
    report = CompletionReport("completed", 1, now + SECOND)
    outcome = CompletionOutcome(report, State.COMPLETED, "said", worker="w9")
    assert store.completions.tell(found(store, made), outcome)
    after = event_document(store, made)
    assert after.pop("status")[2:] == [{"time": now + SECOND, "status": "completed", "message": "said"}]
    gone = ("status", "due_at", "owner", "lease_until", *living)
    assert after == {name: value for name, value in before.items() if name not in gone} | {
        "hops": 2,
        "state": "completed",
        "archived_at": now + SECOND,
        "attempt": 1,
        "attempts": [{"number": 1, "started_at": now + SECOND, "worker": "w9", "claim": token}],
        "completion": before["completion"] | {"told": {"how": "completed", "attempt": 1, "at": now + SECOND}},
        "notify": {"when": "on_success", "since": now + SECOND, "hops": 2},
    }
    assert event_document(store, other) == of_other
    assert found(store, made).report == report


def test_what_is_said_after_the_answer_ends_the_attempt_that_was_recorded(
    store: Store, now: datetime
) -> None:
    token, ids = begin(store, now, 2)
    for each in ids:
        expect(store, each, token)
        answer(store, each, token, now, now + 60 * SECOND)
    again, over = ids
    before = event_document(store, again)
    report = CompletionReport("failed", 1, now + SECOND)
    retried = CompletionOutcome(report, State.RETRYING, "it failed", now + 5 * SECOND, CAUSE)
    assert store.completions.tell(found(store, again), retried)
    after = event_document(store, again)
    assert after.pop("status")[-1]["message"] == "it failed"
    del before["status"], before["completion"]["awaiting"]
    before["completion"]["told"] = {"how": "failed", "attempt": 1, "at": now + SECOND}
    assert after == before | {"state": "retrying", "due_at": now + 5 * SECOND, "cause": CAUSE.id}
    ended = CompletionOutcome(report, State.ERROR, "gave up", cause=CAUSE)
    assert store.completions.tell(found(store, over), ended)
    row = event_document(store, over)
    assert (row["attempt"], row["cause"], row["archived_at"]) == (1, CAUSE.id, now + SECOND)
    assert row["notify"] == {"when": "on_failure", "since": now + SECOND, "hops": 0}
    assert "due_at" not in row


@pytest.mark.parametrize(
    ("answered", "since"),
    [
        (False, {"state": "retrying"}),
        (False, {"attempt": 1}),
        (False, {"owner": "another"}),
        (True, {"owner": "another"}),
    ],
)
def test_an_event_that_has_changed_since_it_was_read_is_left_alone(
    store: Store, now: datetime, answered: bool, since: dict[str, Any]
) -> None:
    token, [made] = begin(store, now)
    expect(store, made, token)
    if answered:
        answer(store, made, token, now, now + 60 * SECOND)
    awaited = found(store, made)
    assert (awaited.owner is None) is answered
    change(store, made, since)
    before = event_document(store, made)
    report = CompletionReport("completed", 1, now + SECOND)
    assert not store.completions.tell(awaited, CompletionOutcome(report, State.COMPLETED, "said"))
    assert event_document(store, made) == before
