"""A courier starts each attempt once, under a lease that holds, and gives up what is no longer its own."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scheduler_app.actions.kind import Verdict
from scheduler_app.clock import clock, monotonic
from scheduler_app.domain.event import Event
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from scheduler_app.telemetry import metrics
from scheduler_app.worker import Pipeline
from scheduler_app.worker.attempt import Attempt, Job
from scheduler_app.worker.capacity import MAX_UNRECORDED, Capacity, RecordingBacklog
from scheduler_app.worker.courier import REVIEW_SECONDS, STARTS_AT_ONCE, Courier
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.recorder import Recorder
from scheduler_app.worker.rejudging import Present
from scheduler_app.worker.withholding import Withholding
from tests.acceptance.journal import Journal
from tests.builders import event, schedule
from tests.documents import event_document
from tests.executors import executors
from tests.processes import PATIENCE_SECONDS, wait_until

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
TIMEOUT_SECONDS = 30.0
#: Of the requests for which the leases are: nobody renews them here, however long this machine takes for the
#: steps until an attempt starts.
LEASE_SECONDS = 600.0


class Bench:
    """A courier and a recorder, which are given jobs as the handover gives them."""

    def __init__(self, store: Store, *, origin_concurrency: int = 200) -> None:
        self.store = store
        self.backlog = RecordingBacklog()
        self.capacity = Capacity(100, is_behind=lambda: False)
        self.withholding = Withholding(store, lambda: None)
        self.recorder = Recorder(
            *(store, self.backlog, self.capacity), now=clock.now, worker="w1", recorded=lambda _: None
        )
        self.courier = Courier(
            *(executors(origin_concurrency=origin_concurrency), self.recorder, self.backlog, self.capacity),
            now=clock.now,
            withholding=self.withholding,
        )
        self._made = 0
        self.finished: list[Verdict] = []
        self.dropped: list[str] = []
        self.judged_again: list[Job] = []
        self.courier.report_to(self.finished.append, self.dropped.extend, self.judged_again.extend)

    def start(self) -> None:
        self.withholding.start()
        wait_until(self.withholding.may_start, "the first look")
        self.recorder.start()
        self.courier.start()

    def stop(self) -> None:
        self.courier.interrupt()
        self.recorder.hurry()
        for thread in (self.courier, self.recorder, self.withholding):
            thread.stop()
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()

    def schedule(self, url: str) -> Schedule:
        made = schedule(clock.now() - 10 * SECOND, url=url, timeout_seconds=TIMEOUT_SECONDS)
        self.store.schedules.insert(made)
        return made

    def event(self) -> str:
        self._made += 1
        made = event(clock.now() - self._made * SECOND)
        self.store.events.insert([made], clock.now(), "made")
        return made.id

    def job(self, made: Schedule, event_id: str, *, asked_at: float | None = None) -> Job:
        """Claims the event. `asked_at` is the monotonic time from which the lease counts."""
        now = clock.now()
        token, (won,) = self.store.claims.claim([event_id], until=now, now=now, lease_seconds=60, worker="w1")
        self.capacity.reserve(1)
        asked_at = monotonic() if asked_at is None else asked_at
        lease = Lease(token, [event_id], asked_at=asked_at, timeout_seconds=LEASE_SECONDS)
        return Job(Attempt(won, made, token, "w1"), lease, made.action.isolation_key)

    def document(self, event_id: str) -> dict[str, Any]:
        found = event_document(self.store, event_id)
        assert found is not None
        return found


@pytest.fixture
def bench(store: Store) -> Iterator[Bench]:
    made = Bench(store)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def journal() -> Iterator[Journal]:
    with closing(Journal()) as made:
        yield made


def test_an_event_that_another_worker_has_by_now_is_not_sent(bench: Bench, journal: Journal) -> None:
    made = bench.schedule(journal.url("/a"))
    lost, kept = bench.job(made, bench.event()), bench.job(made, bench.event())
    # A renewal found that its claim was lost.
    assert lost.lease.renewed([], monotonic()) == (lost.attempt.event.id,)
    bench.courier.send([lost, kept])
    assert bench.capacity.wait_until_empty(PATIENCE_SECONDS)
    assert [call.key for call in journal.calls["/a"]] == [kept.attempt.event.id]
    assert bench.dropped == [lost.attempt.event.id]
    assert [verdict.event_id for verdict in bench.finished] == [kept.attempt.event.id]
    row = bench.document(lost.attempt.event.id)
    assert (row["state"], row["attempts"]) == ("running", []), "what the other worker writes is its own"


@pytest.fixture
def sure(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker knows what is stopped: a look that comes late would postpone a suspect."""
    monkeypatch.setattr(bench.withholding, "may_start", lambda: True)


@pytest.mark.usefixtures("sure")
@pytest.mark.parametrize("isolated", [False, True], ids=["", "a suspect"])
def test_an_event_that_this_worker_lost_and_won_again_waits_for_its_request_in_flight(
    bench: Bench, journal: Journal, slow: Callable[[], None], *, isolated: bool
) -> None:
    made, event_id = bench.schedule(journal.url("/slow")), bench.event()
    first = bench.job(made, event_id)
    bench.courier.send([first])
    wait_until(lambda: bool(journal.calls["/slow"]), "the request")
    assert (bench.courier.in_flight, bench.courier.event_ids()) == (1, (event_id,))
    bench.store.claims.give_back([event_id], first.attempt.token, clock.now(), "its lease was over")
    sent_again = clock.now()
    bench.courier.send([bench.job(made, event_id)._replace(isolated=isolated)])
    wait_until(lambda: bench.document(event_id)["state"] == "ready_queue", "the second one to be put off")
    row = bench.document(event_id)
    assert "its last request is still in flight in this worker" in row["status"][-1]["message"]
    assert row["due_at"] > sent_again + SECOND
    assert len(journal.calls["/slow"]) == 1
    slow()
    assert bench.capacity.wait_until_empty(PATIENCE_SECONDS)
    assert [each["late"] for each in bench.document(event_id)["attempts"]] == [True]
    assert bench.courier.in_flight == 0


def test_a_request_in_flight_goes_on_though_a_renewal_finds_its_claim_lost(
    bench: Bench, journal: Journal, slow: Callable[[], None]
) -> None:
    job = bench.job(bench.schedule(journal.url("/slow")), bench.event())
    bench.courier.send([job])
    wait_until(lambda: bench.courier.in_flight == 1, "the request")
    assert job.lease.renewed([], monotonic()) == (), "it is nothing that this worker may forget"
    slow()
    assert bench.capacity.wait_until_empty(PATIENCE_SECONDS)
    assert bench.document(job.attempt.event.id)["state"] == "completed"
    assert bench.dropped == []


def test_what_a_lease_has_no_room_for_waits_until_it_is_renewed_or_lost(
    bench: Bench, journal: Journal
) -> None:
    made = bench.schedule(journal.url("/a"))
    long_ago = monotonic() - LEASE_SECONDS
    jobs = [bench.job(made, bench.event(), asked_at=long_ago) for _ in range(2)]
    renewed, lost = jobs
    bench.courier.send(jobs)
    wait_until(lambda: len(bench.courier._unleased) == 2, "the courier to have looked at their leases")
    assert journal.calls["/a"] == []
    renewed.lease.renewed([renewed.attempt.event.id], monotonic())
    lost.lease.renewed([], monotonic() - LEASE_SECONDS)
    assert bench.capacity.wait_until_empty(PATIENCE_SECONDS)
    assert [call.key for call in journal.calls["/a"]] == [renewed.attempt.event.id]
    assert bench.dropped == [lost.attempt.event.id]
    assert bench.document(renewed.attempt.event.id)["state"] == "completed"


def later_by_an_hour(job: Job) -> Event:
    return job.attempt.event._replace(due_at=clock.now() + HOUR)


def test_what_waits_for_its_instant_obeys_edits_and_cancellations(bench: Bench, journal: Journal) -> None:
    made = bench.schedule(journal.url("/a"))
    jobs = [bench.job(made, bench.event()) for _ in range(2)]
    later = [
        job._replace(
            attempt=replace(job.attempt, event=job.attempt.event._replace(due_at=clock.now() + HOUR))
        )
        for job in jobs
    ]
    cancelled, edited = later
    bench.courier.send(later)
    bench.courier.compare(Present({}, {}, {cancelled.attempt.event.id: "A person cancels it"}))
    wait_until(lambda: bench.document(cancelled.attempt.event.id)["state"] == "cancelled", "the first to end")
    assert bench.judged_again == []
    bench.courier.compare(Present({"s1": None}, {}, {}))
    wait_until(lambda: bench.judged_again == [edited], "the second to be judged again")
    assert journal.calls["/a"] == []


def test_a_cancellation_that_comes_with_the_due_event_comes_before_its_request(
    store: Store, journal: Journal
) -> None:
    bench = Bench(store)
    job = bench.job(bench.schedule(journal.url("/a")), bench.event())
    event_id = job.attempt.event.id
    bench.courier.send([job])
    bench.courier.compare(Present({}, {}, {event_id: "A person cancels it"}))
    bench.start()
    try:
        assert bench.capacity.wait_until_empty(PATIENCE_SECONDS)
        assert bench.document(event_id)["state"] == "cancelled"
        assert journal.calls["/a"] == []
    finally:
        bench.stop()


def test_a_worker_that_ends_gives_back_what_waits_for_its_lease_or_its_time_or_its_turn(
    bench: Bench, journal: Journal
) -> None:
    made = bench.schedule(journal.url("/a"))
    no_room = bench.job(made, bench.event(), asked_at=monotonic() - LEASE_SECONDS)
    bench.courier.send([no_room])
    wait_until(lambda: len(bench.courier._unleased) == 1, "the courier to have looked at its lease")
    bench.backlog.put(MAX_UNRECORDED, monotonic())
    turn, early = bench.job(made, bench.event()), bench.job(made, bench.event())
    later = early.attempt.event._replace(due_at=clock.now() + 600 * SECOND)
    early = early._replace(attempt=Attempt(later, made, early.attempt.token, "w1"))
    bench.courier.send([turn, early])
    wait_until(lambda: sum(load.waiting for load in bench.courier.loads()) == 1, "one to wait for its turn")
    bench.courier.stop_starting()
    bench.backlog.written(MAX_UNRECORDED)
    assert bench.capacity.wait_until_empty(PATIENCE_SECONDS)
    for job in (no_room, turn, early):
        row = bench.document(job.attempt.event.id)
        assert (row["state"], row["attempt"]) == ("ready_queue", 0)
        assert row["status"][-1]["message"] == "Given back by w1"
    assert journal.calls["/a"] == []


def test_an_interrupted_worker_gives_back_what_is_in_flight(
    bench: Bench, journal: Journal, slow: Callable[[], None]
) -> None:
    made, event_id = bench.schedule(journal.url("/slow")), bench.event()
    bench.courier.send([bench.job(made, event_id)])
    wait_until(lambda: bool(journal.calls["/slow"]), "the request")
    bench.courier.interrupt()
    assert bench.capacity.wait_until_empty(PATIENCE_SECONDS)
    assert (bench.document(event_id)["state"], bench.courier.in_flight) == ("ready_queue", 0)
    assert bench.finished == []
    # What ends later was let go: it is nobody's outcome.
    assert bench.document(event_id)["attempts"] == []


def test_how_long_receivers_took_is_counted_in_seconds(bench: Bench, journal: Journal) -> None:
    made, event_id = bench.schedule(journal.url("/a")), bench.event()
    before = _sum_of_durations()
    bench.courier.send([bench.job(made, event_id)])
    assert bench.capacity.wait_until_empty(PATIENCE_SECONDS)
    (attempt,) = bench.document(event_id)["attempts"]
    assert _sum_of_durations() - before == pytest.approx(attempt["duration_ms"] / 1000, abs=1e-6)


def _sum_of_durations() -> float:
    (family,) = metrics.callback_duration.collect()
    return next(sample.value for sample in family.samples if sample.name.endswith("_sum"))


def test_room_of_what_was_lost_on_the_way_is_free_again(bench: Bench) -> None:
    bench.capacity.reserve(5)
    bench.courier.lost(3)
    assert bench.capacity.held == 2
    bench.courier.lost(2)


def test_while_more_can_start_the_courier_looks_for_answers_without_waiting(
    bench: Bench, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bench.schedule(journal.url("/a"))
    jobs = [bench.job(made, bench.event()) for _ in range(3 * STARTS_AT_ONCE)]
    wait, pauses = bench.courier._executors.wait, list[float]()

    def noted(seconds: float) -> Any:
        if bench.courier._queues.waiting and not bench.courier._held_up:
            pauses.append(seconds)
        return wait(seconds)

    monkeypatch.setattr(bench.courier._executors, "wait", noted)
    bench.courier.send(jobs)
    assert bench.capacity.wait_until_empty(PATIENCE_SECONDS)
    assert pauses
    assert max(pauses) == 0.0, "nothing keeps the next ones from starting"


def test_what_waits_for_a_receiver_is_woken_by_its_answers_and_by_no_clock(
    store: Store, journal: Journal, slow: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(store, origin_concurrency=4)
    courier, pauses = bench.courier, list[float]()
    wait = courier._executors.wait

    def noted(seconds: float) -> Any:
        if courier._queues.waiting and not courier._held_up:
            pauses.append(seconds)
        return wait(seconds)

    monkeypatch.setattr(courier._executors, "wait", noted)
    made = bench.schedule(journal.url("/slow"))
    bench.start()
    try:
        courier.send([bench.job(made, bench.event()) for _ in range(6)])
        wait_until(lambda: len(pauses) >= 3, "some turns of the courier")
        assert set(pauses) == {REVIEW_SECONDS}
        slow()
        assert bench.capacity.wait_until_empty(PATIENCE_SECONDS)
        assert len(journal.calls["/slow"]) == 6
    finally:
        bench.stop()


@pytest.fixture
def idle(store: Store) -> Iterator[Bench]:
    """Whose threads are not started: a test does their work."""
    made = Bench(store)
    yield made
    made.courier._executors.close()


def test_a_courier_is_woken_after_it_was_told_and_not_before(
    idle: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would sleep on for up to a minute."""
    courier, known = idle.courier, list[set[str]]()

    def look() -> None:
        facts = {
            "jobs": not courier._handed.empty(),
            "edits": not courier._present.empty(),
            "giving back": courier._giving_back.is_set(),
            "interrupted": courier._interrupted,
            "ended": courier._ended,
        }
        known.append({name for name, holds in facts.items() if holds})

    monkeypatch.setattr(courier._executors, "wake", look)
    courier.send([])
    courier.compare(Present({}, {}, {}))
    courier.stop_starting()
    courier.interrupt()
    courier.stop()
    told = ["jobs", "edits", "giving back", "interrupted", "ended"]
    assert known == [set(told[: number + 1]) for number in range(5)]


def test_what_has_no_lease_yet_is_tried_again_now_and_then(idle: Bench) -> None:
    job = idle.job(idle.schedule("http://127.0.0.1:9/"), idle.event())
    courier = idle.courier
    courier._review(100.0)
    courier._unleased = [job]
    courier._review(100.0 + REVIEW_SECONDS - 0.01)
    assert courier._unleased == [job]
    courier._review(100.0 + REVIEW_SECONDS)
    assert courier._unleased == []
    assert [each for _, _, each in courier._future] == [job]
    courier._unleased = [job]
    courier._review(100.0 + 2 * REVIEW_SECONDS - 0.01)
    assert courier._unleased == [job]


def test_a_pipeline_that_stopped_has_left_no_thread_that_delivers(store: Store) -> None:
    pipeline = Pipeline(*(store, executors()), now=clock.now, worker="w1", horizon_seconds=5, max_events=100)
    pipeline.start()
    delivering = [pipeline.courier, pipeline.recorder, pipeline.reports, pipeline.flow_control]
    delivering += pipeline.handover._threads
    assert all(each.is_alive() for each in delivering)
    pipeline.stop()
    assert not any(each.is_alive() for each in delivering)


@pytest.mark.usefixtures("sure")
def test_a_suspect_is_tried_when_the_one_before_has_ended(bench: Bench, journal: Journal) -> None:
    made = bench.schedule(journal.url("/a"))
    for count in (1, 2):
        bench.courier.send([bench.job(made, bench.event())._replace(isolated=True)])
        assert bench.capacity.wait_until_empty(PATIENCE_SECONDS)
        assert len(journal.calls["/a"]) == count


def test_an_event_that_breaks_our_code_is_set_aside_and_the_others_are_sent(
    bench: Bench, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bench.schedule(journal.url("/a"))
    jobs = [bench.job(made, bench.event()) for _ in range(3)]
    first, broken, last = [job.attempt.event.id for job in jobs]
    executor = bench.courier._executors.of("http")
    start = executor.start

    def breaks(event: Event, *arguments: Any) -> None:
        if event.id == broken:
            raise ValueError("of the test")
        start(event, *arguments)

    monkeypatch.setattr(executor, "start", breaks)
    bench.courier.send(jobs)
    assert bench.capacity.wait_until_empty(PATIENCE_SECONDS)
    assert [bench.document(each)["state"] for each in (first, broken, last)] == [
        "completed",
        "error",
        "completed",
    ]
    assert bench.document(broken)["status"][-1]["message"] == "Set aside: ValueError: of the test"
    assert {call.key for call in journal.calls["/a"]} == {first, last}
    assert bench.courier.in_flight == 0


def test_an_outcome_that_breaks_our_code_sets_its_event_aside_and_no_other(
    bench: Bench, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bench.schedule(journal.url("/a"))
    jobs = [bench.job(made, bench.event()) for _ in range(2)]
    broken, other = [job.attempt.event.id for job in jobs]
    record = Attempt.record

    def breaks(attempt: Attempt, *arguments: Any) -> Any:
        if attempt.event.id == broken:
            raise ValueError("of the test")
        return record(attempt, *arguments)

    monkeypatch.setattr(Attempt, "record", breaks)
    bench.courier.send(jobs)
    assert bench.capacity.wait_until_empty(PATIENCE_SECONDS)
    assert [bench.document(each)["state"] for each in (broken, other)] == ["error", "completed"]
    assert "ValueError: of the test" in bench.document(broken)["status"][-1]["message"]
    assert bench.courier.in_flight == 0


def test_no_thread_of_a_worker_keeps_its_process_from_ending(store: Store) -> None:
    known = set(threading.enumerate())
    pipeline = Pipeline(store, executors(), now=clock.now, worker="w1", horizon_seconds=5, max_events=10)
    pipeline.start()
    try:
        started = set(threading.enumerate()) - known
        own = [each for each in started if type(each).__module__.startswith("scheduler_app.")]
        assert len(own) >= 10
        assert [each.name for each in own if not each.daemon] == []
    finally:
        pipeline.stop_starting()
        pipeline.stop()
    for each in own:  # and each ends when it is told to
        each.join()
