"""What became of claimed events is written once, whatever MongoDB does meanwhile, and their room is freed."""

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from pymongo.errors import AutoReconnect
from structlog.testing import capture_logs

from scheduler_app.clock import monotonic
from scheduler_app.domain.lateness import Expiry, ExpiryPolicy
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.claims import Postponement
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.store.events.overlaps import UnsentOutcome
from scheduler_app.worker import recorder as recording
from scheduler_app.worker.capacity import Capacity, RecordingBacklog
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.recorder import (
    RECORDS_AT_ONCE,
    WITHDRAWN,
    AttemptResult,
    Delayed,
    EndedUnsent,
    Expired,
    GivenBack,
    Recorder,
    Result,
    Withdrawn,
)
from tests.builders import event
from tests.documents import event_document
from tests.integration.conftest import NOON
from tests.processes import PATIENCE_SECONDS, wait_until

SECOND = timedelta(seconds=1)


class Bench:
    """A recorder over the store of the test, and what it tells of its work."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.backlog = RecordingBacklog()
        self.capacity = Capacity(10_000, is_behind=lambda: False)
        self.recorded: list[OutcomeRecord] = []
        self.settled: list[str] = []
        self.recorder = Recorder(
            store, self.backlog, self.capacity, now=lambda: NOON, worker="w1", recorded=self.recorded.extend
        )
        self.recorder.report_to(self.settled.extend)

    def claimed(self, count: int, first: int = 0) -> Lease:
        """Makes events, and claims them as a worker does."""
        made = [event(NOON - (first + number) * SECOND) for number in range(count)]
        self.store.events.insert(made, NOON, "made")
        ids = [each.id for each in made]
        token, won = self.store.claims.claim(ids, until=NOON, now=NOON, lease_seconds=60, worker="w1")
        assert len(won) == len(ids)
        self.capacity.reserve(len(ids))
        return Lease(token, ids, asked_at=monotonic(), timeout_seconds=10)

    def write(self, results: Sequence[Result]) -> None:
        self.recorder.put(results)
        self.wait_until_empty()

    def wait_until_empty(self) -> None:
        assert self.capacity.wait_until_empty(PATIENCE_SECONDS)
        wait_until(lambda: self.backlog.count == 0, "the backlog to be written")

    def document(self, event_id: str) -> dict[str, Any]:
        found = event_document(self.store, event_id)
        assert found is not None
        return found

    def states(self, ids: Sequence[str]) -> list[str]:
        return [self.document(each)["state"] for each in ids]


def outcomes(lease: Lease, ids: Sequence[str] | None = None) -> list[AttemptResult]:
    """Each event was completed by its first attempt."""
    return [AttemptResult(completed(each, lease.token), lease) for each in sorted(ids or lease.open())]


def completed(event_id: str, token: str, started_at: datetime = NOON) -> OutcomeRecord:
    attempt = {"number": 1, "started_at": started_at, "duration_ms": 2.0, "worker": "w1"}
    return OutcomeRecord(event_id, token, State.COMPLETED, "done", None, attempt, started_at)


@pytest.fixture
def bench(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(recording, "BACKOFF_SECONDS", (0.0, 0.001))
    made = Bench(store)
    made.recorder.start()
    yield made
    made.recorder.stop()
    made.recorder.join(PATIENCE_SECONDS)
    assert not made.recorder.is_alive()


@pytest.fixture
def faults(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Lets writes of outcomes fail `before` or after their effect, and notes how many each was to write."""
    record = bench.store.outcomes.record

    def install(count: float, *, answer_lost: bool = False) -> list[int]:
        tries: list[int] = []

        def failing(records: Sequence[OutcomeRecord]) -> list[OutcomeRecord]:
            tries.append(len(records))
            if len(tries) > count:
                return record(records)
            if answer_lost:
                record(records)
            raise AutoReconnect("connection closed")

        monkeypatch.setattr(bench.store.outcomes, "record", failing)
        return tries

    return install


def test_what_is_written_at_once_was_counted_before(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what is counted after it was written would seem to wait for ever, and the worker claim nothing."""
    bench = Bench(store)
    lease, count = bench.claimed(1), bench.backlog.put

    def before_it_is_counted(number: int, now: float) -> None:
        bench.recorder.stop()
        bench.recorder.work()  # as its own thread could in this moment
        count(number, now)

    monkeypatch.setattr(bench.backlog, "put", before_it_is_counted)
    bench.recorder.put(outcomes(lease))
    bench.recorder.work()
    assert (bench.backlog.count, bench.backlog.age(monotonic() + 9)) == (0, 0.0)


@pytest.mark.parametrize("answer_lost", [False, True], ids=["before-its-effect", "after-its-effect"])
def test_outcomes_are_written_once_however_often_mongodb_fails(
    bench: Bench, faults: Callable[..., list[int]], *, answer_lost: bool
) -> None:
    lease = bench.claimed(3)
    ids = sorted(lease.open())
    tries = faults(5, answer_lost=answer_lost)
    bench.write(outcomes(lease))
    assert tries == [3] * 6
    assert bench.states(ids) == ["completed"] * 3
    assert [len(bench.document(each)["attempts"]) for each in ids] == [1] * 3
    assert [each.event_id for each in bench.recorded] == ids
    assert sorted(bench.settled) == ids
    assert lease.open() == ()


def test_while_mongodb_fails_outcomes_are_kept_and_hold_their_room(
    bench: Bench, faults: Callable[..., list[int]]
) -> None:
    lease = bench.claimed(2)
    tries = faults(float("inf"))
    bench.recorder.put(outcomes(lease))
    wait_until(lambda: len(tries) > 3, "more tries than there are pauses")
    assert (bench.capacity.held, bench.backlog.count, len(lease.open())) == (2, 2, 2)
    assert (bench.recorded, bench.settled) == ([], [])
    bench.recorder.hurry()
    bench.wait_until_empty()


def test_a_worker_that_ends_waits_no_longer_for_mongodb_and_says_what_it_leaves(
    bench: Bench, faults: Callable[..., list[int]]
) -> None:
    lease = bench.claimed(2)
    ids = sorted(lease.open())
    bench.recorder.hurry()
    tries = faults(1)
    with capture_logs() as lines:
        bench.write(outcomes(lease))
    assert tries == [2]
    (abandoned,) = [line for line in lines if line["event"] == "record.abandoned"]
    assert abandoned["event_ids"] == ids
    assert bench.states(ids) == ["running"] * 2, "recovery sends them again"
    assert bench.recorded == []
    assert sorted(bench.settled) == ids
    # The end is no reason to leave what can be written.
    later = bench.claimed(1, first=5)
    (last,) = later.open()
    bench.write(outcomes(later))
    assert bench.states([last]) == ["completed"]


def test_an_outcome_that_cannot_be_written_loses_no_other_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = bench.claimed(4)
    ids = sorted(lease.open())
    record = bench.store.outcomes.record

    def breaks(records: Sequence[OutcomeRecord]) -> list[OutcomeRecord]:
        if any(each.event_id == ids[1] for each in records):
            raise ValueError("a defect of ours")
        return record(records)

    monkeypatch.setattr(bench.store.outcomes, "record", breaks)
    with capture_logs() as lines:
        bench.write(outcomes(lease))
    assert bench.states(ids) == ["completed", "running", "completed", "completed"]
    assert [line["event_id"] for line in lines if line["event"] == "record.impossible"] == [ids[1]]
    assert sorted(bench.settled) == ids
    assert (bench.capacity.held, bench.backlog.count, lease.open()) == (0, 0, ())


def test_an_outcome_of_a_lost_claim_is_kept_as_late_and_reported_to_nobody(bench: Bench) -> None:
    lost = bench.claimed(2)
    ids = sorted(lost.open())
    bench.store.claims.give_back([ids[0]], lost.token, NOON, "its lease was over")
    again, _ = bench.store.claims.claim([ids[0]], until=NOON, now=NOON, lease_seconds=60, worker="w2")
    with capture_logs() as lines:
        bench.write(outcomes(lost, ids))
    assert [line["event_ids"] for line in lines if line["event"] == "record.late"] == [[ids[0]]]
    found = bench.document(ids[0])
    assert (found["state"], found["owner"]) == ("running", again)
    assert [each["late"] for each in found["attempts"]] == [True]
    assert [each.event_id for each in bench.recorded] == [ids[1]]
    assert sorted(bench.settled) == ids


def test_each_kind_of_result_is_written_under_the_token_of_its_own_claim(bench: Bench) -> None:
    one, other = bench.claimed(6), bench.claimed(6, first=6)
    later = NOON + 30 * SECOND
    results: list[Result] = []
    ids: list[str] = []
    for lease in (one, other):
        done, back, void, late, too_late, skipped = sorted(lease.open())
        ids += sorted(lease.open())
        postponement = Postponement(late, lease.token, later, NOON, "Postponed: no room")
        results += [
            *outcomes(lease, [done]),
            GivenBack(back, lease),
            Withdrawn(void, lease),
            Delayed(postponement, lease),
            Expired(too_late, lease, Expiry(ExpiryPolicy.EXPIRE_AFTER, "Expired: too late")),
            EndedUnsent(UnsentOutcome(skipped, lease.token, State.SKIPPED, "Skipped: another runs"), lease),
        ]
    with capture_logs() as lines:
        bench.write(results)
    expected = ["completed", "ready_queue", "cancelled", "ready_queue", "expired", "skipped"] * 2
    assert bench.states(ids) == expected
    told = [bench.document(each)["status"][-1]["message"] for each in ids]
    given_back, withdrawn = "Given back by w1", WITHDRAWN
    assert (
        told
        == [
            *(
                "done",
                given_back,
                withdrawn,
                "Postponed: no room",
                "Expired: too late",
                "Skipped: another runs",
            )
        ]
        * 2
    )
    assert [bench.document(each)["due_at"] for each in (ids[3], ids[9])] == [later, later]
    assert all("owner" not in bench.document(each) for each in ids)
    assert sorted(line["event_ids"] for line in lines if line["event"] == "deliver.given_back") == sorted(
        [[ids[1]], [ids[7]]]
    )
    assert sorted(bench.settled) == sorted(ids)
    assert [each.event_id for each in bench.recorded] == [ids[0], ids[6]]


def test_what_is_given_back_is_given_back_again_when_mongodb_fails(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = bench.claimed(2)
    ids = sorted(lease.open())
    give_back, tries = bench.store.claims.give_back, []

    def failing(*given: Any) -> int:
        tries.append(given)
        if len(tries) < 3:
            raise AutoReconnect("connection closed")
        return give_back(*given)

    monkeypatch.setattr(bench.store.claims, "give_back", failing)
    bench.write([GivenBack(each, lease) for each in ids])
    assert bench.states(ids) == ["ready_queue"] * 2
    assert len(tries) == 3


def test_what_comes_while_one_write_is_made_shares_the_next_one_up_to_its_bound(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = bench.claimed(RECORDS_AT_ONCE + 52)
    record, written, may_go_on = bench.store.outcomes.record, list[int](), threading.Event()

    def slowly(records: Sequence[OutcomeRecord]) -> list[OutcomeRecord]:
        written.append(len(records))
        assert may_go_on.wait(PATIENCE_SECONDS)
        return record(records)

    monkeypatch.setattr(bench.store.outcomes, "record", slowly)
    first, *others = outcomes(lease)
    bench.recorder.put([first])
    wait_until(lambda: written == [1], "the first write")
    assert len(others) == RECORDS_AT_ONCE + 51
    for begin in range(0, RECORDS_AT_ONCE, 100):
        bench.recorder.put(others[begin : begin + 100])
    bench.recorder.put(others[RECORDS_AT_ONCE : RECORDS_AT_ONCE + 1])
    bench.recorder.put(others[RECORDS_AT_ONCE + 1 :])
    may_go_on.set()
    bench.wait_until_empty()
    assert written == [1, RECORDS_AT_ONCE, 51]


@pytest.fixture
def writes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The events of each write of outcomes, where nothing but its end lets the recorder stop gathering."""
    monkeypatch.setattr(recording, "GATHER_SECONDS", 3600.0)
    record, written = bench.store.outcomes.record, list[list[str]]()

    def noted(records: Sequence[OutcomeRecord]) -> list[OutcomeRecord]:
        written.append([each.event_id for each in records])
        return record(records)

    monkeypatch.setattr(bench.store.outcomes, "record", noted)
    return written


def test_while_the_worker_holds_others_outcomes_are_gathered_and_the_last_one_is_not_waited_for(
    bench: Bench, writes: list[list[str]]
) -> None:
    lease = bench.claimed(3)
    first, second, third = outcomes(lease)
    ids = [first.event_id, second.event_id, third.event_id]
    for each in (first, second, third):
        assert bench.states(ids) == ["running"] * 3
        bench.recorder.put([each])
    bench.wait_until_empty()
    assert writes == [ids]


def test_what_is_gathered_is_written_after_a_moment_though_the_worker_holds_others(bench: Bench) -> None:
    assert recording.GATHER_SECONDS <= 0.05
    outcome, _ = outcomes(bench.claimed(2))
    bench.recorder.put([outcome])
    wait_until(lambda: bench.states([outcome.event_id]) == ["completed"], "the record")


def test_what_another_run_waits_for_is_written_at_once_and_takes_along_what_was_gathered(
    bench: Bench, writes: list[list[str]]
) -> None:
    first, second, _ = outcomes(bench.claimed(3))
    bench.recorder.put([first])
    bench.recorder.put([second._replace(is_awaited=True)])
    wait_until(lambda: bench.backlog.count == 0, "the record")
    assert writes == [[first.event_id, second.event_id]]


def test_what_comes_after_what_another_run_waited_for_is_gathered_again(
    bench: Bench, writes: list[list[str]]
) -> None:
    awaited, *others = outcomes(bench.claimed(5))
    bench.recorder.put([awaited._replace(is_awaited=True)])
    wait_until(lambda: bench.backlog.count == 0, "the record")
    ids = [each.event_id for each in others]
    for each in others:
        assert bench.states(ids) == ["running"] * 4
        bench.recorder.put([each])
    bench.wait_until_empty()
    assert writes == [[awaited.event_id], ids]


def test_what_was_not_sent_is_written_at_once(bench: Bench, writes: list[list[str]]) -> None:
    lease = bench.claimed(2)
    given_back, _ = sorted(lease.open())
    bench.recorder.put([GivenBack(given_back, lease)])
    wait_until(lambda: bench.states([given_back]) == ["ready_queue"], "it to be given back")
    assert writes == []


def test_a_worker_that_stops_gathers_nothing_more(bench: Bench, writes: list[list[str]]) -> None:
    first, second, _ = outcomes(bench.claimed(3))
    bench.recorder.put([first])
    bench.recorder.stop_gathering()
    wait_until(lambda: bench.backlog.count == 0, "what was gathered")
    bench.recorder.put([second])
    wait_until(lambda: bench.backlog.count == 0, "the record")
    assert writes == [[first.event_id], [second.event_id]]


@pytest.mark.parametrize("busy_first", [True, False])
def test_origins_take_turns_where_more_waits_than_one_write_takes(
    bench: Bench, writes: list[list[str]], monkeypatch: pytest.MonkeyPatch, *, busy_first: bool
) -> None:
    monkeypatch.setattr(recording, "RECORDS_AT_ONCE", 4)
    busy, quiet = outcomes(bench.claimed(8)), outcomes(bench.claimed(1, first=8))
    (small,) = (AttemptResult(each.record._replace(origin="https://quiet"), each.lease) for each in quiet)
    bench.recorder.put([*busy, small] if busy_first else [small, *busy])
    bench.wait_until_empty()
    assert [len(each) for each in writes] == [4, 4, 1]
    assert small.event_id in writes[0]


def test_what_was_put_before_the_end_is_written(store: Store) -> None:
    bench = Bench(store)
    lease = bench.claimed(5)
    ids = sorted(lease.open())
    for outcome in outcomes(lease):
        bench.recorder.put([outcome])
    bench.recorder.stop()
    bench.recorder.start()
    bench.recorder.join(PATIENCE_SECONDS)
    assert not bench.recorder.is_alive()
    assert bench.states(ids) == ["completed"] * 5
