"""Runs that would overlap: what a worker does with an event whose earlier one is not finished."""

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import REGISTRY

from scheduler_app.clock import clock
from scheduler_app.domain.event import Event, manual
from scheduler_app.domain.ids import backfill_event_id
from scheduler_app.domain.states import Kind
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.store.events.overlaps import UnfinishedEvent, UnsentOutcome
from scheduler_app.usecases.duties.housekeeping import Recovery
from scheduler_app.usecases.questions.explanation import explain_schedule
from scheduler_app.worker import policies
from tests.acceptance.journal import Journal
from tests.builders import LONG_OVER, event
from tests.integration.actions.receiver import Behaviour, says
from tests.integration.usecases.test_delivery import Bench, bench, journal, start
from tests.overlaps import broken_promises
from tests.processes import PATIENCE_SECONDS, wait_until

__all__ = ["bench", "journal", "start"]  # fixtures

SECOND = timedelta(seconds=1)


def slow(seconds: float, status: str = "200 OK") -> Behaviour:
    """A receiver that works before it answers."""
    answer = says(status)

    def behave(seen: object, connection: object) -> bool:
        time.sleep(seconds)
        return answer(seen, connection)  # type: ignore[arg-type]

    return behave


def gated() -> tuple[threading.Event, Behaviour]:
    """A receiver that answers once the event is set."""
    gate, answer = threading.Event(), says()

    def behave(seen: object, connection: object) -> bool:
        gate.wait(PATIENCE_SECONDS)
        return answer(seen, connection)  # type: ignore[arg-type]

    return gate, behave


def last_line(bench: Bench, event_id: str) -> str:
    return str(bench.document(event_id)["status"][-1]["message"])


def fails_once(bench: Bench, journal: Journal, event_id: str) -> None:
    """One attempt of the event, after which it waits for its retry."""
    assert bench.deliver([event_id]) == 1
    assert bench.state(event_id) == "retrying"


# -- skip ------------------------------------------------------------------------------------------------


def test_an_occurrence_is_skipped_while_an_earlier_one_runs(bench: Bench, journal: Journal) -> None:
    gate, behave = gated()
    bench.schedule(journal.script("/a", behave), run_overlap="skip")
    first, second = bench.event(clock.now() - SECOND), bench.event(clock.now())
    bench.hand_over([first])
    wait_until(lambda: len(journal.calls["/a"]) == 1, "the first request")
    bench.hand_over([second])
    wait_until(lambda: bench.state(second) == "skipped", "the second to be skipped")
    gate.set()
    assert bench.pipeline.wait_until_empty(PATIENCE_SECONDS)
    assert bench.state(first) == "completed"
    assert [call.key for call in journal.calls["/a"]] == [first]
    assert last_line(bench, second) == (
        f"Skipped: run_overlap is skip, and the earlier event {first} is running"
    )
    assert "due_at" not in bench.document(second)
    assert "owner" not in bench.document(second)


def test_an_occurrence_is_not_skipped_because_of_a_later_one(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"), run_overlap="skip")
    first, later = bench.event(clock.now() - SECOND), bench.event(clock.now() + 60 * SECOND)
    assert bench.deliver([first]) == 1
    assert bench.state(first) == "completed"
    assert bench.state(later) == "ready_queue"


def test_a_retry_that_waits_counts_as_unfinished(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.script("/a", says("500 No")), run_overlap="skip")
    first, second = bench.event(clock.now() - SECOND), bench.event(clock.now())
    fails_once(bench, journal, first)
    bench.deliver([second])
    assert bench.state(second) == "skipped"
    assert f"{first} is retrying" in last_line(bench, second)


def test_a_retry_that_waits_does_not_count_where_attempts_alone_do(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.script("/a", says("500 No"), says()), run_overlap="skip", overlap_scope="attempt")
    first, second = bench.event(clock.now() - SECOND), bench.event(clock.now())
    fails_once(bench, journal, first)
    bench.deliver([second])
    assert bench.state(second) == "completed"


def test_an_attempt_that_runs_counts_in_both_scopes(bench: Bench, journal: Journal) -> None:
    gate, behave = gated()
    bench.schedule(
        journal.script("/a", behave),
        run_overlap="skip",
        overlap_scope="attempt",
    )
    first, second = bench.event(clock.now() - SECOND), bench.event(clock.now())
    bench.hand_over([first])
    wait_until(lambda: len(journal.calls["/a"]) == 1, "the first request")
    bench.hand_over([second])
    wait_until(lambda: bench.state(second) == "skipped", "the second to be skipped")
    gate.set()


def test_a_manual_run_counts_as_any_other(bench: Bench, journal: Journal) -> None:
    gate, behave = gated()
    bench.schedule(journal.script("/a", behave), run_overlap="skip")
    now = clock.now()
    by_hand = manual("s1", 1, now)
    bench.store.events.insert([by_hand], now, "made")
    first = bench.event(now - SECOND)
    bench.hand_over([first])
    wait_until(lambda: len(journal.calls["/a"]) == 1, "the first request")
    bench.hand_over([by_hand.id])
    wait_until(lambda: bench.state(by_hand.id) == "skipped", "the manual one to be skipped")
    gate.set()


def test_a_backlog_in_one_batch_runs_its_first_and_skips_the_others(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"), run_overlap="skip")
    ids = [bench.event(clock.now() - number * SECOND) for number in range(5, 0, -1)]
    bench.deliver(ids)
    assert [bench.state(each) for each in ids] == ["completed", *["skipped"] * 4]


@pytest.mark.parametrize("policy", ["skip", "queue", "cancel_earlier"])
def test_a_backfill_neither_holds_the_living_back_nor_is_held_back(
    bench: Bench, journal: Journal, policy: str
) -> None:
    bench.schedule(journal.script("/a", says("500 No"), says()), run_overlap=policy)
    past = [clock.now().replace(microsecond=0) - number * 3_600 * SECOND for number in (3, 2)]
    backfilled = [
        event(each, due_at=each, kind=Kind.BACKFILL, id=backfill_event_id("s1", "1", each)) for each in past
    ]
    bench.store.events.insert(backfilled, clock.now(), "made")
    living = bench.event(clock.now())
    fails_once(bench, journal, backfilled[0].id)
    assert bench.deliver([living]) == 1
    assert bench.state(living) == "completed"
    assert bench.state(backfilled[0].id) == "retrying"
    bench.deliver([backfilled[1].id])
    assert bench.state(backfilled[1].id) == "completed"


def test_an_event_that_cannot_be_read_holds_nobody_back(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"), run_overlap="skip")
    documents = bench.store.mongo.collection("events")
    for number, bent in enumerate(
        [{"run_time": 5}, {"run_time": "x"}, {"state": "asleep"}, {"state": ["running"]}], start=2
    ):
        event_id = bench.event(clock.now() - number * SECOND)
        documents.update_one({"_id": event_id}, {"$set": bent})
    sound = bench.event(clock.now())
    bench.deliver([sound])
    assert bench.state(sound) == "completed"


def test_another_schedule_holds_nobody_back(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"), "s1", run_overlap="skip")
    bench.schedule(journal.url("/b"), "s2", run_overlap="skip")
    bench.event(clock.now() - 60 * SECOND, "s2")
    mine = bench.event(clock.now(), "s1")
    bench.deliver([mine])
    assert bench.state(mine) == "completed"


def test_what_was_withdrawn_is_cancelled_and_not_skipped(bench: Bench, journal: Journal) -> None:
    made = bench.schedule(journal.url("/a"), run_overlap="skip")
    bench.event(clock.now() - SECOND)
    second = bench.event(clock.now())
    bench.store.mongo.collection("schedules").update_one({"_id": made.id}, {"$set": {"state": "deleted"}})
    bench.deliver([second])
    assert bench.state(second) == "cancelled"


def test_the_event_of_a_dead_worker_holds_others_back_until_recovery(
    start: Callable[..., Bench], journal: Journal
) -> None:
    bench = start()
    bench.schedule(journal.url("/a"), run_overlap="queue")
    first, second = bench.event(clock.now() - SECOND), bench.event(clock.now())
    # A worker that was killed after its claim.
    now = clock.now()
    bench.store.claims.claim([first], until=now, now=now, lease_seconds=LONG_OVER, worker="dead")
    bench.deliver([second])
    assert bench.state(second) == "ready_queue"
    assert f"Waits in place 1 for the earlier event {first}" in last_line(bench, second)
    assert Recovery(bench.store).recover_workers(clock.now()).workers == 1
    due = bench.document(first)["due_at"]
    wait_until(lambda: clock.now() >= due, "the recovered event's time")
    bench.hand_over([first])
    wait_until(lambda: bench.state(second) == "completed", "the second to follow")
    assert [call.key for call in journal.calls["/a"]] == [first, second]


def test_why_names_the_earlier_event_and_the_policy(bench: Bench, journal: Journal) -> None:
    at = clock.now().replace(microsecond=0)
    bench.schedule(journal.url("/a"), run_overlap="skip")
    first, second = bench.event(at - SECOND), bench.event(at)
    bench.deliver([second])
    _, explanation, event = explain_schedule(bench.store, "s1", at, clock.now())
    assert event is not None
    assert event.state == "skipped"
    (reason,) = explanation.reasons
    assert reason.code == "skipped"
    assert f"run_overlap is skip, and the earlier event {first}" in reason.message


# -- queue -----------------------------------------------------------------------------------------------


def test_who_waits_is_delivered_when_the_earlier_one_ends(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"), run_overlap="queue")
    ids = [bench.event(clock.now() - number * SECOND) for number in (2, 1)]
    bench.hand_over(ids)
    wait_until(lambda: [bench.state(each) for each in ids] == ["completed"] * 2, "both to have run")
    assert [call.key for call in journal.calls["/a"]] == ids


def test_queued_events_follow_each_other_in_order_without_a_beat(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.script("/a", slow(0.05)), run_overlap="queue")
    ids = [bench.event(clock.now() - number * SECOND) for number in range(8, 0, -1)]
    bench.hand_over(ids)
    wait_until(lambda: all(bench.state(each) == "completed" for each in ids), "all to have run")
    assert [call.key for call in journal.calls["/a"]] == ids
    documents = [bench.document(each) for each in ids]
    assert all(each["attempt"] == 1 for each in documents)
    assert all("waits_for" not in each for each in documents)
    # Each was claimed once to find that it waits, and once for its turn.
    assert all(claims(each) <= 2 for each in documents)
    assert not broken_promises("queue", documents, arrivals(journal))


def test_an_event_that_ran_before_its_waker_went_on_keeps_its_history(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its waker is stopped (SIGSTOP) in between; a beat and another worker see to the event."""
    overlaps, events = bench.store.overlaps, bench.store.mongo.collection("events")
    waiting = bench.event(clock.now())
    events.update_one({"_id": waiting}, {"$set": {"waits_for": "an earlier one"}})
    read = overlaps._majority.find

    def read_later(*arguments: Any, **options: Any) -> Any:
        ended = {"$set": {"state": "completed"}, "$unset": {"due_at": ""}}
        assert events.update_one({"_id": waiting}, ended).modified_count == 1
        return read(*arguments, **options)

    monkeypatch.setattr(overlaps, "_majority", SimpleNamespace(find=read_later))
    assert overlaps.wake_next("s1", clock.now()) is None
    assert bench.state(waiting) == "completed"
    assert last_line(bench, waiting) == "It is its turn: the earlier event has ended"


def claims(document: dict[str, object]) -> int:
    lines = document["status"]
    assert isinstance(lines, list)
    return sum(line["message"].startswith("Claimed") for line in lines)


def arrivals(journal: Journal, path: str = "/a") -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for call in journal.calls[path]:
        found[call.key].append(call.at)
    return found


def test_no_more_wait_than_the_queue_has_room_for(bench: Bench, journal: Journal) -> None:
    gate, behave = gated()
    bench.schedule(journal.script("/a", behave), run_overlap="queue", queue_limit=2)
    ids = [bench.event(clock.now() - number * SECOND) for number in range(6, 0, -1)]
    bench.hand_over(ids[:1])
    wait_until(lambda: len(journal.calls["/a"]) == 1, "the first request")
    for each in ids[1:]:
        # Several threads judge events: one that is handed over later may be judged first.
        bench.hand_over([each])
        wait_until(lambda each=each: bench.state(each) != "running", "it to be judged")  # type: ignore[misc]
    assert [bench.state(each) for each in ids] == ["running", *["ready_queue"] * 2, *["skipped"] * 3]
    assert f"queue with room for 2, and the earlier event {ids[0]} is running" in last_line(bench, ids[3])
    gate.set()
    wait_until(lambda: bench.state(ids[2]) == "completed", "those that waited")
    documents = [bench.document(each) for each in ids]
    assert not broken_promises("queue", documents, arrivals(journal), queue_limit=2)


def test_an_event_waits_for_the_retries_of_the_earlier_one(bench: Bench, journal: Journal) -> None:
    bench.schedule(
        journal.script("/a", says("500 No"), says()),
        run_overlap="queue",
        backoff_seconds=0.1,
        backoff_max_seconds=0.1,
    )
    first, second = bench.event(clock.now() - SECOND), bench.event(clock.now())
    fails_once(bench, journal, first)
    bench.deliver([second])
    assert bench.state(second) == "ready_queue"
    bench.hand_over([first])
    wait_until(lambda: bench.state(second) == "completed", "the second to follow")
    assert [call.key for call in journal.calls["/a"]] == [first, first, second]


def test_who_waits_looks_by_itself_where_nobody_wakes_it(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"), run_overlap="queue")
    now = clock.now()
    first, second = bench.event(now - SECOND), bench.event(now)
    bench.deliver([second])
    waiting = bench.document(second)
    assert now + 5 * SECOND < waiting["due_at"] <= clock.now() + 10 * SECOND
    assert waiting["postponed_from"] <= now
    # The earlier one ends without a worker's doing.
    assert bench.store.cancellations.cancel(first, now, "withdrawn")
    which = {"_id": second}
    bench.store.mongo.collection("events").update_one(which, {"$set": {"due_at": now}})
    bench.deliver([second])
    assert bench.state(second) == "completed"


def test_what_is_remembered_of_waiting_schedules_is_bounded(
    bench: Bench, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "MAX_HELD", 5)
    made = bench.schedule(journal.url("/a"), run_overlap="queue")
    idle = policies.Followers(bench.store, now=clock.now)
    several = [event(clock.now() + number * SECOND, made.id) for number in range(8)]
    idle.note((each, made) for each in several)
    assert list(idle._held) == [each.id for each in several[3:]]
    for number in range(policies.MAX_WAITING + 5):
        idle._put((f"s{number}", "event"))
    assert idle._ended.qsize() == policies.MAX_WAITING
    idle.stop()


# -- cancel_earlier --------------------------------------------------------------------------------------


def test_a_new_run_ends_the_earlier_one_s_retries(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.script("/a", says("500 No"), says()), run_overlap="cancel_earlier")
    first, second = bench.event(clock.now() - SECOND), bench.event(clock.now())
    fails_once(bench, journal, first)
    bench.deliver([second])
    assert bench.state(second) == "completed"
    assert bench.state(first) == "cancelled"
    assert last_line(bench, first) == f"Cancelled: run_overlap is cancel_earlier, and {second} has begun"
    assert "due_at" not in bench.document(first)


def test_a_request_in_flight_is_not_cut_off_and_not_retried(bench: Bench, journal: Journal) -> None:
    gate, answer = threading.Event(), says("500 No")

    def behave(seen: object, connection: object) -> bool:
        gate.wait(PATIENCE_SECONDS)
        return answer(seen, connection)  # type: ignore[arg-type]

    bench.schedule(
        journal.script("/a", behave, says()),
        run_overlap="cancel_earlier",
        backoff_seconds=0.1,
        backoff_max_seconds=0.1,
    )
    first, second = bench.event(clock.now() - SECOND), bench.event(clock.now())
    bench.hand_over([first])
    wait_until(lambda: len(journal.calls["/a"]) == 1, "the first request")
    bench.hand_over([second])
    wait_until(lambda: bench.state(second) == "completed", "the second to run beside it")
    assert bench.state(first) == "running"
    gate.set()
    wait_until(lambda: bench.state(first) == "retrying", "the first to have failed")
    bench.deliver([first])
    assert bench.state(first) == "cancelled"
    assert len(journal.calls["/a"]) == 2


def test_an_earlier_one_that_completes_beside_it_is_completed(bench: Bench, journal: Journal) -> None:
    gate, behave = gated()
    bench.schedule(journal.script("/a", behave, says()), run_overlap="cancel_earlier")
    first, second = bench.event(clock.now() - SECOND), bench.event(clock.now())
    bench.hand_over([first])
    wait_until(lambda: len(journal.calls["/a"]) == 1, "the first request")
    bench.hand_over([second])
    wait_until(lambda: bench.state(second) == "completed", "the second to run beside it")
    gate.set()
    wait_until(lambda: bench.state(first) == "completed", "the first to complete")


def test_of_a_backlog_in_one_batch_the_newest_runs(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"), run_overlap="cancel_earlier")
    ids = [bench.event(clock.now() - number * SECOND) for number in range(5, 0, -1)]
    bench.deliver(ids)
    assert [bench.state(each) for each in ids] == [*["cancelled"] * 4, "completed"]


def test_a_mark_that_somebody_bent_is_set_aside_alone(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"), run_overlap="cancel_earlier")
    bent, sound = bench.event(clock.now()), bench.event(clock.now() + SECOND)
    bench.store.mongo.collection("events").update_one({"_id": bent}, {"$set": {"superseded_by": 5}})
    bench.deliver([bent])
    assert bench.state(bent) == "error"
    wait_until(lambda: clock.now() > bench.document(sound)["due_at"], "its time")
    bench.deliver([sound])
    assert bench.state(sound) == "completed"


def test_a_redriven_event_runs_although_a_later_one_has_begun(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"), run_overlap="cancel_earlier")
    first = bench.event(clock.now())
    changes = {"state": "error", "superseded_by": "another", "archived_at": clock.now()}
    which = {"_id": first}
    bench.store.mongo.collection("events").update_one(which, {"$set": changes, "$unset": {"due_at": ""}})
    assert bench.store.events.redrive([first], clock.now(), "again")
    bench.deliver([first])
    assert bench.state(first) == "completed"


# -- several workers -------------------------------------------------------------------------------------


@pytest.fixture
def written(store: Store, monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """By when MongoDB had what a worker has last written of each event, in Unix seconds."""
    found: dict[str, float] = {}
    record, end = store.outcomes.record, store.overlaps.end

    def recorded(records: Sequence[OutcomeRecord]) -> list[OutcomeRecord]:
        refused = record(records)
        found.update((each.event_id, time.time()) for each in records)
        return refused

    def ended(endings: Sequence[UnsentOutcome], now: datetime) -> int:
        count = end(endings, now)
        found.update((each.event_id, time.time()) for each in endings)
        return count

    monkeypatch.setattr(store.outcomes, "record", recorded)
    monkeypatch.setattr(store.overlaps, "end", ended)
    return found


@pytest.mark.parametrize("workers", [2, 5])
@pytest.mark.parametrize("policy", ["skip", "queue", "cancel_earlier"])
def test_several_workers_keep_the_policy(
    start: Callable[..., Bench], journal: Journal, written: dict[str, float], policy: str, workers: int
) -> None:
    """Receivers slower than the interval, that fail now and then; events are claimed in no order."""
    draw = random.Random(f"{policy} {workers}")

    def behave(seen: object, connection: object) -> bool:
        time.sleep(draw.uniform(0, 0.06))
        return says("500 No" if draw.random() < 0.3 else "200 OK")(seen, connection)  # type: ignore[arg-type]

    benches = [start(worker=f"w{number}") for number in range(workers)]
    benches[0].schedule(
        journal.script("/a", behave),
        run_overlap=policy,
        queue_limit=5,
        max_retries=3,
        backoff_seconds=0.02,
        backoff_max_seconds=0.05,
    )
    began = clock.now()
    ids = [benches[0].event(began + 20 * number * SECOND / 1000) for number in range(60)]
    events = benches[0].store.mongo.collection("events")
    living = {"_id": {"$in": ids}, "due_at": {"$exists": True}}
    while events.count_documents(living):
        due = [row["_id"] for row in events.find(living | {"due_at": {"$lte": clock.now()}}, {"_id": 1})]
        draw.shuffle(due)
        for first in range(0, len(due), 4):
            draw.choice(benches).hand_over(due[first : first + 4])
        time.sleep(0.01)
    documents = list(events.find({"_id": {"$in": ids}}))
    assert not [each["_id"] for each in documents if "due_at" in each]
    assert not broken_promises(policy, documents, arrivals(journal), queue_limit=5, written=written)
    states = {each["state"] for each in documents}
    assert states >= {"skip": {"skipped"}, "queue": {"skipped"}, "cancel_earlier": {"cancelled"}}[policy]
    assert "completed" in states


def test_who_allows_overlaps_asks_nothing_more(bench: Bench, journal: Journal) -> None:
    """The commands that mongod gets for a delivery, one by one."""
    database = bench.store.mongo.collection("events").database

    def asked(**fields: object) -> int:
        name = f"s{len(fields)}"
        bench.schedule(journal.url("/a"), name, **fields)
        mine = bench.event(clock.now() - SECOND, name)
        database.command("profile", 0)
        database.drop_collection("system.profile")
        database.command("profile", 2)
        try:
            bench.deliver([mine])
        finally:  # nobody can drop what is being written
            database.command("profile", 0)
        which = {"ns": {"$regex": r"\.events$"}, "op": {"$ne": "command"}}
        return int(database["system.profile"].count_documents(which))

    assert asked() == 2  # the claim and the record
    assert asked(run_overlap="skip") == 3


@pytest.mark.parametrize("policy", ["skip", "queue", "cancel_earlier"])
def test_a_schedule_that_cannot_be_judged_ends_no_worker_and_stops_no_other(
    bench: Bench, journal: Journal, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    bench.schedule(journal.url("/broken"), "broken", run_overlap=policy)
    bench.schedule(journal.url("/sound"), run_overlap=policy)
    broken, sound = bench.event(clock.now() - SECOND, "broken"), bench.event(clock.now())
    overlaps = bench.store.overlaps
    supersede, unfinished = overlaps.supersede, overlaps.unfinished

    def cannot_supersede(made: Event, *rest: Any) -> None:
        if made.schedule_id == "broken":
            raise ZeroDivisionError("a mistake of ours")
        supersede(made, *rest)

    def cannot_tell(schedule_id: str, *rest: Any, **options: Any) -> list[UnfinishedEvent]:
        if schedule_id == "broken":
            raise ZeroDivisionError("a mistake of ours")
        return unfinished(schedule_id, *rest, **options)

    monkeypatch.setattr(overlaps, "supersede", cannot_supersede)
    monkeypatch.setattr(overlaps, "unfinished", cannot_tell)
    bench.deliver([broken, sound])
    assert (bench.state(sound), bench.state(broken)) == ("completed", "error")
    assert "a mistake of ours" in last_line(bench, broken)
    assert journal.calls["/broken"] == []


def test_a_schedule_whose_next_event_cannot_be_woken_keeps_no_other_waiting(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failures() -> float:
        found = REGISTRY.get_sample_value("scheduler_worker_failures_total", {"step": "followers"})
        return found or 0.0

    seen, before = [], failures()

    def wake(schedule_id: str, *_: Any, **__: Any) -> None:
        seen.append(schedule_id)
        if schedule_id == "broken":
            raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr(bench.store.overlaps, "wake_next", wake)
    for name in ("broken", "sound"):
        bench.pipeline.followers._put((name, "event"))
    wait_until(lambda: seen == ["broken", "sound"], "both to be looked up")
    assert failures() - before == 1
