"""What a schedule expects of its runs is a cause while it is otherwise, and ends nothing."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.cause import Cause
from scheduler_app.domain.event import CompletionReport
from scheduler_app.domain.expectation import EXPECTED_KINDS, Expectation
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.causes import from_document
from scheduler_app.store.events.completions import CompletionOutcome, ExpectedCompletion
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.usecases.duties import expectations
from scheduler_app.usecases.duties.cause_inspection import CauseInspection
from tests.builders import event, schedule

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)


class Look:
    """An inspection, and the causes of expectations that live after it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.inspection = CauseInspection(store, lambda: (), lambda queues: ())

    def at(self, now: datetime) -> dict[str, Cause]:
        self.inspection.inspect(now)
        kinds = [kind.value for kind in EXPECTED_KINDS]
        rows = self.store.mongo.collection("causes").find({"living": True, "kind": {"$in": kinds}})
        return {f"{cause.key.kind.value} {cause.key.subject}": cause for cause in map(from_document, rows)}


@pytest.fixture
def look(store: Store) -> Look:
    return Look(store)


def make(store: Store, now: datetime, schedule_id: str = "s1", **fields: Any) -> None:
    expect = Expectation(**{name: fields.pop(name) for name in list(fields) if name in Expectation.__slots__})
    store.schedules.insert(schedule(now, schedule_id, rrule="FREQ=DAILY", expect=expect, **fields))


def run(store: Store, at: datetime, ended: datetime, state: State, schedule_id: str = "s1") -> None:
    """One run, from its event to its end."""
    begin(store, at, schedule_id)
    end(store, at, ended, state, schedule_id)


def begin(store: Store, at: datetime, schedule_id: str = "s1") -> str:
    made = event(at, schedule_id)
    store.events.insert([made], at, "made")
    token, [claimed] = store.claims.claim([made.id], until=at, now=at, lease_seconds=9_999, worker="w")
    assert claimed.id == made.id
    tokens[made.id] = token
    return made.id


def end(store: Store, at: datetime, ended: datetime, state: State, schedule_id: str = "s1") -> None:
    event_id = event(at, schedule_id).id
    line = {"number": 1, "started_at": at, "worker": "w"}
    due = ended + HOUR if state in (State.RUNNING, State.RETRYING) else None
    record = OutcomeRecord(event_id, tokens[event_id], state, "said", due, line, ended)
    assert store.outcomes.record([record]) == []


tokens: dict[str, str] = {}


def stored(store: Store) -> Schedule:
    found = store.schedules.get("s1")
    assert isinstance(found, Schedule)
    return found


def test_a_run_that_takes_too_long_is_told_while_it_runs(store: Store, look: Look, now: datetime) -> None:
    make(store, now, max_runtime_seconds=60, tags=("nightly",))
    store.schedules.insert(schedule(now, "s2"))
    begin(store, now, "s2")
    event_id = begin(store, now)
    assert look.at(now + 59 * SECOND) == {}
    [(name, cause)] = look.at(now + 60 * SECOND).items()
    assert (name, cause.since, cause.event_id) == ("overrunning s1", now + 60 * SECOND, event_id)
    assert cause.error == "a run has taken longer than 60 s"
    assert (cause.schedules.names, cause.tags.names, cause.failed) == (("s1",), ("nightly",), 1)
    # Nothing but the time has passed: nothing is written. And nothing is ended.
    assert look.at(now + 90 * SECOND)[name].writes == cause.writes
    [left] = store.mongo.collection("events").find({"_id": event_id}, {"state": 1})
    assert left["state"] == "running"
    end(store, now, now + 95 * SECOND, State.COMPLETED)
    assert look.at(now + 100 * SECOND) == {}


def test_an_attempt_counts_from_its_own_start_and_from_its_events_time(
    store: Store, look: Look, now: datetime
) -> None:
    """A worker claims an event some seconds before its time."""
    make(store, now, max_runtime_seconds=60)
    made = event(now + 5 * SECOND, "s1")
    store.events.insert([made], now, "made")
    later = now + 90 * SECOND
    store.claims.claim([made.id], until=later, now=now, lease_seconds=9_999, worker="w")
    assert look.at(now + 64 * SECOND) == {}
    assert [*look.at(now + 65 * SECOND)] == ["overrunning s1"]


def test_work_that_its_receiver_reports_later_runs_until_then(
    store: Store, look: Look, now: datetime
) -> None:
    make(store, now, max_runtime_seconds=60, completion="callback")
    event_id = begin(store, now)
    expected = ExpectedCompletion(event_id, tokens[event_id], "digest", 1, 3_600.0, None)
    assert store.completions.expect([expected]) == {event_id}
    end(store, now, now + 3 * SECOND, State.RUNNING)
    assert look.at(now + 59 * SECOND) == {}
    assert [*look.at(now + 60 * SECOND)] == ["overrunning s1"]
    awaited = store.completions.find(event_id)
    assert awaited is not None
    report = CompletionReport("completed", 1, now + 70 * SECOND)
    assert store.completions.tell(awaited, CompletionOutcome(report, State.COMPLETED, "said"))
    assert look.at(now + 80 * SECOND) == {}


def test_a_run_that_is_not_completed_in_its_time_is_told_until_one_is(
    store: Store, look: Look, now: datetime
) -> None:
    make(store, now, completes_within_seconds=3_600)
    begin(store, now)
    end(store, now, now + SECOND, State.RETRYING)
    assert look.at(now + HOUR - SECOND) == {}
    [cause] = look.at(now + HOUR).values()
    assert cause.key.kind == "not_completed"
    assert (cause.since, cause.event_id) == (now + HOUR, event(now, "s1").id)
    assert "was not completed within 3,600 s of its time" in cause.error
    store.mongo.collection("events").delete_many({})
    assert look.at(now + HOUR + SECOND) == {}
    # What has given up is completed no more. The next run, which still has time, does not end that.
    run(store, now + DAY, now + DAY + SECOND, State.ERROR)
    assert look.at(now + DAY + 2 * SECOND) == {}
    assert [*look.at(now + DAY + HOUR)] == ["not_completed s1"]
    begin(store, now + 2 * DAY)
    assert [*look.at(now + 2 * DAY + SECOND)] == ["not_completed s1"]
    end(store, now + 2 * DAY, now + 2 * DAY + 2 * SECOND, State.COMPLETED)
    assert look.at(now + 2 * DAY + 3 * SECOND) == {}


def test_no_success_for_too_long_is_told_until_there_is_one(store: Store, look: Look, now: datetime) -> None:
    make(store, now, success_within_seconds=26 * 3_600)
    assert look.at(now + 26 * HOUR - SECOND) == {}
    [cause] = look.at(now + 26 * HOUR).values()
    assert (cause.key.kind, cause.since) == ("no_success", now + 26 * HOUR)
    assert cause.error == "no run has succeeded for 93,600 s"
    run(store, now + 27 * HOUR, now + 28 * HOUR, State.COMPLETED)
    assert look.at(now + 28 * HOUR) == {}
    # From then on runs fail: the last success counts, however many runs ago it was.
    for hour in range(29, 53):
        run(store, now + hour * HOUR, now + hour * HOUR + SECOND, State.ERROR)
    assert look.at(now + 54 * HOUR - SECOND) == {}
    [cause] = look.at(now + 54 * HOUR).values()
    assert cause.since == now + 54 * HOUR


def test_nothing_is_expected_of_a_pause_and_the_time_begins_again_after_it(
    store: Store, look: Look, now: datetime
) -> None:
    make(store, now, success_within_seconds=3_600)
    assert [*look.at(now + HOUR)] == ["no_success s1"]
    known = stored(store)
    paused = replace(known.revise(now + HOUR, state=ScheduleState.PAUSED), version=2)
    assert store.schedules.revise(paused, version=1)
    assert look.at(now + 2 * HOUR) == {}
    resumed = replace(paused.revise(now + 5 * HOUR, state=ScheduleState.ACTIVE), version=3)
    assert store.schedules.revise(resumed, version=2)
    assert look.at(now + 6 * HOUR - SECOND) == {}
    assert [*look.at(now + 6 * HOUR)] == ["no_success s1"]


@pytest.mark.parametrize("gone", ["edited", "deleted"])
def test_it_is_over_when_nothing_is_expected_any_more(
    store: Store, look: Look, now: datetime, gone: str
) -> None:
    make(store, now, success_within_seconds=3_600)
    assert [*look.at(now + HOUR)] == ["no_success s1"]
    if gone == "edited":
        assert store.schedules.update(replace(stored(store), expect=None, version=2), version=1)
    else:
        store.schedules.delete("s1", now + HOUR)
    assert look.at(now + HOUR + SECOND) == {}


def test_many_schedules_take_turns(
    store: Store, look: Look, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expectations, "SCHEDULES_A_LOOK", 2)
    for number in range(5):
        make(store, now, f"s{number}", success_within_seconds=3_600)
    found = [len(look.at(now + HOUR + number * SECOND)) for number in range(3)]
    assert found == [2, 4, 5]
    for number in range(5):
        run(store, now + HOUR, now + HOUR + SECOND, State.COMPLETED, f"s{number}")
    left = [len(look.at(now + HOUR + number * SECOND)) for number in range(10, 13)]
    assert left == [3, 1, 0]


def test_what_is_deleted_or_cannot_be_read_keeps_none_from_its_turn(
    store: Store, look: Look, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expectations, "SCHEDULES_A_LOOK", 2)
    for number in range(5):
        make(store, now, f"s{number}", success_within_seconds=3_600)
    store.schedules.delete("s0", now)
    bent = {"$set": {"expect": {"max_runtime_seconds": "long"}}}
    store.mongo.collection("schedules").update_many({"_id": {"$in": ["s2", "s3"]}}, bent)
    looks = [[*look.at(now + HOUR + number * SECOND)] for number in range(3)]
    assert looks[-1] == ["no_success s1", "no_success s4"]


def test_causes_that_go_on_keep_none_from_its_end(
    store: Store, look: Look, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expectations, "SCHEDULES_A_LOOK", 2)
    for number in range(6):
        make(store, now, f"s{number}", success_within_seconds=3_600 + number)
    for number in range(4):
        found = look.at(now + HOUR + (10 + number) * SECOND)
    assert len(found) == 6
    run(store, now + HOUR, now + HOUR + SECOND, State.COMPLETED, "s4")
    store.schedules.delete("s5", now)
    monkeypatch.setattr(expectations, "CAUSES_A_LOOK", 2)
    for number in range(4):
        found = look.at(now + HOUR + (20 + number) * SECOND)
    assert [*found] == [f"no_success s{number}" for number in range(4)]


def test_a_look_searches_for_few_last_successes_and_the_next_one_goes_on(
    store: Store, look: Look, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expectations, "SEARCHES_A_LOOK", 1)
    for number in range(3):
        make(store, now, f"s{number}", success_within_seconds=3_600)
        run(store, now + SECOND, now + 2 * SECOND, State.ERROR, f"s{number}")
    assert [len(look.at(now + HOUR + number * SECOND)) for number in range(3)] == [1, 2, 3]


def test_a_document_that_cannot_be_read_expects_nothing(store: Store, look: Look, now: datetime) -> None:
    make(store, now, "s1", success_within_seconds=3_600)
    make(store, now, "s2", success_within_seconds=3_600)
    bent = {"$set": {"expect": {"max_runtime_seconds": "long"}}}
    store.mongo.collection("schedules").update_one({"_id": "s1"}, bent)
    assert [*look.at(now + HOUR)] == ["no_success s2"]
