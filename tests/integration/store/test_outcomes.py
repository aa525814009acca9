"""How attempts ended is written once, in bounded writes, and never at the expense of other events."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from pymongo.errors import BulkWriteError

from scheduler_app.domain.cause import failing_key
from scheduler_app.domain.notification import Notifying, OwedNotification
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events import outcomes
from scheduler_app.store.events.outcomes import MAX_OUTPUT, OutcomeRecord, PastEvent, PastEvents
from scheduler_app.store.schedules.last_runs import RunResult
from tests.builders import event, schedule
from tests.documents import event_document

SECOND = timedelta(seconds=1)


def claimed(store: Store, now: datetime, count: int) -> tuple[str, list[str]]:
    made = [event(now - number * SECOND) for number in range(count)]
    store.events.insert(made, now, "made")
    ids = [each.id for each in made]
    token, won = store.claims.claim(ids, until=now, now=now, lease_seconds=60, worker="w1")
    assert len(won) == count
    return token, ids


def completed(event_id: str, token: str, now: datetime, **attempt: Any) -> OutcomeRecord:
    return OutcomeRecord(event_id, token, State.COMPLETED, "done", None, {"number": 1} | attempt, now)


def row(store: Store, event_id: str) -> dict[str, Any]:
    found = event_document(store, event_id)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("characters", "writes"), [(100, [3]), (MAX_OUTPUT // 2, [2, 1]), (MAX_OUTPUT, [1, 1, 1])]
)
def test_long_outputs_are_written_in_several_writes(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch, characters: int, writes: list[int]
) -> None:
    token, ids = claimed(store, now, 3)
    write, sizes = store.outcomes._record, list[int]()

    def noted(records: Sequence[OutcomeRecord]) -> list[OutcomeRecord]:
        sizes.append(len(records))
        return write(records)

    monkeypatch.setattr(store.outcomes, "_record", noted)
    records = [completed(each, token, now, output="x" * characters) for each in ids]
    assert store.outcomes.record(records) == []
    assert sizes == writes
    assert [row(store, each)["state"] for each in ids] == ["completed"] * 3


def test_records_of_two_claims_of_one_event_are_written_one_after_the_other(
    store: Store, now: datetime
) -> None:
    first, (event_id,) = claimed(store, now, 1)
    store.claims.give_back([event_id], first, now, "its lease was over")
    second, _ = store.claims.claim([event_id], until=now, now=now, lease_seconds=60, worker="w2")
    late, counted = completed(event_id, first, now), completed(event_id, second, now)
    assert store.outcomes.record([late, counted]) == [late]
    found = row(store, event_id)
    assert (found["state"], found["attempt"]) == ("completed", 1)
    assert store.outcomes.record([late, counted]) == [late], "nothing is written twice"
    assert len(row(store, event_id)["attempts"]) == 1


def test_only_an_event_whose_receiver_is_to_say_how_it_went_waits_for_that(
    store: Store, now: datetime
) -> None:
    token, (awaited, done) = claimed(store, now, 2)
    accepted = OutcomeRecord(awaited, token, State.RUNNING, "accepted", now + SECOND, {"number": 1}, now)
    assert store.outcomes.record([accepted, completed(done, token, now)]) == []
    assert row(store, awaited)["completion"] == {"awaiting": True}
    assert (row(store, awaited)["state"], row(store, done)["state"]) == ("running", "completed")
    assert "completion" not in row(store, done)


def test_a_recorded_event_is_as_it_was_but_for_its_outcome(store: Store, now: datetime) -> None:
    token, ids = claimed(store, now, 4)
    retried, dead, accepted, told_before = ids
    events = store.mongo.collection("events")
    of_the_claim = {"dispatcher": "d", "isolated": token, "postponed_from": now, "waits_for": "another"}
    events.update_many({}, {"$set": of_the_claim | {"cause": "an earlier one", "hops": 2}})
    earlier = {"when": "on_failure", "since": now - SECOND}
    events.update_one({"_id": told_before}, {"$set": {"notify": earlier}})
    events.update_one({"_id": accepted}, {"$set": {"completion": {"tokens": ["t"]}}})
    cause, ended_at = failing_key("s1", "http://x:80", 503, None), now + SECOND
    owed = OwedNotification(Notifying.ON_FAILURE, ended_at, "ops")

    def ended(event_id: str, state: State, due_at: datetime | None = None) -> OutcomeRecord:
        return OutcomeRecord(event_id, token, state, "said", due_at, {"number": 1}, ended_at)

    def as_recorded(event_id: str, state: str, fields: dict[str, Any]) -> dict[str, Any]:
        before = row(store, event_id)
        gone = {"due_at", "owner", "lease_until", "cause", *of_the_claim}
        return (
            {name: value for name, value in before.items() if name not in gone}
            | {
                "state": state,
                "attempt": 1,
                "attempts": [{"number": 1, "claim": token}],
                "status": [*before["status"], {"time": ended_at, "status": state, "message": "said"}],
            }
            | fields
        )

    later: dict[str, Any] = {"due_at": now + 9 * SECOND, "cause": cause.id}
    over: dict[str, Any] = {"archived_at": ended_at}
    mark = {"when": "on_failure", "since": ended_at, "destination": "ops"}
    awaited: dict[str, Any] = {"due_at": now + 60 * SECOND, "completion": {"tokens": ["t"], "awaiting": True}}
    expected = {
        retried: as_recorded(retried, "retrying", later),
        dead: as_recorded(dead, "error", over | {"cause": cause.id, "notify": mark}),
        told_before: as_recorded(told_before, "completed", over | {"notify": earlier}),
        accepted: as_recorded(accepted, "running", awaited),
    }
    records = [
        ended(retried, State.RETRYING, later["due_at"])._replace(cause=cause),
        ended(dead, State.ERROR)._replace(cause=cause, owed=owed),
        ended(told_before, State.COMPLETED),
    ]
    assert store.outcomes.record(records) == []
    assert store.outcomes.record([ended(accepted, State.RUNNING, awaited["due_at"])]) == []
    assert {each: row(store, each) for each in ids} == expected


def test_an_outcome_reaches_its_own_event_alone_while_its_claim_holds(store: Store, now: datetime) -> None:
    token, (mine, cancelled, of_the_same, another_s) = claimed(store, now, 4)
    events = store.mongo.collection("events")
    events.update_one({"_id": cancelled}, {"$set": {"state": "cancelled"}})  # and the token stays
    events.update_one({"_id": another_s}, {"$set": {"owner": "another"}})
    before = [row(store, each) for each in (cancelled, of_the_same, another_s)]
    records = [completed(each, token, now) for each in (mine, another_s, cancelled)]
    assert store.outcomes.record(records) == records[1:]
    assert row(store, mine)["state"] == "completed"
    assert [row(store, each) for each in (cancelled, of_the_same, another_s)] == before


def test_an_outcome_of_a_corrupt_event_is_kept_with_it(store: Store, now: datetime) -> None:
    token, ids = claimed(store, now, 3)
    store.mongo.collection("events").update_one({"_id": ids[1]}, {"$set": {"status": "bent"}})
    records = [completed(each, token, now) for each in ids]
    assert store.outcomes.record(records) == [], "each is written"
    assert [row(store, each)["state"] for each in ids] == ["completed", "error", "completed"]
    assert [len(row(store, each)["attempts"]) for each in ids] == [1, 1, 1]


def test_a_late_outcome_of_a_corrupt_event_is_kept_with_it_and_the_others_get_theirs(
    store: Store, now: datetime
) -> None:
    token, ids = claimed(store, now, 3)
    store.claims.give_back(ids, token, now, "their lease was over")
    events = store.mongo.collection("events")
    events.update_one({"_id": ids[1]}, {"$set": {"attempts": "bent"}})
    records = [completed(each, token, now) for each in ids]
    assert store.outcomes.record(records) == records
    store.outcomes.record_late(records)
    for each in ids:
        (attempt,) = row(store, each)["attempts"]
        assert (attempt["claim"], attempt["late"]) == (token, True)
    assert [row(store, each)["state"] for each in ids] == ["ready_queue", "error", "ready_queue"]
    store.outcomes.record_late(records)
    assert [len(row(store, each)["attempts"]) for each in ids] == [1, 1, 1]


def test_a_late_outcome_that_mongodb_rejects_for_no_event_s_fault_is_an_error(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, ids = claimed(store, now, 1)
    bad = completed(ids[0], token, now)
    monkeypatch.setattr("scheduler_app.store.events.outcomes.appended", lambda *_: {"$nothing": 1})
    with pytest.raises(BulkWriteError):
        store.outcomes.record_late([bad])
    assert row(store, ids[0])["state"] == "running"


def test_a_dead_letter_with_a_corrupt_history_is_redriven_with_the_others(
    store: Store, now: datetime
) -> None:
    token, ids = claimed(store, now, 3)
    dead = [
        OutcomeRecord(each, token, State.ERROR, "no", None, {"number": 1, "error": "no"}, now) for each in ids
    ]
    assert store.outcomes.record(dead) == []
    store.mongo.collection("events").update_one({"_id": ids[1]}, {"$set": {"status": "bent"}})
    again = store.events.redrive(ids, now, "again")
    assert {each.id for each in again} == set(ids)
    for each in ids:
        found = row(store, each)
        assert (found["state"], found["status"][-1]["message"]) == ("ready_queue", "again")
        assert (found["attempts_before"], found["attempt"]) == (1, 1)


def test_a_message_without_its_content_is_not_stored(store: Store, now: datetime) -> None:
    with pytest.raises(ValueError, match="has no content"):
        store.messages.insert(event(now), now)
    assert store.mongo.collection("events").count_documents({}) == 0


def test_made_up_events_of_the_past_are_as_if_they_had_been_delivered(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "AT_ONCE", 2)
    made = [event(now - number * SECOND) for number in range(5)]
    attempts = [
        {"number": number, "started_at": now + number * SECOND, "status_code": status}
        for number, status in ((1, 500), (2, 503), (3, 200))
    ]
    past = [PastEvent(each, State.COMPLETED, now + 4 * SECOND, "done", attempts) for each in made]
    PastEvents(store.mongo).insert(past)
    for each in made:
        found = row(store, each.id)
        assert "due_at" not in found
        assert (found["state"], found["attempt"], found["archived_at"]) == ("completed", 3, now + 4 * SECOND)
        assert found["attempts"] == attempts
        lines = [(line["status"], line["time"], line["message"]) for line in found["status"]]
        assert lines == [
            ("ready_queue", each.run_time, "Expanded"),
            ("retrying", now + SECOND, "Attempt 1 failed"),
            ("retrying", now + 2 * SECOND, "Attempt 2 failed"),
            ("completed", now + 4 * SECOND, "done"),
        ]
    new = PastEvent(event(now - 9 * SECOND), State.ERROR, now, "no", [])
    with pytest.raises(BulkWriteError):
        PastEvents(store.mongo).insert([past[0], new])
    assert row(store, new.event.id)["state"] == "error", "one that is there already keeps no other out"


def test_the_last_run_of_a_made_up_past_lies_before_its_schedule_was_made(
    store: Store, now: datetime
) -> None:
    store.schedules.insert_many([schedule(now, name) for name in ("s2", "s1")])
    long_ago = now - timedelta(days=3)
    ran = RunResult("s1", long_ago, State.ERROR, "s1-1", long_ago + SECOND)
    store.last_runs.write([ran])  # which takes it for that of an earlier schedule
    assert "last_run" not in (store.mongo.collection("schedules").find_one({"_id": "s1"}) or {})
    PastEvents(store.mongo).note_last(ran)
    rows: dict[str, Any] = {
        each["_id"]: each.get("last_run") for each in store.mongo.collection("schedules").find()
    }
    assert rows["s2"] is None
    assert (rows["s1"]["outcome"], rows["s1"]["event_id"]) == ("error", "s1-1")
