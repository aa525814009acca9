"""What a worker asks the limiter for one destination, and when: by the monotonic time that is given."""

import itertools
from collections import deque
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.destination import Destination
from scheduler_app.domain.flow_control import SLOT_GRACE_SECONDS, FinishedRequest, ReceiverAnswer, WaitReason
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.tenant import DeliverySlots
from scheduler_app.store.schedules.schedules import ScheduleFacts
from scheduler_app.worker.attempt import Attempt, Job
from scheduler_app.worker.destination_queue import (
    KEPT_SECONDS,
    MOST_KEPT,
    RENEW_SECONDS,
    WANTED_AT_ONCE,
    DestinationQueue,
)
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.recorder import Withdrawn
from scheduler_app.worker.rejudging import Present
from tests.builders import event, schedule

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
END = FinishedRequest("e", ReceiverAnswer.WELL, 200)
SCHEDULE = schedule(NOON)
_seconds = itertools.count()


def job(timeout_seconds: float = 10.0) -> Job:
    due = event(NOON + timedelta(seconds=next(_seconds)))
    lease = Lease("token", [due.id], asked_at=0, timeout_seconds=timeout_seconds)
    return Job(
        Attempt(due, replace(SCHEDULE, timeout_seconds=timeout_seconds), "token", "w"), lease, "origin"
    )


def queue(jobs: int = 0, **fields: Any) -> DestinationQueue:
    made = Destination(id=WholeId("d"), url="http://x/", created_at=NOON, updated_at=NOON, **fields)
    return DestinationQueue(made, deque(job() for _ in range(jobs)))


def ids(of: DestinationQueue) -> list[str]:
    return [each.attempt.event.id for each in of.jobs]


def test_what_waits_is_asked_for_when_there_may_be_room_and_takes_the_ends_along() -> None:
    made = queue(3)
    made.again_at, made.ended = 100.0, [END]
    made.held["flying"] = 0.0
    first = made.ask(99.0)
    assert first is not None
    assert (first.wanted, first.ended, first.held, first.reserve) == ([], [END], ["flying"], 0)
    assert made.ask(99.0) is None, "the end was told"
    waiting = ids(made)
    second = made.ask(100.0)
    assert second is not None
    assert (second.wanted, second.ended) == (waiting, [])
    assert second.destination == made.destination


def test_jobs_of_one_instant_keep_their_order_and_an_earlier_one_goes_in_front() -> None:
    made, earlier, first = queue(), job(), job()
    second = first._replace(attempt=replace(first.attempt, token="second"))
    for each in (first, second, earlier):
        made.put(each)
    assert [each.attempt for each in made.jobs] == [earlier.attempt, first.attempt, second.attempt]


def test_slots_in_flight_are_renewed_now_and_then() -> None:
    made = queue()
    assert made.ask(10 * RENEW_SECONDS) is None, "there is nothing to ask"
    made.held["flying"] = 0.0
    made.renewed_at = 100.0
    assert made.ask(100.0 + RENEW_SECONDS - 0.1) is None
    asked = made.ask(100.0 + RENEW_SECONDS)
    assert asked is not None
    assert (asked.held, asked.wanted, asked.slot_seconds) == (["flying"], [], SLOT_GRACE_SECONDS)
    assert made.next_at == 100.0 + 2 * RENEW_SECONDS
    assert made.ask(100.0 + RENEW_SECONDS) is None


def test_it_says_when_it_has_something_to_ask() -> None:
    made = queue(1)
    made.again_at = 100.0
    assert made.next_at == 100.0
    made.overdue = WaitReason.RATE
    assert made.next_at == 0.0
    ended = queue()
    ended.again_at, ended.ended, ended.renewed_at = 100.0, [END], 7.0
    assert ended.next_at == 100.0


def test_one_question_asks_for_a_bounded_number_of_slots_for_as_long_as_the_longest_request() -> None:
    made = queue(WANTED_AT_ONCE)
    made.jobs.appendleft(job(30.0))
    waiting = ids(made)
    asked = made.ask(0.0)
    assert asked is not None
    assert asked.wanted == waiting[:WANTED_AT_ONCE]
    assert asked.slot_seconds == 30.0 + SLOT_GRACE_SECONDS
    longer = queue(1, timeout_seconds=60.0).ask(0.0)
    assert longer is not None
    assert longer.slot_seconds == 60.0 + SLOT_GRACE_SECONDS


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({}, MOST_KEPT),
        ({"rate_per_second": 1.0, "burst": 1}, 1 + int(KEPT_SECONDS)),
        ({"rate_per_second": 10.0, "burst": 3}, 3 + int(10 * KEPT_SECONDS)),
        ({"rate_per_second": 10_000.0}, MOST_KEPT),
        # A request takes half a second, so in a second each of four slots takes two.
        ({"concurrency": 4}, 8 * int(KEPT_SECONDS) + 1),
    ],
)
def test_of_what_waits_as_many_stay_as_a_few_seconds_take_and_the_others_reserve_places(
    limits: dict[str, Any], kept: int
) -> None:
    whole = deque([job()] * (kept + 3))
    made = queue(**limits)
    made.jobs, made.took = whole, 0.5
    asked = made.ask(0.0)
    assert asked is not None
    assert asked.reserve == 3
    made.answered(0)
    for _ in range(3):
        made.jobs.pop()
    fitting = made.ask(0.0)
    assert fitting is not None
    assert fitting.reserve == 0


def test_where_the_wait_is_too_long_all_reserve_places_and_none_asks_for_room() -> None:
    made = queue(5)
    made.again_at, made.overdue = 100.0, WaitReason.BREAKER
    asked = made.ask(0.0)
    assert asked is not None
    assert (asked.wanted, asked.reserve) == ([], 5)


def test_what_other_workers_have_by_now_is_dropped() -> None:
    made = queue(WANTED_AT_ONCE + 10)
    made.looked_at = 100.0
    first, far = made.jobs[0], made.jobs[WANTED_AT_ONCE + 5]
    far.lease.settle([far.attempt.event.id])
    # All that waits is searched now and then only.
    assert made.drop_lost(100.0 + RENEW_SECONDS - 0.1) == []
    assert made.drop_lost(100.0 + RENEW_SECONDS) == [far.attempt.event.id]
    assert far not in made.jobs
    assert made.looked_at == 100.0 + RENEW_SECONDS
    first.lease.settle([first.attempt.event.id])
    assert made.drop_lost(100.0 + RENEW_SECONDS) == [first.attempt.event.id]
    assert (first in made.jobs, len(made.jobs)) == (False, WANTED_AT_ONCE + 8)
    assert made.drop_lost(1_000.0) == []


def test_of_more_ends_than_it_may_keep_the_last_ones_are_told() -> None:
    waiting = queue()
    for number in range(5):
        waiting.ended_with(FinishedRequest(f"e{number}", ReceiverAnswer.WELL, 200), most=3)
    assert [each.event_id for each in waiting.ended] == ["e2", "e3", "e4"]


def test_a_receiver_that_asks_for_fewer_requests_asks_for_itself_and_not_for_its_tenant() -> None:
    asks = FinishedRequest("e1", ReceiverAnswer.FAILED, 429, slow_down=True, retry_after=60.0)
    of_tenant, of_destination = DestinationQueue(DeliverySlots("acme", 1)), queue()
    for each in (of_tenant, of_destination):
        each.ended_with(asks, most=3)
    assert [each.ended[0].slow_down for each in (of_tenant, of_destination)] == [False, True]


def test_what_may_be_late_or_has_changed_is_let_go_and_the_rest_keeps_its_order() -> None:
    made = queue(5)
    late, edited, cancelled, *stay = made.jobs
    late = late._replace(attempt=replace(late.attempt, judged_again_at=NOON))
    other = replace(SCHEDULE, version=SCHEDULE.version + 1)
    edited = edited._replace(attempt=replace(edited.attempt, deliverable=other))
    made.jobs = deque([late, edited, cancelled, *stay])
    facts = ScheduleFacts(SCHEDULE.version, SCHEDULE.revision, SCHEDULE.state.value)
    event_id = cancelled.attempt.event.id
    present = Present({SCHEDULE.id: facts}, {}, {event_id: "asked"})
    again, withdrawn = made.let_go([present], NOON + timedelta(seconds=1))
    assert again == [edited, late]
    assert withdrawn == [Withdrawn(event_id, cancelled.lease, "asked")]
    assert list(made.jobs) == stay
    assert made.let_go([present], NOON + timedelta(seconds=1)) == ([], [])
    assert list(made.jobs) == stay


def test_what_gets_no_room_waits_again_in_front() -> None:
    made = queue(3)
    made.ask(0.0)
    first, *rest = made.asking
    made.put(job())
    (last,) = made.jobs
    assert made.answered(1) == [first]
    assert list(made.jobs) == [*rest, last]
    assert made.asking == []


def test_a_place_of_a_tenant_is_a_slot_and_one_at_a_destination_is_none() -> None:
    for asked, has_slot in ((DestinationQueue(DeliverySlots("acme", 1)), True), (queue(), False)):
        asked.put(job())
        asked.ask(0.0)
        assert [each.has_slot for each in asked.answered(1)] == [has_slot]


def test_how_long_a_request_takes_is_a_mean_in_which_the_last_ones_count_little() -> None:
    made = queue()
    for took, mean in ((None, 0.0), (2.0, 2.0), (None, 2.0), (3.0, 2.1), (1.1, 2.0)):
        made.held["e"] = 0.0
        made.ended_with(END._replace(took=took), most=3)
        assert made.took == pytest.approx(mean)
        assert made.held == {}


def test_before_the_first_answer_a_request_takes_as_long_as_the_oldest_has_waited() -> None:
    made = queue(concurrency=2)
    assert made.step(7.0) == 0.0
    made.held |= {"oldest": 3.0, "newest": 6.0}
    assert made.step(7.0) == 2.0
    made.took = 1.0
    assert made.step(7.0) == 0.5
    assert queue(rate_per_second=4.0).step(7.0) == 0.25


@pytest.mark.parametrize(("limits", "kept"), [({"concurrency": 4}, 8), ({"rate_per_second": 0.01}, 4)])
def test_however_slow_a_destination_is_a_few_may_wait_for_it(limits: dict[str, Any], kept: int) -> None:
    made = queue(kept + 1, **limits)
    made.took = 100.0
    asked = made.ask(0.0)
    assert asked is not None
    assert asked.reserve == 1
