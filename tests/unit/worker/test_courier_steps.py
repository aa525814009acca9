"""What a courier does in one turn of its loop, by the clocks that a test gives it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from scheduler_app.actions.kind import Outcome, Verdict
from scheduler_app.telemetry import metrics
from scheduler_app.worker import courier
from scheduler_app.worker.attempt import Attempt, Job
from scheduler_app.worker.capacity import MAX_UNRECORDED, Capacity, RecordingBacklog
from scheduler_app.worker.courier import (
    IDLE_SECONDS,
    REVIEW_SECONDS,
    STARTS_AT_ONCE,
    UNBLOCK_SECONDS,
    Courier,
)
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.origins import MAX_YOUNG, MIN_KEPT, SATURATED_SECONDS, YOUNG_SECONDS, OriginQueues
from scheduler_app.worker.recorder import Delayed, GivenBack, Result
from scheduler_app.worker.rejudging import Present
from tests.builders import event, schedule

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
SCHEDULE = schedule(NOON, timeout_seconds=10)


class Requests:
    """Takes requests as executors do, and answers none."""

    def __init__(self, concurrency: int) -> None:
        self.concurrency = {"http": concurrency}
        self.started: list[str] = []
        self.verdicts: list[Verdict] = []
        self.interrupted = self.closed = 0

    def of(self, _: str) -> "Requests":
        return self

    def start(self, due: Any, *_: Any) -> None:
        self.started.append(due.id)

    def wait(self, _: float) -> list[Verdict]:
        verdicts, self.verdicts = self.verdicts, []
        return verdicts

    def wake(self) -> None:
        pass

    def interrupt(self) -> None:
        self.interrupted += 1

    def close(self) -> None:
        self.closed += 1


class Bench:
    """A courier without its thread: a test makes its turns."""

    def __init__(self, *, concurrency: int = 1_000, held: int = 0) -> None:
        self.now, self.monotonic = NOON, 100.0
        self.requests = Requests(concurrency)
        self.results: list[Result] = []
        self.backlog = RecordingBacklog()
        self.may_start = True
        self.told: list[tuple[str, Any]] = []
        self.capacity = Capacity(1_000, is_behind=lambda: False)
        self.capacity.reserve(held)
        self.made = 0
        self.courier = Courier(
            cast(Any, self.requests),
            cast(Any, SimpleNamespace(put=self.results.extend)),
            *(self.backlog, self.capacity),
            now=lambda: self.now,
            withholding=cast(
                Any,
                SimpleNamespace(
                    may_start=lambda: self.may_start, withheld=lambda *_: None, slots_of=lambda _: None
                ),
            ),
        )
        self.courier.report_to(
            lambda verdict: self.told.append(("finished", verdict.event_id)),
            lambda ids: self.told.append(("dropped", list(ids))),
            lambda jobs: self.told.append(("judged again", list(jobs))),
        )

    def job(self, due: timedelta = timedelta(0), *, isolated: bool = False, leased_at: float = 100.0) -> Job:
        self.made += 1
        made = event(NOON + due + self.made * timedelta(milliseconds=1), due_at=NOON + due, lost_leases=3)
        lease = Lease("token", [made.id], asked_at=leased_at, timeout_seconds=10)
        return Job(Attempt(made, SCHEDULE, "token", "w1"), lease, "http://a:80", isolated=isolated)

    def turn(self, *jobs: Job) -> float:
        """One turn of the loop, but for the wait; returns how long that would be."""
        self.courier.send(jobs)
        self.courier._take_over()
        self.courier._obey_present()
        self.courier._start_due()
        return self.courier._pause()

    def delays(self) -> list[float]:
        """By how many seconds each was postponed."""
        return [
            (each.postponement.due_at - self.now).total_seconds()
            for each in self.results
            if isinstance(each, Delayed)
        ]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bench]:
    def made(**options: Any) -> Bench:
        bench = Bench(**options)
        monkeypatch.setattr(courier, "monotonic", lambda: bench.monotonic)
        return bench

    return made


@pytest.fixture
def bench(make: Callable[..., Bench]) -> Bench:
    return make()


def test_what_is_due_at_this_instant_starts_and_what_is_due_later_is_waited_for(bench: Bench) -> None:
    due, soon, late = bench.job(), bench.job(SECOND / 4), bench.job(3_600 * SECOND)
    assert bench.turn() == IDLE_SECONDS
    assert bench.turn(late) == IDLE_SECONDS
    assert bench.turn(due, soon) == 0.25
    assert bench.requests.started == [due.attempt.event.id]
    bench.now += SECOND / 2
    assert bench.courier._pause() == 0.0, "it has fallen due since"
    assert bench.turn() == REVIEW_SECONDS, "a request is in flight"
    assert bench.requests.started == [due.attempt.event.id, soon.attempt.event.id]


def test_while_nothing_may_start_the_courier_looks_again_soon_and_not_at_once(bench: Bench) -> None:
    jobs = [bench.job() for _ in range(STARTS_AT_ONCE + 1)]
    assert bench.turn(*jobs) == 0.0, "more can start"
    bench.may_start = False
    assert bench.turn() == UNBLOCK_SECONDS
    bench.may_start = True
    bench.backlog.put(MAX_UNRECORDED, bench.monotonic)
    assert bench.turn() == UNBLOCK_SECONDS
    assert len(bench.requests.started) == STARTS_AT_ONCE
    bench.backlog.written(MAX_UNRECORDED)
    assert bench.turn() == REVIEW_SECONDS
    assert len(bench.requests.started) == STARTS_AT_ONCE + 1


def test_what_has_room_again_is_seen_to_without_a_wait(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OriginQueues, "has_room_again", True)
    assert bench.turn() == 0.0


def test_a_burst_goes_on_when_its_requests_have_grown_old(bench: Bench) -> None:
    pause = bench.turn(*(bench.job() for _ in range(MAX_YOUNG + 3)))
    while not pause:
        pause = bench.turn()
    assert (len(bench.requests.started), pause) == (MAX_YOUNG, UNBLOCK_SECONDS)
    bench.monotonic += 2 * YOUNG_SECONDS
    assert bench.turn() == REVIEW_SECONDS
    assert len(bench.requests.started) == MAX_YOUNG + 3


def test_what_a_receiver_has_no_room_for_is_postponed_when_it_comes_and_when_it_has_waited(
    make: Callable[..., Bench],
) -> None:
    bench = make(concurrency=1, held=1_000)
    jobs = [bench.job() for _ in range(MIN_KEPT + 3)]
    bench.turn(jobs[0])
    assert bench.results == []
    bench.turn(*jobs[1:])
    assert [each.event_id for each in bench.results] == [each.attempt.event.id for each in jobs[-2:]]
    assert all(1 < each < 4 for each in bench.delays())
    (first, _) = bench.results
    assert isinstance(first, Delayed)
    assert "http://a:80 has 1 requests in flight and 10 waiting in this worker" in first.postponement.message
    waited = make(concurrency=1)
    jobs = [waited.job() for _ in range(MIN_KEPT + 3)]
    waited.turn(*jobs)
    waited.monotonic += SATURATED_SECONDS + 0.5
    waited.courier._review(waited.monotonic)
    assert sorted(each.event_id for each in waited.results) == [each.attempt.event.id for each in jobs[-2:]]
    assert all(1 < each < 4 for each in waited.delays())
    assert len(waited.courier.waiting()) == MIN_KEPT


def test_a_job_whose_lease_has_no_room_yet_stays_until_it_has(bench: Bench) -> None:
    job = bench.job(leased_at=50.0)
    assert bench.turn(job) == REVIEW_SECONDS
    bench.courier._review(bench.monotonic)
    assert bench.courier._unleased == [job]
    assert list(bench.courier.waiting()) == [job]
    bench.courier.compare(Present({"s1": None}, {}, {}))
    bench.turn()
    assert bench.told == [("dropped", [job.attempt.event.id]), ("judged again", [job])]
    assert bench.courier._unleased == []


def test_what_stays_after_a_cancellation_keeps_the_order_of_its_instants(bench: Bench) -> None:
    jobs = [bench.job(seconds * SECOND) for seconds in (1, 10, 2, 11, 12, 3)]
    bench.turn(*jobs)
    bench.courier.compare(Present({}, {}, {jobs[0].attempt.event.id: "A person cancels it"}))
    assert bench.turn() == 2.0
    assert [each.event_id for each in bench.results] == [jobs[0].attempt.event.id]
    bench.now += 11 * SECOND
    bench.turn()
    due = [jobs[number].attempt.event.id for number in (2, 5, 1, 3)]
    assert sorted(bench.requests.started) == sorted(due)


def test_a_worker_that_ends_gives_back_each_job_once_and_starts_none_later(bench: Bench) -> None:
    jobs = [bench.job(SECOND), bench.job(leased_at=50.0)]
    bench.turn(*jobs)
    bench.courier.stop_starting()
    for _ in range(2):
        bench.turn()
    assert bench.results == [GivenBack(each.attempt.event.id, each.lease) for each in jobs]
    bench.now += 2 * SECOND
    bench.turn()
    assert bench.requests.started == []


def test_an_interrupted_worker_has_nothing_in_flight_and_its_receivers_are_cut_off(bench: Bench) -> None:
    job = bench.job()
    bench.turn(job)
    bench.courier._let_go()
    assert bench.requests.interrupted == 1
    assert (bench.courier.in_flight, bench.courier._queues.in_flight) == (0, 0)
    assert bench.results == [GivenBack(job.attempt.event.id, job.lease)]


def verdict(job: Job) -> Verdict:
    return Verdict(job.attempt.event.id, Outcome.SUCCESS, 200, None, "", 5.0)


@pytest.mark.parametrize("why", ["another", "behind", "lease", "full"])
def test_a_suspect_starts_at_once_or_is_postponed(make: Callable[..., Bench], why: str) -> None:
    bench = make(concurrency=1 if why == "full" else 100)
    if why in ("another", "full"):
        bench.turn(bench.job(isolated=why == "another"))
    bench.may_start = why != "behind"
    before = list(bench.requests.started)
    suspect = bench.job(isolated=True, leased_at=50.0 if why == "lease" else 100.0)
    bench.turn(suspect)
    assert bench.requests.started == before
    assert [each.event_id for each in bench.results] == [suspect.attempt.event.id]
    (delayed,) = bench.results
    assert isinstance(delayed, Delayed)
    assert "it lost 3 workers" in delayed.postponement.message


def test_one_suspect_is_tried_at_a_time_and_one_that_was_lost_holds_up_no_other(bench: Bench) -> None:
    lost, first, second = (bench.job(isolated=True) for _ in range(3))
    lost.lease.renewed([], bench.monotonic)
    bench.capacity.reserve(1)
    bench.turn(lost)
    assert (bench.capacity.held, bench.told) == (0, [("dropped", [lost.attempt.event.id])])
    bench.turn(first)
    ordinary = bench.job()
    bench.turn(ordinary)
    bench.courier._finish(verdict(ordinary), bench.monotonic)
    bench.turn(bench.job(isolated=True))
    assert bench.requests.started == [each.attempt.event.id for each in (first, ordinary)]
    bench.courier._finish(verdict(first), bench.monotonic)
    bench.turn(second)
    assert bench.requests.started[2:] == [second.attempt.event.id]


def test_each_outcome_is_counted_once_and_the_requests_are_closed_at_the_end(bench: Bench) -> None:
    counter = metrics.attempts.labels("completed")
    before, rounds = counter._value.get(), iter(range(3))

    def wait(_: float) -> list[Verdict]:
        if next(rounds) == 2:
            bench.courier.stop()
            return []
        job = bench.job()
        bench.turn(job)
        return [verdict(job)]

    bench.requests.wait = wait  # type: ignore[method-assign]
    bench.courier.work()
    assert counter._value.get() - before == 2
    assert len(bench.results) == 2
    assert bench.requests.closed == 1
