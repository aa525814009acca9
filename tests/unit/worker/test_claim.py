"""The way of claimed events to the courier: what is read now, what waits on, and what is given back."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pymongo.errors import AutoReconnect

from scheduler_app.domain.event import Event
from scheduler_app.worker import claim
from scheduler_app.worker.attempt import Attempt, Job
from scheduler_app.worker.batch import ClaimedBatch, ReadBatch
from scheduler_app.worker.capacity import Capacity, WorkerStopping
from scheduler_app.worker.claim import SMALL, Delivery, Handover
from scheduler_app.worker.lease import FIRST_TIMEOUT_SECONDS, Lease, Leases
from scheduler_app.worker.recorder import GivenBack
from tests.builders import event, schedule

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
NOBODY = cast(Any, None)
SCHEDULE = schedule(NOON - timedelta(days=1), timeout_seconds=10)


class Bench:
    """A handover without its threads, whose schedules are read without a store."""

    def __init__(self) -> None:
        self.sent: list[Job] = []
        self.results: list[Any] = []
        store = cast(Any, SimpleNamespace(overlaps=None, claims=None, completions=None))
        self.handover = Handover(
            *(store, cast(Any, SimpleNamespace(send=self.sent.extend)), NOBODY),
            *(cast(Any, SimpleNamespace(put=self.results.extend)), Leases(store), NOBODY),
            serves=lambda _: True,
            now=lambda: NOON,
            worker="w1",
            queues=("callbacks",),
        )
        read = SimpleNamespace(schedules=lambda _: {"s1": SCHEDULE}, destinations=lambda *_: {})
        self.handover._reading = cast(Any, read)

    def waiting(self) -> list[ClaimedBatch | ReadBatch]:
        return [item for _, _, item in sorted(self.handover._waiting._waiting)]


def batch(*seconds: float) -> ClaimedBatch:
    """Events that are due so many seconds after noon."""
    events = [event(NOON + each * SECOND) for each in seconds]
    lease = Lease("token", [each.id for each in events], asked_at=0, timeout_seconds=10)
    return ClaimedBatch(events, lease)


def test_what_is_read_before_its_time_is_handed_over_where_nothing_has_to_be_judged_then() -> None:
    bench, made = Bench(), batch(0.1, 0.2)
    bench.handover._read(made)
    assert [job.attempt.event for job in bench.sent] == made.events
    assert bench.waiting() == []
    assert bench.handover.origins.of([made.events[0].id]) == SCHEDULE.action.isolation_key


def test_events_that_come_back_wait_by_lease_in_the_order_of_their_instants() -> None:
    bench, first, second = Bench(), batch(1), batch(2)
    # By its id alone the later one would come first.
    later = event(NOON + 3 * SECOND, revision=1)
    earlier = event(NOON + 2 * SECOND, revision=2)
    jobs = [Job(Attempt(each, SCHEDULE, "token", "w1"), second.lease, "o") for each in (later, earlier)]
    jobs.append(Job(Attempt(first.events[0], SCHEDULE, "token", "w1"), first.lease, "o"))
    bench.handover.judge_again(jobs)
    assert bench.waiting() == [first, ClaimedBatch([earlier, later], second.lease)]


def test_a_worker_that_ends_gives_back_what_waits_read_or_not() -> None:
    bench, plain, read = Bench(), batch(3_600), batch(3_601, 3_602)
    bench.handover.put(plain)
    bench.handover._waiting.put_read(ReadBatch(read, {}, {}))
    bench.handover.give_back()
    assert [bench.handover.take_on() for _ in range(2)] == [True, True]
    given = [GivenBack(each.id, made.lease) for made in (plain, read) for each in made.events]
    assert bench.results == given
    bench.handover.stop()
    assert bench.handover.take_on() is False


def test_what_cannot_be_read_or_judged_before_the_worker_ends_is_given_back_and_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stopping(*_: Any) -> Any:
        raise WorkerStopping

    for step, part in (("schedules", "_reading"), ("held_back", "_overlap")):
        bench, made = Bench(), batch(0)
        monkeypatch.setattr(getattr(bench.handover, part), step, stopping)
        bench.handover._read(made)
        assert bench.results == [GivenBack(made.events[0].id, made.lease)]
        assert bench.sent == []


def test_a_thread_of_the_handover_goes_on_until_the_worker_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, steps = Bench(), iter([True, True, False])
    monkeypatch.setattr(bench.handover, "take_on", lambda: next(steps))
    claim._HandoverThread(bench.handover).work()
    assert list(steps) == []


def test_a_handover_that_stops_asks_mongodb_no_longer_and_waits_for_its_threads() -> None:
    def away() -> None:
        raise AutoReconnect("of the test")

    bench, waited = Bench(), list[float]()
    bench.handover._threads = [cast(Any, SimpleNamespace(join=waited.append))]
    bench.handover.stop()
    with pytest.raises(WorkerStopping):
        bench.handover._retrying.until_answered(away)
    bench.handover.join(7.0)
    assert waited == [7.0]


class Claims:
    """Wins the first `wins` of the events, and notes what it was asked."""

    def __init__(self, wins: int) -> None:
        self.wins = wins
        self.asked: dict[str, Any] = {}
        self.steps: list[Any] = []
        self.free: tuple[int, int] | None = None
        self.capacity = Capacity(1_000, is_behind=lambda: False)
        self.delivery = Delivery(
            cast(Any, SimpleNamespace(claims=self)),
            self.capacity,
            *(cast(Any, SimpleNamespace(add=self.steps.append)),),
            cast(Any, SimpleNamespace(put=self.steps.append)),
            horizon_seconds=5.0,
            now=lambda: NOON,
            worker="w1",
            queues=["callbacks", "commands"],
        )

    def claim(self, ids: list[str], **asked: Any) -> tuple[str, list[Event]]:
        self.asked = asked
        self.free = self.delivery._turns_of_small._free, self.delivery._turns._free
        if self.wins < 0:
            raise AutoReconnect("of the test")
        return "token", [event(NOON + number * SECOND) for number in range(self.wins)]


def test_a_claim_keeps_room_for_what_was_won_and_its_lease_is_known_before_it_is_handed_over() -> None:
    claims = Claims(wins=2)
    assert claims.delivery.deliver(["a", "b", "c"]) == 2
    assert claims.capacity.held == 2
    assert claims.asked == {
        "until": NOON + 5 * SECOND,
        "now": NOON,
        "lease_seconds": Lease.length(FIRST_TIMEOUT_SECONDS),
        "worker": "w1",
        "queues": ("callbacks", "commands"),
    }
    lease, handed = claims.steps
    assert isinstance(lease, Lease)
    assert (handed.lease, len(handed.events), lease.token) == (lease, 2, "token")
    nothing = Claims(wins=0)
    assert nothing.delivery.deliver(["a"]) == 0
    assert (nothing.capacity.held, nothing.steps) == (0, [])


def test_a_claim_that_failed_keeps_no_room() -> None:
    claims = Claims(wins=-1)
    with pytest.raises(AutoReconnect):
        claims.delivery.deliver(["a", "b"])
    assert claims.capacity.held == 0


@pytest.mark.parametrize(("count", "small"), [(SMALL - 1, True), (SMALL, False)])
def test_claims_of_few_events_have_turns_of_their_own(count: int, small: bool) -> None:
    claims = Claims(wins=0)
    free = claims.delivery._turns_of_small._free, claims.delivery._turns._free
    claims.delivery.deliver([str(number) for number in range(count)])
    assert claims.free == (free[0] - small, free[1] - (not small))
