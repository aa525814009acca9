"""A worker's path without Celery: claim, read, void, send, record."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from structlog.testing import capture_logs

from scheduler_app.clock import clock, monotonic
from scheduler_app.domain import event as events
from scheduler_app.domain.deliverable import DEFAULT_TIMEOUT_SECONDS
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.claims import Postponement
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.telemetry import metrics
from scheduler_app.worker import Pipeline, WorkerStopping, attempt_maker, claim
from scheduler_app.worker.batch import OBEYED_AHEAD, READ_AHEAD, is_withdrawn
from scheduler_app.worker.capacity import MAX_UNRECORDED
from scheduler_app.worker.claim import CLAIMS_AT_ONCE, SMALL
from scheduler_app.worker.courier import STARTS_AT_ONCE
from scheduler_app.worker.origins import ReturnLine
from scheduler_app.worker.process import WorkerGauges
from tests.acceptance.journal import Journal
from tests.builders import event, schedule
from tests.documents import event_document
from tests.executors import executors
from tests.held_clock import HeldClock
from tests.integration.actions.receiver import Seen, hangs, says
from tests.processes import PATIENCE_SECONDS, wait_until

SECOND = timedelta(seconds=1)


@dataclass
class Bench:
    """A worker's pipeline with its threads, over the store of the test."""

    store: Store
    pipeline: Pipeline
    time: HeldClock

    def hand_over(self, ids: Sequence[str]) -> int:
        """What a message does: it returns before the requests have ended."""
        return self.pipeline.delivery.deliver(ids)

    def deliver(self, ids: Sequence[str]) -> int:
        """Until all that was claimed is written."""
        claimed = self.hand_over(ids)
        assert self.pipeline.wait_until_empty(PATIENCE_SECONDS)
        return claimed

    def schedule(self, url: str, schedule_id: str = "s1", **fields: Any) -> Schedule:
        made = schedule(clock.now() - 10 * SECOND, schedule_id, url=url, **fields)
        self.store.schedules.insert(made)
        return made

    def event(self, due: datetime, schedule_id: str = "s1", **changes: Any) -> str:
        made = event(due, schedule_id, **changes)
        self.store.events.insert([made], due, "made")
        return made.id

    def hand_over_and_hold(self, ids: Sequence[str]) -> None:
        """Events that are due soon by the held clock come to the courier; it starts none until `let_go`."""
        self.hand_over(ids)
        self.pipeline.backlog.put(MAX_UNRECORDED, monotonic())
        self.time.go_on()
        waits = self.pipeline.courier.loads
        wait_until(lambda: sum(load.waiting for load in waits()) == len(ids), "the courier to have them")

    def let_go(self, *, leases_over: bool) -> None:
        """Goes on as after SIGSTOP, or a laptop's sleep."""
        if leases_over:
            for lease in self.pipeline.leases._leases:
                lease._ends_at = 0.0
        self.pipeline.backlog.written(MAX_UNRECORDED)

    def state(self, event_id: str) -> str:
        return str(self.document(event_id)["state"])

    def document(self, event_id: str) -> dict[str, Any]:
        found = event_document(self.store, event_id)
        assert found is not None
        return found


@pytest.fixture
def start(store: Store) -> Iterator[Callable[..., Bench]]:
    """Starts pipelines; `max_events` and `origin_concurrency` are their bounds."""
    made: list[Pipeline] = []

    def start(*, max_events: int = 10_000, origin_concurrency: int = 200, worker: str = "w1") -> Bench:
        time = HeldClock()
        pipeline = Pipeline(
            store,
            executors(origin_concurrency=origin_concurrency),
            now=time,
            worker=worker,
            horizon_seconds=5,
            max_events=max_events,
        )
        pipeline.start()
        made.append(pipeline)
        return Bench(store, pipeline, time)

    yield start
    for pipeline in made:
        pipeline.stop_starting()
        pipeline.interrupt()
        pipeline.stop()


@pytest.fixture
def bench(start: Callable[..., Bench]) -> Bench:
    return start()


@pytest.fixture
def journal() -> Iterator[Journal]:
    with closing(Journal()) as made:
        yield made


@pytest.fixture
def another_journal() -> Iterator[Journal]:
    """One of another origin."""
    with closing(Journal()) as made:
        yield made


def test_a_batch_is_delivered_and_recorded(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"))
    now = clock.now()
    ids = [bench.event(now - number * SECOND) for number in range(10)]
    assert bench.deliver(ids) == 10
    assert {bench.state(each) for each in ids} == {"completed"}
    assert {call.key for call in journal.calls["/a"]} == set(ids)


def test_a_doubled_message_doubles_no_call(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"))
    ids = [bench.event(clock.now())]
    threads = [threading.Thread(target=bench.deliver, args=(ids,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(journal.calls["/a"]) == 1


def test_a_message_for_an_event_that_is_not_due_within_the_horizon_is_dropped(
    bench: Bench, journal: Journal
) -> None:
    bench.schedule(journal.url("/a"))
    made = bench.event(clock.now() + 3_600 * SECOND)
    assert bench.deliver([made]) == 0
    assert bench.state(made) == "ready_queue"


def test_an_event_whose_message_comes_early_is_sent_at_its_time(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"))
    due = clock.now() + SECOND
    bench.deliver([bench.event(due)])
    assert journal.calls["/a"][0].at >= due.timestamp()


@pytest.mark.parametrize("withdraw", ["edit", "delete", "gone"])
def test_an_event_that_was_withdrawn_before_the_claim_is_not_sent(
    bench: Bench, journal: Journal, withdraw: str
) -> None:
    made = bench.schedule(journal.url("/a"))
    ids = [bench.event(clock.now())]
    if withdraw == "edit":
        bench.store.schedules.revise(made.revise(clock.now() - 5 * SECOND), version=1)
    elif withdraw == "delete":
        bench.store.schedules.delete("s1", clock.now())
    else:
        bench.store.mongo.collection("schedules").delete_one({"_id": "s1"})
    bench.deliver(ids)
    assert bench.state(ids[0]) == "cancelled"
    assert journal.calls["/a"] == []


@pytest.mark.parametrize("withdraw", ["edit", "delete"])
def test_an_event_that_is_withdrawn_between_an_early_claim_and_its_time_is_not_sent(
    bench: Bench, journal: Journal, withdraw: str
) -> None:
    made = bench.schedule(journal.url("/a"))
    now = bench.time.hold()
    early = bench.event(now + SECOND)
    bench.hand_over([early])
    wait_until(lambda: bench.state(early) == "running", "the claim")
    if withdraw == "edit":
        assert bench.store.schedules.revise(made.revise(now), version=1)
    else:
        assert bench.store.schedules.delete("s1", now)
    bench.time.go_on()
    assert bench.pipeline.wait_until_empty(PATIENCE_SECONDS)
    assert (bench.state(early), bench.document(early)["attempt"]) == ("cancelled", 0)
    assert journal.calls["/a"] == []


@pytest.fixture
def reads(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The schedules of each reading for delivery."""
    for_delivery, found = bench.store.schedules.for_delivery, list[list[str]]()

    def noted(ids: Sequence[str]) -> Any:
        found.append(sorted(ids))
        return for_delivery(ids)

    monkeypatch.setattr(bench.store.schedules, "for_delivery", noted)
    return found


def test_schedules_are_read_ahead_and_edits_answered_longer_before_the_instant_are_obeyed(
    bench: Bench, journal: Journal, reads: list[list[str]]
) -> None:
    for name in ("s1", "s2"):
        bench.schedule(journal.url("/a"), name)
    now = bench.time.hold()
    first = now + SECOND
    later = first + OBEYED_AHEAD - READ_AHEAD + timedelta(milliseconds=1)
    ids = [bench.event(first, "s1"), bench.event(later, "s2")]
    bench.hand_over(ids)
    bench.time.stand_at(first - READ_AHEAD)
    wait_until(lambda: reads == [["s1"]], "the first schedule to be read")
    edited = next(each for each in bench.store.schedules.for_delivery(["s2"]).values())
    assert isinstance(edited, Schedule)
    moved = replace(schedule(now, "s2", url=journal.url("/b")), version=edited.version + 1)
    assert bench.store.schedules.update(moved, version=edited.version)
    del reads[1:]
    assert (journal.calls["/a"], bench.pipeline.courier.in_flight) == ([], 0)
    bench.time.stand_at(later - READ_AHEAD)
    wait_until(lambda: reads == [["s1"], ["s2"]], "the second one to be read")
    bench.time.go_on()
    assert bench.pipeline.wait_until_empty(PATIENCE_SECONDS)
    assert [call.key for call in journal.calls["/a"]] == ids[:1]
    assert [call.key for call in journal.calls["/b"]] == ids[1:]


def test_what_is_due_soon_after_the_first_of_a_batch_is_read_together_with_it(
    bench: Bench, journal: Journal, reads: list[list[str]]
) -> None:
    for name in ("s1", "s2", "s3"):
        bench.schedule(journal.url("/a"), name)
    first = bench.time.hold() + SECOND
    together = first + OBEYED_AHEAD - READ_AHEAD
    later = together + timedelta(milliseconds=1)
    bench.hand_over([bench.event(first, "s1"), bench.event(together, "s2"), bench.event(later, "s3")])
    bench.time.stand_at(first - READ_AHEAD)
    wait_until(lambda: reads != [], "the first schedules to be read")
    assert reads == [["s1", "s2"]]
    bench.time.go_on()
    assert bench.pipeline.wait_until_empty(PATIENCE_SECONDS)
    assert reads == [["s1", "s2"], ["s3"]]


def test_an_overlap_is_judged_when_an_event_is_due_and_not_when_its_schedule_is_read(
    bench: Bench, journal: Journal, reads: list[list[str]]
) -> None:
    bench.schedule(journal.url("/a"), run_overlap="skip")
    now = bench.time.hold()
    earlier, due = bench.event(now), now + SECOND
    token, _ = bench.store.claims.claim([earlier], until=now, now=now, lease_seconds=60, worker="another")
    made = bench.event(due)
    bench.hand_over([made])
    bench.time.stand_at(due - READ_AHEAD)
    wait_until(lambda: reads == [["s1"]], "its schedule to be read")
    ended = OutcomeRecord(
        earlier, token, State.COMPLETED, "done", None, {"number": 1, "started_at": now}, now
    )
    assert bench.store.outcomes.record([ended]) == []
    bench.time.go_on()
    assert bench.pipeline.wait_until_empty(PATIENCE_SECONDS)
    assert bench.state(made) == "completed"


def test_what_is_owed_from_before_an_edit_is_still_sent(bench: Bench, journal: Journal) -> None:
    made = bench.schedule(journal.url("/a"))
    ids = [bench.event(clock.now() - 5 * SECOND)]
    bench.store.schedules.revise(made.revise(clock.now(), state=ScheduleState.PAUSED), version=1)
    bench.deliver(ids)
    assert bench.state(ids[0]) == "completed"


@pytest.mark.parametrize(
    ("edits", "ends"),
    [
        ([(-1, "active")], "completed"),
        ([(-1, "paused")], "cancelled"),
        ([(-1, "active"), (1, "paused")], "completed"),
        ([], "completed"),
        ([(-1, "finished")], "completed"),
    ],
)
def test_what_a_lost_worker_may_have_sent_is_sent_after_an_edit_and_not_after_a_pause(
    bench: Bench, journal: Journal, edits: list[tuple[int, str]], ends: str
) -> None:
    made = bench.schedule(journal.url("/a"))
    due = clock.now()
    begun = bench.event(due)
    bench.store.claims.claim([begun], until=due, now=due, lease_seconds=-1, worker="lost")
    bench.store.recoveries.recover_workers(due, delay_seconds=0, limit=10)
    for seconds, state in edits:
        made = made.revise(due + seconds * SECOND, state=ScheduleState(state))
        assert bench.store.schedules.revise(made, version=1)
    bench.deliver([begun])
    assert bench.state(begun) == ends


def test_a_manual_event_is_sent_whatever_the_revision(bench: Bench, journal: Journal) -> None:
    made = bench.schedule(journal.url("/a"))
    manual = events.manual("s1", 1, clock.now())
    bench.store.events.insert([manual], clock.now(), "triggered")
    bench.store.schedules.revise(made.revise(clock.now() - 5 * SECOND), version=1)
    bench.deliver([manual.id])
    assert bench.state(manual.id) == "completed"


def test_an_event_of_a_bent_schedule_is_set_aside_and_the_batch_goes_on(
    bench: Bench, journal: Journal
) -> None:
    bench.schedule(journal.url("/a"))
    bench.schedule(journal.url("/b"), "bent")
    bench.store.mongo.collection("schedules").update_one({"_id": "bent"}, {"$unset": {"action": ""}})
    good, bent = bench.event(clock.now()), bench.event(clock.now(), "bent")
    bench.deliver([bent, good])
    assert (bench.state(good), bench.state(bent)) == ("completed", "error")
    assert "cannot be read" in bench.document(bent)["status"][-1]["message"]


def test_an_outcome_that_our_code_cannot_judge_is_set_aside_and_the_batch_goes_on(
    bench: Bench, journal: Journal
) -> None:
    bench.schedule(journal.url("/a"))
    bench.schedule(journal.script("/b", says("500 No")), "poison")
    documents = bench.store.mongo.collection("schedules")
    documents.update_one({"_id": "poison"}, {"$set": {"retry.backoff_seconds": "soon"}})
    good, poison = bench.event(clock.now()), bench.event(clock.now(), "poison")
    bench.deliver([poison, good])
    assert (bench.state(good), bench.state(poison)) == ("completed", "error")


def test_an_event_that_breaks_our_code_before_its_request_ends_no_worker(
    bench: Bench, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.schedule(journal.url("/a"))
    good, poison = bench.event(clock.now()), bench.event(clock.now() - SECOND)
    withdrawn = is_withdrawn

    def breaks(event: events.Event, schedule: Schedule) -> bool:
        if event.id == poison:
            raise ZeroDivisionError("a mistake of ours")
        return withdrawn(event, schedule)

    monkeypatch.setattr(attempt_maker, "is_withdrawn", breaks)
    bench.deliver([poison, good])
    assert (bench.state(good), bench.state(poison)) == ("completed", "error")
    assert "a mistake of ours" in bench.document(poison)["status"][-1]["message"]


def test_a_slow_receiver_holds_up_no_other_outcome(bench: Bench, journal: Journal) -> None:
    may_answer = threading.Event()

    def answers_late(seen: Seen, connection: Any) -> bool:
        may_answer.wait(PATIENCE_SECONDS)
        return says("500 No")(seen, connection)

    bench.schedule(journal.script("/slow", answers_late), "slow", max_retries=0)
    bench.schedule(journal.url("/quick"))
    slow, quick = bench.event(clock.now(), "slow"), bench.event(clock.now())
    bench.hand_over([slow, quick])
    wait_until(lambda: bench.state(quick) == "completed", "the quick one to be recorded")
    assert bench.state(slow) == "running"
    may_answer.set()
    assert bench.pipeline.wait_until_empty(PATIENCE_SECONDS)
    assert bench.state(slow) == "error"


def test_a_worker_that_stops_gives_back_what_it_has_not_started(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"))
    made = bench.event(bench.time.hold() + SECOND)
    bench.hand_over([made])
    wait_until(lambda: bench.state(made) == "running", "the claim")
    bench.pipeline.stop_starting()
    assert bench.pipeline.wait_until_empty(PATIENCE_SECONDS)
    assert (bench.state(made), bench.document(made)["attempt"]) == ("ready_queue", 0)
    assert journal.calls["/a"] == []


def test_a_worker_whose_grace_is_over_gives_back_what_is_in_flight(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.script("/a", hangs))
    made = bench.event(clock.now())
    bench.hand_over([made])
    wait_until(lambda: bool(journal.calls["/a"]), "the request")
    bench.pipeline.interrupt()
    assert bench.pipeline.wait_until_empty(PATIENCE_SECONDS)
    assert (bench.state(made), bench.document(made)["attempt"]) == ("ready_queue", 0)


def test_nothing_starts_under_a_lease_without_room_until_it_is_renewed(
    bench: Bench, journal: Journal
) -> None:
    renewed = []

    def notes_the_lease(seen: Seen, connection: Any) -> bool:
        renewed.append(bench.document(made)["lease_until"])
        return says()(seen, connection)

    bench.schedule(journal.script("/a", notes_the_lease))
    made = bench.event(bench.time.hold() + SECOND)
    bench.hand_over_and_hold([made])
    before = bench.document(made)["lease_until"]
    bench.let_go(leases_over=True)
    assert bench.pipeline.wait_until_empty(PATIENCE_SECONDS)
    assert bench.state(made) == "completed"
    assert renewed[0] > before


def test_an_event_that_another_worker_took_meanwhile_is_not_sent(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.url("/a"))
    due = bench.time.hold() + SECOND
    ids = [bench.event(due + number * SECOND / 1000) for number in range(20)]
    bench.hand_over_and_hold(ids)
    events = bench.store.mongo.collection("events")
    taken = {"owner": "another", "state": "running"}
    events.update_many({"_id": {"$in": ids[:19]}}, {"$set": taken})
    bench.let_go(leases_over=True)
    assert bench.pipeline.wait_until_empty(PATIENCE_SECONDS)
    assert [call.key for call in journal.calls["/a"]] == ids[19:]
    assert events.count_documents(taken) == 19


@pytest.fixture
def first_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim's lease is that of the timeout which most schedules have."""
    monkeypatch.setattr(claim, "FIRST_TIMEOUT_SECONDS", DEFAULT_TIMEOUT_SECONDS)


@pytest.mark.usefixtures("first_lease")
def test_a_long_timeout_does_not_delay_its_neighbours_recovery(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.script("/slow", hangs), "slow", timeout_seconds=300)
    bench.schedule(journal.script("/quick", hangs), "quick", timeout_seconds=10)
    slow, quick = bench.event(clock.now(), "slow"), bench.event(clock.now(), "quick")
    before = bench.store.mongo.server_time()
    bench.hand_over([slow, quick])
    wait_until(lambda: bool(journal.calls["/slow"] and journal.calls["/quick"]), "both requests")
    lease_until = bench.document(quick)["lease_until"]
    assert lease_until - bench.store.mongo.server_time() <= timedelta(seconds=25)
    assert bench.document(slow)["lease_until"] - before > timedelta(seconds=290)


def test_a_receiver_that_hangs_holds_up_no_other_one(
    start: Callable[..., Bench], journal: Journal, another_journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What came again within a minute that is over is forgotten, and a minute may end here.
    monkeypatch.setattr(ReturnLine, "coming", lambda line, now: sum(line._by_minute.values()))
    hanging = another_journal
    bench = start(max_events=200, origin_concurrency=3)
    bench.schedule(hanging.script("/a", hangs), "hangs")
    bench.schedule(journal.url("/b"), "quick")
    began = clock.now()
    stuck = [bench.event(began - number * SECOND, "hangs") for number in range(300)]
    for first in range(0, 300, 50):
        bench.hand_over(stuck[first : first + 50])
    quick = [bench.event(clock.now() - number * SECOND, "quick") for number in range(30)]
    bench.hand_over(quick)
    wait_until(lambda: len(journal.calls["/b"]) == 30, "the others")
    assert len(hanging.calls["/a"]) <= 3

    def postponed() -> list[dict[str, Any]]:
        found = bench.store.mongo.collection("events").find({"postponed_from": {"$exists": True}})
        return list(found)

    wait_until(lambda: len(postponed()) >= 300 - 3 - 10, "what has no room to be postponed")
    for found in postponed():
        assert (found["state"], found["attempt"]) == ("ready_queue", 0)
        assert found["due_at"] > began + SECOND
        assert found["postponed_from"] == found["run_time"]
        assert "requests in flight" in found["status"][-1]["message"]
        assert "owner" not in found
    # They come again one after the other, and not all at once.
    assert len({found["due_at"] for found in postponed()}) >= 20

    def loads() -> list[tuple[int, int]]:
        shown = bench.pipeline.courier.loads()
        return [(load.in_flight, load.postponed) for load in shown if load.postponed]

    # What is shown of an origin is as old as the last look at all of them.
    wait_until(lambda: loads() == [(3, len(postponed()))], "them to be shown")


def test_a_few_events_are_claimed_while_bulks_wait_for_their_claims(
    bench: Bench, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.schedule(journal.url("/a"))
    claim, bulks_may_go, begun = bench.store.claims.claim, threading.Event(), []

    def slow_for_bulks(ids: Sequence[str], **rest: Any) -> Any:
        if len(ids) >= SMALL:
            begun.append(len(ids))
            assert bulks_may_go.wait(PATIENCE_SECONDS)
        return claim(ids, **rest)

    monkeypatch.setattr(bench.store.claims, "claim", slow_for_bulks)
    bulk = [f"gone-{number}" for number in range(SMALL)]
    bulks = [threading.Thread(target=bench.hand_over, args=(bulk,)) for _ in range(CLAIMS_AT_ONCE + 2)]
    for thread in bulks:
        thread.start()
    wait_until(lambda: len(begun) == CLAIMS_AT_ONCE, "the bulks to take their turns")
    assert bench.hand_over([bench.event(clock.now())]) == 1
    assert len(begun) == CLAIMS_AT_ONCE
    bulks_may_go.set()
    for thread in bulks:
        thread.join()
    assert len(begun) == len(bulks)


def test_a_worker_knows_the_origin_of_what_it_has_sent(bench: Bench, journal: Journal) -> None:
    made = bench.schedule(journal.url("/a"))
    sent = bench.event(clock.now())
    assert bench.pipeline.handover.origins.of([sent]) == ""
    bench.deliver([sent])
    assert bench.pipeline.handover.origins.of([sent]) == made.action.isolation_key


def test_what_comes_for_one_origin_waits_for_a_few_starts_of_another_with_many(
    bench: Bench, journal: Journal, another_journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.schedule(journal.url("/many"), "many")
    bench.schedule(another_journal.url("/one"), "one")
    many = [bench.event(clock.now() - number * SECOND, "many") for number in range(60)]
    one = bench.event(clock.now(), "one")
    executor = bench.pipeline.courier._executors.of("http")
    started: list[str] = []
    courier: list[Sequence[Any]] = []
    start, take_over = executor.start, bench.pipeline.courier.send

    def noted(made: events.Event, *rest: Any) -> None:
        if not started:  # the first of many starts: the one comes now
            for jobs in courier:
                take_over(jobs)
        started.append(made.id)
        start(made, *rest)

    monkeypatch.setattr(bench.pipeline.courier, "send", courier.append)
    bench.hand_over([one])
    wait_until(lambda: bool(courier), "the job of one")
    monkeypatch.setattr(bench.pipeline.courier, "send", take_over)
    monkeypatch.setattr(executor, "start", noted)
    bench.deliver(many)
    assert len(started) == 61
    assert started.index(one) <= STARTS_AT_ONCE + 1


def test_a_worker_that_ends_amid_many_starts_waits_for_those_in_flight_without_spinning(
    bench: Bench, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.schedule(journal.script("/a", hangs))
    executors, pauses = bench.pipeline.courier._executors, list[float]()
    wait = executors.wait

    def noted(timeout: float) -> Any:
        if bench.pipeline.courier._giving_back.is_set():
            pauses.append(timeout)
        elif bench.pipeline.courier.in_flight >= STARTS_AT_ONCE:
            bench.pipeline.stop_starting()
        return wait(timeout)

    monkeypatch.setattr(executors, "wait", noted)
    bench.hand_over([bench.event(clock.now() - number * SECOND) for number in range(40)])
    wait_until(lambda: len(pauses) >= 3, "the courier to wait three times")
    assert pauses[2] > 0


def test_a_postponed_event_is_sent_at_its_new_time_and_its_lag_counts_from_the_old(
    bench: Bench, journal: Journal
) -> None:
    bench.schedule(journal.url("/a"))
    due = clock.now() - 30 * SECOND
    made = bench.event(due)
    token, _ = bench.store.claims.claim([made], until=due, now=due, lease_seconds=600, worker="w0")
    again = clock.now()
    postponement = Postponement(made, token, again, due, "Postponed: no room")
    assert bench.store.claims.postpone([postponement], due) == 1
    bench.deliver([made])
    found = bench.document(made)
    assert (found["state"], found["attempt"]) == ("completed", 1)
    assert found["attempts"][0]["lag_ms"] >= 30_000
    assert "postponed_from" not in found


def test_an_outcome_is_never_sent_twice_for_a_slow_store(
    start: Callable[..., Bench], journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler_app.worker.capacity.MAX_UNRECORDED", 20)
    bench = start(origin_concurrency=5)
    bench.schedule(journal.url("/a"))
    ids = [bench.event(clock.now() - number * SECOND) for number in range(200)]
    record, unrecorded = bench.store.outcomes.record, [0]

    def slowly(records: Sequence[OutcomeRecord]) -> list[OutcomeRecord]:
        unrecorded.append(len(journal.calls["/a"]) - written())
        return record(records)

    def written() -> int:
        return bench.store.mongo.collection("events").count_documents({"state": "completed"})

    monkeypatch.setattr(bench.store.outcomes, "record", slowly)
    for first in range(0, 200, 50):
        bench.hand_over(ids[first : first + 50])
    assert bench.pipeline.wait_until_empty(PATIENCE_SECONDS)
    assert sorted(call.key for call in journal.calls["/a"]) == sorted(ids)
    assert max(unrecorded) <= 20 + 5 + 5


@pytest.fixture
def sure(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker knows what is stopped: a look that comes late would postpone a suspect."""
    bench.pipeline.withholding.blackouts.look()
    bench.pipeline.withholding.kill_switches.look()
    monkeypatch.setattr(bench.pipeline.withholding, "may_start", lambda: True)


@pytest.mark.usefixtures("sure")
def test_an_event_that_lost_two_workers_is_marked_before_its_request(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.script("/a", hangs))
    made = bench.event(clock.now())
    bench.store.mongo.collection("events").update_one({"_id": made}, {"$set": {"lost_leases": 2}})
    bench.hand_over([made])
    wait_until(lambda: bool(journal.calls["/a"]), "the request")
    found = bench.document(made)
    assert found["isolated"] == found["owner"]


@pytest.mark.usefixtures("sure")
def test_suspects_are_tried_one_at_a_time(bench: Bench, journal: Journal) -> None:
    bench.schedule(journal.script("/a", hangs))
    now = bench.time.hold()
    ids = [bench.event(now - number * SECOND) for number in range(3)]
    bench.store.mongo.collection("events").update_many({}, {"$set": {"lost_leases": 2}})
    bench.hand_over(ids)
    wait_until(lambda: [bench.state(each) for each in ids].count("ready_queue") == 2, "two postponed")
    wait_until(lambda: bool(journal.calls["/a"]), "the request of the third")
    assert len(journal.calls["/a"]) == 1
    # Each of them comes again when another may have ended, and not with the next tick, time and again.
    for waiting in (found for found in map(bench.document, ids) if found["state"] == "ready_queue"):
        assert waiting["due_at"] > now + SECOND
        assert "another such event" in waiting["status"][-1]["message"]


@pytest.mark.usefixtures("sure")
def test_suspects_that_wait_for_one_come_again_within_a_part_of_the_time_they_waited_and_not_together(
    bench: Bench, journal: Journal
) -> None:
    bench.schedule(journal.script("/a", hangs))
    now = bench.time.hold()
    flying, fresh = bench.event(now - 7 * SECOND), bench.event(now)
    old = [bench.event(now - timedelta(hours=1, seconds=number)) for number in range(20)]
    bench.store.mongo.collection("events").update_many({}, {"$set": {"lost_leases": 2}})
    bench.hand_over([flying])
    wait_until(lambda: bool(journal.calls["/a"]), "the request")
    bench.hand_over([fresh, *old])
    wait_until(lambda: all(bench.state(each) == "ready_queue" for each in [fresh, *old]), "the others")
    assert bench.document(fresh)["due_at"] <= now + 2 * SECOND
    times = sorted(bench.document(each)["due_at"] for each in old)
    assert now + SECOND < times[0]
    assert times[-1] <= now + 60 * SECOND
    assert times[-1] - times[0] > 20 * SECOND


def test_a_worker_claims_no_more_than_it_may_hold(start: Callable[..., Bench], journal: Journal) -> None:
    bench = start(max_events=100, origin_concurrency=5)
    bench.schedule(journal.script("/a", hangs))
    later = bench.time.hold() + 4 * SECOND
    ids = [bench.event(later + number * SECOND / 1000) for number in range(150)]
    bench.hand_over(ids[:100])

    def waits_for_room() -> None:
        with pytest.raises(WorkerStopping):
            bench.hand_over(ids[100:])

    thread = threading.Thread(target=waits_for_room)
    thread.start()
    wait_until(lambda: bench.pipeline.capacity.held == 100, "the first claim")
    assert {bench.state(each) for each in ids[100:]} == {"ready_queue"}
    bench.pipeline.stop_starting()
    assert bench.pipeline.wait_until_empty(PATIENCE_SECONDS)
    thread.join()
    assert {bench.state(each) for each in ids} == {"ready_queue"}


@pytest.mark.usefixtures("first_lease")
def test_a_long_timeout_gets_a_long_lease(bench: Bench, journal: Journal) -> None:
    told = threading.Event()

    def waits(seen: Seen, connection: Any) -> bool:
        told.wait(PATIENCE_SECONDS)
        return says()(seen, connection)

    bench.schedule(journal.script("/a", waits), timeout_seconds=120)
    made = bench.event(clock.now())
    before = bench.store.mongo.server_time()
    bench.hand_over([made])
    wait_until(lambda: bool(journal.calls["/a"]), "the request")
    lease_until = bench.document(made)["lease_until"]
    told.set()
    assert bench.pipeline.wait_until_empty(PATIENCE_SECONDS)
    assert lease_until - before > timedelta(seconds=100)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "gopher://127.0.0.1/", "http://user:pw@127.0.0.1/"])
def test_a_url_that_got_past_the_api_is_refused_in_the_history(bench: Bench, url: str) -> None:
    bench.schedule(url)
    made = bench.event(clock.now())
    bench.deliver([made])
    found = bench.document(made)
    assert (found["state"], found["attempt"]) == ("error", 1)
    assert "refused" in found["attempts"][0]["error"]
    assert "root:" not in str(found)


def test_a_redirect_is_not_followed_and_the_history_says_where_it_led(bench: Bench, journal: Journal) -> None:
    target = journal.url("/inside")
    bench.schedule(journal.script("/moved", says("302 Found", f"Location: {target}")))
    made = bench.event(clock.now())
    bench.deliver([made])
    found = bench.document(made)
    assert found["state"] == "error"
    assert f"redirect to {target} not followed" in found["attempts"][0]["error"]
    assert journal.calls["/inside"] == []


def test_one_thread_observes_lags_and_durations(
    start: Callable[..., Bench], journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their histograms take no lock, for that reason."""
    observers: list[threading.Thread] = []

    def noting(observe: Callable[[float], None]) -> Callable[[float], None]:
        def noted(value: float) -> None:
            observers.append(threading.current_thread())
            observe(value)

        return noted

    for histogram in (metrics.lag, metrics.callback_duration):
        monkeypatch.setattr(histogram, "observe", noting(histogram.observe))
    bench = start()
    bench.schedule(journal.url("/a"))
    bench.deliver([bench.event(clock.now() - number * SECOND) for number in range(1, 6)])
    assert len(observers) == 10
    assert set(observers) == {bench.pipeline.courier}


def test_what_came_of_deliveries_is_told_on_schedules_in_the_log_and_in_counts(
    start: Callable[..., Bench], journal: Journal
) -> None:
    good, bad = journal.url("/good"), journal.script("/bad?key=canary", says("503 No"), says("400 No"))
    bench = start()
    bench.schedule(good, "good")
    bench.schedule(bad, "bad", headers=(("Authorization", "canary"),))
    now = clock.now().replace(microsecond=0)
    older, newer = bench.event(now - 3 * SECOND, "good"), bench.event(now - SECOND, "good")
    retried, dead = bench.event(now - 2 * SECOND, "bad"), bench.event(now - SECOND, "bad")
    with capture_logs() as lines:
        bench.deliver([older, newer, retried])
        bench.deliver([dead])
        bench.pipeline.stop()
    runs = {}
    for name in ("good", "bad"):
        found = bench.store.schedules.get(name)
        assert isinstance(found, Schedule)
        (found,) = bench.store.last_runs.attach([found])
        assert found.last_run is not None
        runs[name] = found.last_run.event_id, found.last_run.outcome, found.last_run.time
    assert runs == {"good": (newer, "completed", now - SECOND), "bad": (dead, "error", now - SECOND)}
    failed, died = [line for line in lines if line["event"].startswith("attempt.")]
    assert (failed["event"], failed["event_id"], failed["status_code"]) == ("attempt.failed", retried, 503)
    assert (died["event"], died["event_id"], died["attempt"]) == ("attempt.dead_letter", dead, 1)
    assert died["attempts_allowed"] == 4
    assert "canary" not in str(lines)
    assert bad.startswith(failed["origin"])
    registry = CollectorRegistry()
    registry.register(WorkerGauges(bench.pipeline))
    counted = generate_latest(registry).decode()
    assert (
        f'scheduler_origin_attempts_total{{origin="{failed["origin"]}",outcome="completed"}} 2.0' in counted
    )
