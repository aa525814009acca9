"""What the thread of flow control does in one round, by the clock and the grants that a test gives it."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from scheduler_app.actions.kind import Outcome, Verdict
from scheduler_app.domain.destination import Breaker, Destination
from scheduler_app.domain.flow_control import (
    FinishedRequest,
    FlowGrant,
    FlowRequest,
    ReceiverAnswer,
    WaitReason,
)
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.tenant import DeliverySlots
from scheduler_app.worker import flow_control
from scheduler_app.worker.attempt import Attempt, Job
from scheduler_app.worker.destination_queue import KEPT_SECONDS, LEAST_KEPT_OF_RATE, DestinationQueue
from scheduler_app.worker.flow_control import (
    LEAST_PAUSE,
    LONGEST_PAUSE,
    PAUSED_SECONDS,
    SHOWN_LONGER_SECONDS,
    UNKNOWN_SECONDS,
    FlowControl,
    _ended_request,
)
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.recorder import Delayed, GivenBack, Result, Withdrawn
from scheduler_app.worker.rejudging import Present
from tests.builders import event, schedule

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SCHEDULE = schedule(NOON)
NOW = 100.0
"""The monotonic time at which the clock stands."""


def grant(
    granted: int = 0,
    *,
    wait: float = 0.0,
    why: WaitReason | None = None,
    is_open: bool = False,
    **places: float,
) -> FlowGrant:
    return FlowGrant(granted, wait, why, places.get("first", 0.0), places.get("step", 0.0), is_open)


class Limits:
    """Decides as a limiter whose next grants are known."""

    unavailable = (KeyError,)

    def __init__(self) -> None:
        self.grants: list[FlowGrant] = []
        self.closed = 0

    def decide(self, asks: Sequence[FlowRequest]) -> list[FlowGrant]:
        if not self.grants:
            raise KeyError("away")
        return [self.grants.pop(0) for _ in asks]

    def close(self) -> None:
        self.closed += 1


class Bench:
    """Flow control without its thread."""

    def __init__(self) -> None:
        self.limits = Limits()
        self.results: list[Result] = []
        self.sent: list[Job] = []
        self.freed: list[int] = []
        self.made = 0
        self.control = FlowControl(
            cast(Any, self.limits),
            cast(Any, SimpleNamespace(send=self.sent.extend, lost=self.freed.append)),
            cast(Any, SimpleNamespace(put=self.results.extend)),
            now=lambda: NOON,
        )

    def job(self) -> Job:
        self.made += 1
        due = event(NOON + timedelta(milliseconds=self.made))
        lease = Lease("token", [due.id], asked_at=0, timeout_seconds=10)
        return Job(Attempt(due, SCHEDULE, "token", "w"), lease, "destination d")

    def queue(self, own_id: str = "d", *, jobs: int = 0, **fields: Any) -> DestinationQueue:
        made = self.control._queues[own_id] = DestinationQueue(destination(own_id, **fields))
        made.jobs.extend(self.job() for _ in range(jobs))
        return made

    def delays(self) -> list[float]:
        return [(each.postponement.due_at - NOON).total_seconds() for each in self.delayed()]

    def delayed(self) -> list[Delayed]:
        return [each for each in self.results if isinstance(each, Delayed)]


def destination(own_id: str = "d", **fields: Any) -> Destination:
    return Destination(id=WholeId(own_id), url="http://x/", created_at=NOON, updated_at=NOON, **fields)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(flow_control, "monotonic", lambda: NOW)
    return Bench()


def test_the_thread_is_woken_after_it_was_told_and_not_before(bench: Bench) -> None:
    """It would find out half a second later."""
    control, known = bench.control, list[set[str]]()

    class Told(threading.Condition):
        def notify(self, n: int = 1) -> None:
            facts = {
                "jobs": any(queue.jobs for queue in control._queues.values()),
                "ends": any(queue.ended for queue in control._queues.values()),
                "giving back": control._giving_back,
                "ended": control._ended,
            }
            known.append({name for name, holds in facts.items() if holds})

    control._changed = Told()
    job = bench.job()
    control.put([(destination(), job)])
    control._held_by[job.attempt.event.id] = ("d",)
    control.dropped(["unknown", job.attempt.event.id])
    control.stop_starting()
    control.stop()
    told = ["jobs", "ends", "giving back", "ended"]
    assert known == [set(told[: number + 1]) for number in range(4)]


def test_the_newest_known_destination_holds_and_a_job_that_comes_is_asked_for_at_once(bench: Bench) -> None:
    control = bench.control
    for version, concurrency in ((2, 5), (1, 4), (3, 6), (3, 7)):
        control.put([(destination(version=version, concurrency=concurrency), bench.job())])
        if version == 1:
            assert control._queues["d"].destination.concurrency == 5
            control._queues["d"].again_at = NOW + 60
    # The slots of a tenant have no versions: the last ones hold.
    assert control._queues["d"].destination.concurrency == 7
    assert control._queues["d"].again_at == NOW
    for concurrency in (3, 2):
        control.put([(DeliverySlots("acme", concurrency), bench.job())])
    assert control._queues["slots/acme"].destination.concurrency == 2


@pytest.mark.parametrize(
    ("next_at", "pause"),
    [(NOW - 5, LEAST_PAUSE), (NOW + 0.2, 0.2), (NOW + 60, LONGEST_PAUSE)],
)
def test_the_thread_waits_for_the_first_queue_that_has_something_to_ask(
    bench: Bench, next_at: float, pause: float
) -> None:
    assert bench.control._pause() is None
    bench.queue("a", jobs=1).again_at = NOW + 90
    bench.queue("b", jobs=1).again_at = next_at
    assert bench.control._pause() == pytest.approx(pause)


def test_what_is_cancelled_is_not_asked_for(bench: Bench) -> None:
    queue = bench.queue(jobs=2)
    first, second = queue.jobs
    bench.control.compare(Present({}, {}, {first.attempt.event.id: "A person cancels it"}))
    control, rounds = bench.control, list[int]()

    def once() -> float:
        rounds.append(1)
        control._ended = len(rounds) > 1
        return 0.0

    control._pause = once  # type: ignore[method-assign]
    control._judge_again = lambda jobs: pytest.fail(f"{jobs} need no new judgement")
    bench.limits.grants = [grant(2)]
    control.work()
    assert [type(each) for each in bench.results] == [Withdrawn]
    assert bench.sent == [second]
    assert bench.limits.closed == 1


def test_what_is_judged_again_has_given_up_its_room_before(bench: Bench) -> None:
    queue, control = bench.queue(jobs=1), bench.control
    (job,) = queue.jobs
    event_id, seen = job.attempt.event.id, list[Any]()
    control._held_by[event_id] = ("other",)
    control.judge_again_by(lambda jobs: seen.append((list(jobs), event_id in control._held_by)))
    control.compare(Present({"s1": None}, {}, {}))
    control._obey_present()
    assert seen == [([job], False)]


def test_what_waits_is_what_room_is_asked_for_and_what_came_meanwhile(bench: Bench) -> None:
    queue = bench.queue(jobs=2)
    asked = list(queue.jobs)
    queue.ask(NOW)
    later = bench.job()
    bench.control.put([(queue.destination, later)])
    assert bench.control.waiting() == [*asked, later]


def test_what_waits_is_given_back_once(bench: Bench) -> None:
    queue = bench.queue(jobs=2)
    given = [GivenBack(each.attempt.event.id, each.lease) for each in queue.jobs]
    bench.queue("empty")
    for _ in range(2):
        bench.control._give_back()
    assert bench.results == given


def test_a_round_forgets_what_is_idle_frees_what_was_lost_and_asks_for_the_rest(bench: Bench) -> None:
    control = bench.control
    bench.queue("idle")
    lost = bench.queue("lost", jobs=1)
    (job,) = lost.jobs
    job.lease.settle([job.attempt.event.id])
    control._held_by[job.attempt.event.id] = ("room", "gone")
    room = bench.queue("room")
    room.held[job.attempt.event.id] = NOW
    bench.queue("paused", jobs=2, paused=True)
    bench.queue("asks", jobs=1)
    asked = {queue.destination.id: len(ask.wanted) for queue, ask in control._round(NOW)}
    assert asked == {"room": 0, "asks": 1}
    assert bench.freed == [1]
    assert (room.held, control._held_by) == ({}, {})
    assert bench.delays() == [PAUSED_SECONDS, PAUSED_SECONDS + 0.001]
    assert set(control._queues) == {"room", "paused", "asks"}


def test_while_the_limits_cannot_be_read_it_is_asked_again_now_and_then_and_told_of_once(
    bench: Bench,
) -> None:
    queue = bench.queue()
    queue.ended = [FinishedRequest("e", ReceiverAnswer.WELL, 200)]

    def ask() -> int:
        asked = queue.ask(NOW)
        assert asked is not None
        bench.control._ask([queue], [asked])
        return len(asked.ended)

    ends = list[int]()
    with capture_logs() as lines:
        for answers in (False, False, True, True, False):
            queue.jobs.extend((bench.job(), bench.job()))
            queue.again_at, bench.limits.grants = 0.0, [grant()] * answers
            ends.append(ask())
            assert queue.again_at == NOW + (LEAST_PAUSE if answers else LONGEST_PAUSE)
            queue.jobs.clear()
    told = [line["event"] for line in lines if line["event"].startswith("flow.")]
    assert told == ["flow.unknown", "flow.known", "flow.unknown"]
    assert bench.delays() == [UNKNOWN_SECONDS, UNKNOWN_SECONDS + 0.001] * 3
    assert ends == [1, 1, 1, 0, 0], "an end is told until it was heard"


@pytest.mark.parametrize(
    ("wants", "given", "again_at"),
    [
        (True, grant(1), NOW + LEAST_PAUSE),
        (True, grant(1, wait=0.2), NOW + 0.2),
        (False, grant(wait=0.2, why=WaitReason.BREAKER), NOW + 0.2),
        (False, grant(wait=0.2), 7.0),
    ],
)
def test_a_grant_says_when_to_ask_again_where_something_was_wanted_or_waits(
    bench: Bench, wants: bool, given: FlowGrant, again_at: float
) -> None:
    queue = bench.queue(jobs=int(wants))
    asked = queue.ask(NOW) if wants else FlowRequest(queue.destination)
    assert asked is not None
    queue.again_at = 7.0
    started = bench.control._obey(queue, asked, given)
    assert (len(started), list(queue.held.values())) == (int(wants), [NOW] * wants)
    assert queue.again_at == again_at
    assert list(bench.control._held_by.values()) == [("d",)] * wants


def test_what_has_to_wait_too_long_takes_places_in_the_next_round(bench: Bench) -> None:
    queue = bench.queue(jobs=3, rate_per_second=0.5)

    def obey(given: FlowGrant) -> None:
        asked = queue.ask(NOW)
        assert asked is not None
        bench.control._obey(queue, asked, given)
        queue.again_at = 0.0

    obey(grant(1, wait=KEPT_SECONDS, why=WaitReason.BREAKER))
    assert queue.overdue is None, "so long it may wait here"
    obey(grant(0, wait=KEPT_SECONDS + 0.1, why=WaitReason.BREAKER))
    assert queue.overdue is WaitReason.BREAKER
    assert bench.results == []
    waiting = [each.attempt.event.id for each in queue.jobs]
    obey(grant(0, first=50.0, step=10.0, why=WaitReason.RATE))
    assert (queue.overdue, len(queue.jobs)) == (None, 0)
    assert [each.event_id for each in bench.delayed()] == waiting
    assert bench.delays() == [50.0, 60.001]
    assert "waits for its breaker" in bench.delayed()[0].postponement.message
    # Where nothing waits any more, a long wait is no reason.
    bench.control._obey(queue, FlowRequest(queue.destination), grant(wait=60.0, why=WaitReason.BREAKER))
    assert queue.overdue is None


@pytest.mark.parametrize(("why", "named"), [(WaitReason.BREAKER, "its breaker"), (None, "its rate")])
def test_only_what_is_too_much_is_put_off_and_says_what_it_waits_for(
    bench: Bench, why: WaitReason | None, named: str
) -> None:
    queue = bench.queue(jobs=LEAST_KEPT_OF_RATE + 2, rate_per_second=0.01)
    ids = [each.attempt.event.id for each in queue.jobs]
    asked = queue.ask(NOW)
    assert asked is not None
    assert bench.control._obey(queue, asked, grant(first=30.0, step=1.0, why=why)) == []
    assert [each.event_id for each in bench.delayed()] == ids[-2:]
    assert bench.delays() == [30.0, 130.001], "as far apart as this worker knows that two requests are"
    assert all(named in each.postponement.message for each in bench.delayed())


def test_breakers_are_shown_until_some_seconds_after_their_probe_and_so_many_at_most(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    control, breaker = bench.control, Breaker(1, 10.0)
    monkeypatch.setattr(flow_control, "MAX_SHOWN", 2)
    control._note_breaker(destination("a", breaker=breaker), grant(is_open=True), NOW)
    control._note_breaker(destination("b", breaker=breaker), grant(is_open=True), NOW)
    until = NOW + 10 + SHOWN_LONGER_SECONDS
    assert control.open_breakers(until - 0.1) == ["a", "b"]
    assert control.open_breakers(until) == []
    control._note_breaker(destination("c", breaker=breaker), grant(is_open=True), NOW)
    assert control.open_breakers(NOW) == ["b", "c"]
    control._note_breaker(destination("b", breaker=breaker), grant(), NOW)
    control._note_breaker(destination("d"), grant(is_open=True), NOW)
    control._note_breaker(destination("e", breaker=breaker), grant(), NOW)
    assert control.open_breakers(NOW) == ["c"]


def test_a_grant_that_finds_the_breaker_open_shows_it(bench: Bench) -> None:
    queue = bench.queue(jobs=1, breaker=Breaker(1, 10.0))
    asked = queue.ask(NOW)
    assert asked is not None
    bench.limits.grants = [grant(why=WaitReason.BREAKER, is_open=True)]
    bench.control._ask([queue], [asked])
    assert bench.control.open_breakers(NOW) == ["d"]


@pytest.mark.parametrize(
    ("outcome", "status", "answer", "slow"),
    [
        (Outcome.SUCCESS, 200, ReceiverAnswer.WELL, False),
        (Outcome.SUCCESS, None, ReceiverAnswer.WELL, False),
        (Outcome.RETRY, 500, ReceiverAnswer.FAILED, False),
        (Outcome.RETRY, None, ReceiverAnswer.FAILED, False),
        (Outcome.RETRY, 503, ReceiverAnswer.FAILED, True),
        (Outcome.PERMANENT, 429, ReceiverAnswer.FAILED, True),
        (Outcome.PERMANENT, 404, ReceiverAnswer.WELL, False),
        (Outcome.PERMANENT, None, ReceiverAnswer.NOTHING, False),
    ],
)
def test_what_the_end_of_a_request_says_of_its_receiver(
    outcome: Outcome, status: int | None, answer: ReceiverAnswer, slow: bool
) -> None:
    verdict = Verdict("e", outcome, status, None, "", 1_500.0, retry_after=7.0)
    assert _ended_request(verdict) == FinishedRequest("e", answer, status, 1.5, slow, 7.0)
