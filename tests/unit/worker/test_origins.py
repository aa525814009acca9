"""Who comes next, who has enough, and who comes again later: with the time given."""

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from scheduler_app.domain.ids import tenant_of
from scheduler_app.worker.attempt import Attempt, Job
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.origins import (
    MAX_IN_FLIGHT,
    MAX_POSTPONED_SECONDS,
    MAX_YOUNG,
    MIN_KEPT,
    MIN_POSTPONED_SECONDS,
    MIN_RETURNS_A_SECOND,
    SATURATED_SECONDS,
    SHARES_OF_AN_ORIGIN,
    SHARES_OF_THE_REST,
    UNBLOCKED_AT_ONCE,
    WINDOW_SECONDS,
    YOUNG_SECONDS,
    Load,
    Origin,
    OriginQueues,
    Postponed,
    ReturnLine,
    _key,
    _level,
)
from tests.builders import event, schedule

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
#: Of a job's schedule the queues know the kind of action; its id is the event's.
SCHEDULE = schedule(NOON)
_seconds = itertools.count()


def job(origin: str = "http://a:80", schedule_id: str = "s1") -> Job:
    due = event(NOON + timedelta(seconds=next(_seconds)), schedule_id)
    lease = Lease("token", [due.id], asked_at=0, timeout_seconds=10)
    return Job(Attempt(due, SCHEDULE, "token", "w"), lease, origin)


def queues(concurrency: int = 4, max_events: int = 1_000) -> OriginQueues:
    return OriginQueues(concurrency={"http": concurrency}, max_events=max_events)


def start_all(waiting: OriginQueues, now: float) -> list[Job]:
    """Starts what may start; what is under way does not count as young any more."""
    started = []
    while (found := waiting.next(now)) is not None:
        waiting.started(found, now - 1)
        started.append(found)
    return started


def test_origins_take_turns_and_so_do_the_schedules_of_an_origin() -> None:
    waiting = queues(concurrency=100)
    for origin, schedule_id in (("http://a:80", "s1"), ("http://a:80", "s2"), ("http://b:80", "s3")):
        for _ in range(3):
            assert waiting.add(job(origin, schedule_id), 0.0, 0) is None
    order = [(each.origin, each.attempt.event.schedule_id) for each in start_all(waiting, 0.0)]
    assert order[:4] == [
        ("http://a:80", "s1"),
        ("http://b:80", "s3"),
        ("http://a:80", "s2"),
        ("http://b:80", "s3"),
    ]
    assert len(order) == 9


def test_an_origin_at_its_limit_holds_up_nobody_and_goes_on_when_a_request_ends() -> None:
    waiting = queues(concurrency=2)
    hanging = [job("http://a:80", f"s{number}") for number in range(5)]
    others = [job("http://b:80", f"t{number}") for number in range(2)]
    for each in hanging + others:
        waiting.add(each, 0.0, 0)
    started = start_all(waiting, 0.0)
    assert Counter(each.origin for each in started) == {"http://a:80": 2, "http://b:80": 2}
    assert not waiting.has_room_again, "only an answer of its receiver makes room"
    waiting.ended(started[0], 1.0)
    assert [each.origin for each in start_all(waiting, 1.0)] == ["http://a:80"]


def test_a_schedule_leaves_a_share_of_its_origin_to_the_others() -> None:
    waiting = queues(concurrency=8)
    for _ in range(20):
        waiting.add(job(schedule_id="greedy"), 0.0, 0)
    assert len(start_all(waiting, 0.0)) == 6
    waiting.add(job(schedule_id="modest"), 0.0, 0)
    assert [each.attempt.event.schedule_id for each in start_all(waiting, 0.0)] == ["modest"]


def test_however_many_origins_hang_there_is_room_for_the_next() -> None:
    waiting = queues(concurrency=MAX_IN_FLIGHT, max_events=100_000)
    for origin in range(200):
        for number in range(50):
            waiting.add(job(f"http://h{origin}:80", f"s{number}"), 0.0, 0)
    for second in range(20):
        start_all(waiting, float(second))
        waiting.unblock()
    assert waiting.in_flight <= MAX_IN_FLIGHT
    waiting.add(job("http://next:80"), 20.0, 0)
    assert "http://next:80" in {each.origin for each in start_all(waiting, 20.0)}


def test_a_burst_to_one_origin_is_started_in_steps() -> None:
    waiting = queues(concurrency=1_000)
    for number in range(100):
        waiting.add(job(schedule_id=f"s{number}"), 0.0, 0)
    young = []
    while (found := waiting.next(0.0)) is not None:
        waiting.started(found, 0.0)
        young.append(found)
    assert len(young) == 64
    waiting.ended(young[0], 0.01)
    assert waiting.next(0.01) is not None
    waiting.unblock()
    assert waiting.next(0.2) is not None, "the others are not young any more"


def saturated(waiting: OriginQueues, many: int) -> list[Job]:
    """Returns what was started."""
    for number in range(many):
        waiting.add(job(schedule_id=f"s{number}"), 0.0, 0)
    return start_all(waiting, 0.0)


def test_what_a_saturated_origin_cannot_take_soon_is_postponed() -> None:
    waiting = queues(concurrency=2)
    flying = saturated(waiting, 500)
    assert list(waiting.waiting_long(SATURATED_SECONDS)) == []
    assert waiting.review(SATURATED_SECONDS, 0) == []
    assert waiting.review(SATURATED_SECONDS, 1_000) == [], "a full worker is no reason by itself"
    waiting.add(elsewhere := job("http://b:80"), 0.0, 0)
    long = {each.attempt.event.id for each in waiting.waiting_long(SATURATED_SECONDS + 0.5)}
    assert (len(long), elsewhere.attempt.event.id in long) == (500 - 2, False)
    waiting.take_out(lambda each: each is elsewhere)
    postponed = waiting.review(SATURATED_SECONDS + 0.5, 0)
    assert (len(postponed), waiting.waiting) == (500 - 2 - MIN_KEPT, MIN_KEPT)
    again = waiting.add(job(), SATURATED_SECONDS + 0.6, 0)
    assert isinstance(again, Postponed)
    (load,) = waiting.loads(SATURATED_SECONDS + 0.6, most=1)
    assert (load.in_flight, load.waiting, load.postponed) == (2, MIN_KEPT, 500 - 2 - MIN_KEPT + 1)
    sent = set[str]()
    while flying:
        waiting.ended(flying.pop(), 10.0)
        started = start_all(waiting, 10.0)
        sent |= {each.attempt.event.id for each in started}
        flying += started
    assert len(sent) == MIN_KEPT
    assert sent.isdisjoint(each.job.attempt.event.id for each in postponed)


@pytest.mark.parametrize(
    ("lengths", "left"),
    [
        ((8, 1, 1, 1), (7, 1, 1, 1)),
        ((1, 9, 1, 4), (1, 4, 1, 4)),
        ((4, 1, 9), (4, 1, 5)),
        ((7, 6), (5, 5)),
        ((6, 6), (5, 5)),
        ((4, 4, 4), (3, 3, 4)),
        ((5, 5), (5, 5)),
        ((4, 5), (4, 5)),
    ],
)
def test_the_schedules_that_have_the_most_waiting_lose_their_latest_events_and_no_more_than_needed(
    lengths: tuple[int, ...], left: tuple[int, ...]
) -> None:
    waiting = queues(concurrency=1)
    waiting.add(hangs := job(schedule_id="hangs"), 0.0, 0)
    waiting.started(hangs, 0.0)
    waiting.take_out(lambda each: each is hangs)
    for place in range(max(lengths)):
        for number, length in enumerate(lengths):
            if place < length:
                waiting.add(job(schedule_id=f"s{number}"), 0.0, 0)
    assert start_all(waiting, 0.0) == []
    before = [list(each) for each in waiting._origins["http://a:80"].jobs.values()]
    postponed = [each.job for each in waiting.review(2.0, 0)]
    assert len(postponed) == sum(lengths) - sum(left)
    after = [list(each) for each in waiting._origins["http://a:80"].jobs.values()]
    assert after == [jobs[:count] for jobs, count in zip(before, left, strict=True)]
    due = [each.attempt.event.due_at for each in postponed]
    assert due == sorted(due)


def test_postponed_events_come_again_as_fast_as_their_origin_answers_and_in_order() -> None:
    waiting = queues(concurrency=2)
    saturated(waiting, 500)
    postponed = waiting.review(2.0, 0)
    by_second = Counter(int(2.0 + each.seconds) for each in postponed)
    assert set(by_second.values()) <= {MIN_RETURNS_A_SECOND, len(postponed) % MIN_RETURNS_A_SECOND}
    due = [each.job.attempt.event.due_at for each in postponed]
    assert due == sorted(due)
    assert [each.seconds for each in postponed] == sorted(each.seconds for each in postponed)


def test_many_origins_that_answer_nothing_share_the_returns_of_one() -> None:
    waiting = queues(concurrency=2)
    for number in range(2_500):
        waiting.add(job(f"http://h{number % 50}:80", f"s{number}"), 0.0, 0)
    start_all(waiting, 0.0)
    by_second = Counter(int(2.0 + each.seconds) for each in waiting.review(2.0, 0))
    assert max(by_second.values()) == 50


def test_a_full_worker_keeps_little_even_for_an_origin_that_answers() -> None:
    waiting = queues(concurrency=2, max_events=1_000)
    flying = saturated(waiting, 200)
    for tenth in range(20):
        waiting.ended(flying.pop(), tenth / 10)
        flying += start_all(waiting, tenth / 10)
    assert len(waiting.review(2.0, 990)) > 100
    assert waiting.waiting == 20


def test_an_origin_that_answers_quickly_keeps_a_long_queue() -> None:
    waiting = queues(concurrency=2, max_events=10_000)
    flying = saturated(waiting, 2_000)
    now = 0.0
    for _ in range(1_000):  # a thousand answers in two seconds
        now += 0.002
        waiting.ended(flying.pop(), now)
        flying += start_all(waiting, now)
    assert waiting.waiting > 900
    assert waiting.review(now, 0) == []


def test_a_hundred_thousand_postponed_events_come_again_within_the_bound_and_rarely() -> None:
    waiting = queues(concurrency=2)
    saturated(waiting, 100)
    waiting.review(2.0, 0)
    origin, one = waiting._origins["http://a:80"], job()
    delays = [waiting._postponed(origin, one, 2.0).seconds for _ in range(100_000)]
    assert max(delays) <= MAX_POSTPONED_SECONDS + 1
    assert max(Counter(int(each) for each in delays).values()) <= 60
    assert len(waiting._origins["http://a:80"].returns._by_minute) <= MAX_POSTPONED_SECONDS / 60 + 2


def test_an_idle_origin_is_forgotten() -> None:
    waiting = queues()
    for number in range(1_000):
        waiting.add(job(f"http://h{number}:80"), 0.0, 0)
    for each in start_all(waiting, 0.0):
        waiting.ended(each, 1.0)
    waiting.review(5.0, 0)
    assert len(waiting.loads(5.0, most=2_000)) == 1_000
    waiting.review(30.0, 0)
    assert waiting.loads(30.0, most=2_000) == []


def test_an_origin_is_not_forgotten_while_one_waits_or_is_in_flight_or_comes_again() -> None:
    waiting = queues(concurrency=1)

    def is_known() -> bool:
        waiting.review(now, 0)
        return bool(waiting.loads(now, most=1))

    now = 100.0
    waiting.add(job(), now, 0)
    assert is_known(), "one waits"
    (only,) = start_all(waiting, now)
    assert is_known(), "one is in flight"
    for number in range(MIN_KEPT + 1):
        waiting.add(job(schedule_id=f"s{number}"), now, 0)
    assert start_all(waiting, now) == []
    assert waiting.review(now, 0) == [], "it has only just come to its limit"
    now += 2.0
    (later,) = waiting.review(now, 0)
    waiting.ended(only, now)
    waiting.take_out(lambda _: True)
    now += WINDOW_SECONDS + 1
    assert is_known(), "one comes again"
    now += later.seconds + 60
    assert not is_known()


def test_a_worker_that_ends_gets_back_all_that_waits() -> None:
    waiting = queues(concurrency=1)
    for number in range(10):
        waiting.add(job(f"http://h{number % 2}:80", f"s{number}"), 0.0, 0)
    started = start_all(waiting, 0.0)
    assert len(list(waiting.drain())) == 10 - len(started)
    assert (waiting.waiting, waiting.next(1.0)) == (0, None)


def load_of(waiting: OriginQueues, now: float) -> Load:
    (found,) = waiting.loads(now, most=10)
    return found


def test_an_origin_has_been_at_its_limit_since_its_last_one_had_to_wait() -> None:
    waiting = queues(concurrency=1)
    for _ in range(2):
        waiting.add(job(), 0.0, 0)
    (first,) = start_all(waiting, 0.0)
    assert load_of(waiting, 3.0) == ("http://a:80", 1, 1, 1, 0, 3.0)
    waiting.ended(first, 4.0)
    (second,) = start_all(waiting, 4.0)
    assert load_of(waiting, 5.0) == ("http://a:80", 1, 1, 0, 0, 0.0), "none waits"
    waiting.add(job(), 6.0, 0)
    assert start_all(waiting, 6.0) == []
    assert load_of(waiting, 6.5).full_seconds == 0.5
    assert start_all(waiting, 7.0) == []
    waiting.unblock()
    assert start_all(waiting, 8.0) == []
    assert load_of(waiting, 8.0).full_seconds == 2.0, "it has waited all the time"
    waiting.ended(second, 9.0)
    assert len(start_all(waiting, 9.0)) == 1


def test_what_is_drained_waits_no_longer_and_what_comes_later_starts() -> None:
    waiting = queues(concurrency=1)
    for origin in ("http://a:80", "http://a:80", "http://b:80"):
        waiting.add(job(origin), 0.0, 0)
    started = start_all(waiting, 0.0)
    assert len(started) == 2
    waiting.add(job("http://c:80"), 0.0, 0)
    drained = [each.origin for each in waiting.drain()]
    assert sorted(drained) == ["http://a:80", "http://c:80"]
    assert (waiting.waiting, waiting.in_flight) == (0, 2)
    assert list(waiting.drain()) == []
    assert waiting.next(0.0) is None
    assert {load.full_seconds for load in waiting.loads(9.0, most=10)} == {0.0}
    for each in started:
        waiting.ended(each, 9.0)
    waiting.add(job("http://a:80"), 9.0, 0)
    assert [each.origin for each in start_all(waiting, 9.0)] == ["http://a:80"]


def test_after_a_drain_nothing_is_out_of_turn_any_more() -> None:
    """A worker that ends would look again and again for those."""
    waiting = queues(concurrency=MAX_IN_FLIGHT)
    for number in range(3 * MAX_YOUNG):
        waiting.add(job("http://burst:80", f"s{number}"), 0.0, 0)
    while (found := waiting.next(0.0)) is not None:
        waiting.started(found, 0.0)
    assert waiting.is_pacing
    for number in range(MAX_IN_FLIGHT // 4):
        waiting.started(others := job(f"http://{number}:80", "globex:s"), -1.0)
    for number in range(MAX_IN_FLIGHT):
        waiting.add(job(f"http://{number}:80", f"acme:s{number}"), 0.0, 0)
        waiting.add(job("http://a:80", f"globex:s{number}"), 0.0, 0)
    flying = start_all(waiting, 0.0)
    acme, a = waiting._tenants["acme"], waiting._origins["http://a:80 (globex)"]
    assert acme.blocked
    assert a.blocked
    assert len(list(waiting.drain())) == waiting.waiting + 2 * MAX_YOUNG + 2 * MAX_IN_FLIGHT - len(flying)
    assert not waiting.is_pacing
    for each in (*flying, others):
        waiting.ended(each, 1.0)
    assert not waiting.has_room_again
    assert {(each.waiting, each.blocked, len(each.turns)) for each in waiting._tenants.values()} == {
        (0, False, 0)
    }
    assert {(each.waiting, each.blocked, len(each.jobs)) for each in waiting._origins.values()} == {
        (0, False, 0)
    }


def test_where_all_places_are_taken_nothing_starts_not_even_at_an_origin_with_nothing_in_flight() -> None:
    waiting, jobs = queues(), [job(f"http://{number}:80") for number in range(MAX_IN_FLIGHT)]
    for each in jobs:
        waiting.started(each, -1.0)
    waiting.add(job("http://next:80"), 0.0, 0)
    assert waiting.next(0.0) is None
    assert not waiting.can_start(job("http://other:80"), 0.0)
    waiting.ended(jobs[0], 1.0)
    assert waiting.can_start(job("http://other:80"), 1.0)
    assert [each.origin for each in start_all(waiting, 1.0)] == ["http://next:80"]


def test_an_origin_is_at_its_limit_from_the_first_look_after_the_limit_has_moved() -> None:
    """Its schedule has its share, so that its own requests do not bring it to its limit."""
    waiting = queues(concurrency=8)
    for _ in range(7):
        waiting.add(job(), 0.0, 0)
    assert len(start_all(waiting, 0.0)) == 6
    waiting.review(10.0, 0)
    assert waiting.loads(20.0, most=1)[0].full_seconds == 0.0
    for number in range(MAX_IN_FLIGHT - 6 - 6 * SHARES_OF_THE_REST):
        waiting.started(job(f"http://{number}:80"), -1.0)
    waiting.review(30.0, 0)
    waiting.review(40.0, 0)
    assert (waiting.loads(50.0, most=1)[0].limit, waiting.loads(50.0, most=1)[0].full_seconds) == (6, 20.0)


def test_the_largest_limit_of_a_kind_says_from_when_on_places_are_shared() -> None:
    waiting = OriginQueues(concurrency={"command": 4, "http": 200}, max_events=1_000)
    for number in range(MAX_IN_FLIGHT // 2):
        waiting.started(job(f"http://{number}:80"), -1.0)
    assert {each.limit for each in waiting.loads(0.0, most=9)} == {MAX_IN_FLIGHT // 2 // SHARES_OF_THE_REST}


def test_a_job_that_does_not_wait_can_start_where_its_origin_has_room() -> None:
    waiting = queues(concurrency=2)
    assert waiting.can_start(job(), 0.0), "an origin of which nothing is known"
    one, two = job(), job()
    waiting.started(one, 0.0)
    assert waiting.can_start(job(), 0.0)
    waiting.started(two, 0.0)
    assert not waiting.can_start(job(), 0.0)
    assert waiting.can_start(job("http://b:80"), 0.0)
    waiting.ended(one, 1.0)
    assert waiting.can_start(job(), 1.0)
    assert waiting.in_flight == 1


def test_a_burst_starts_so_many_at_once_and_goes_on_when_these_grow_old() -> None:
    waiting = queues(concurrency=10 * MAX_YOUNG)
    for number in range(3 * MAX_YOUNG):
        waiting.add(job(schedule_id=f"s{number}"), 0.0, 0)

    def start(now: float) -> int:
        waiting.unblock()
        count = 0
        while (found := waiting.next(now)) is not None:
            waiting.started(found, now)
            count += 1
        return count

    assert start(100.0) == MAX_YOUNG
    assert not waiting.can_start(job(), 100.0)
    assert start(100.0 + YOUNG_SECONDS / 2) == 0
    assert load_of(waiting, 100.0).full_seconds == 0.0, "its receiver keeps it from nothing"
    assert start(100.0 + 2 * YOUNG_SECONDS) == MAX_YOUNG
    assert waiting.is_pacing
    assert start(100.0 + 4 * YOUNG_SECONDS) == MAX_YOUNG
    assert waiting.waiting == 0
    waiting.unblock()
    assert not waiting.is_pacing


def test_of_a_burst_as_many_go_on_as_have_grown_old() -> None:
    waiting = queues(concurrency=10 * MAX_YOUNG)
    for number in range(MAX_YOUNG):
        waiting.started(job(), 0.0 if number < 10 else YOUNG_SECONDS / 2)
        waiting.add(job(schedule_id=f"s{number}"), 0.0, 0)
    assert waiting.next(YOUNG_SECONDS) is None, "they are as old as they may be, and not older"
    waiting.unblock()
    count = 0
    while (found := waiting.next(1.2 * YOUNG_SECONDS)) is not None:
        waiting.started(found, 1.2 * YOUNG_SECONDS)
        count += 1
    assert count == 10


def test_the_origins_that_hold_up_the_most_are_shown_first() -> None:
    waiting = queues(concurrency=2)
    for origin, count in (("http://a:80", 1), ("http://b:80", 5), ("http://c:80", 2), ("http://d:80", 3)):
        for _ in range(count):
            waiting.add(job(origin), 0.0, 0)
    start_all(waiting, 0.0)
    shown = waiting.loads(0.0, most=3)
    assert [(load.origin, load.in_flight, load.waiting) for load in shown] == [
        ("http://b:80", 2, 3),
        ("http://d:80", 2, 1),
        ("http://c:80", 2, 0),
    ]


def test_places_in_the_line_of_those_that_come_again_are_seconds_with_so_many_in_each() -> None:
    line = ReturnLine()
    first = MIN_POSTPONED_SECONDS
    assert [line.place(600.0, 2) for _ in range(5)] == [first, first, first + 1, first + 1, first + 2]
    assert line.coming(600.0) == 5
    assert line.place(600.0 + 30, 2) == first, "the line has been empty since"
    assert line.coming(659.0) == 6
    assert line.coming(660.0) == 0


def test_a_line_that_is_too_long_begins_anew_in_its_middle() -> None:
    line = ReturnLine()
    places = [line.place(600.0, 1) for _ in range(MAX_POSTPONED_SECONDS + 10)]
    assert max(places) == MAX_POSTPONED_SECONDS
    behind = places[places.index(MAX_POSTPONED_SECONDS) + 1]
    assert behind == MAX_POSTPONED_SECONDS // 2
    by_two = ReturnLine()
    places = [by_two.place(600.0, 2) for _ in range(2 * MAX_POSTPONED_SECONDS + 10)]
    middle = MAX_POSTPONED_SECONDS // 2
    assert places[places.index(MAX_POSTPONED_SECONDS) + 2 :][:3] == [middle, middle, middle + 1]


@pytest.mark.parametrize(
    ("lengths", "excess", "level"),
    [
        ([5], 2, 3),
        ([5, 3], 2, 3),
        ([5, 3], 3, 2),
        ([5, 3], 4, 2),
        ([5, 3], 8, 0),
        ([5, 3], 9, 0),
        ([4, 4, 1], 3, 2),
    ],
)
def test_the_longest_queues_are_cut_to_one_level(lengths: list[int], excess: int, level: int) -> None:
    assert _level(lengths, excess) == level


def test_the_limit_of_an_origin_is_a_share_of_what_is_left_in_all() -> None:
    waiting = queues(concurrency=1_000)
    assert waiting.add(job(), 0.0, 0) is None
    assert load_of(waiting, 0.0).limit == MAX_IN_FLIGHT // SHARES_OF_THE_REST
    for number in range(400):
        waiting.started(job(schedule_id=f"s{number}"), -1.0)
    assert load_of(waiting, 0.0).limit == (MAX_IN_FLIGHT - 400) // SHARES_OF_THE_REST
    few = queues(concurrency=10)
    for number in range(400):
        few.started(job(f"http://h{number}:80"), -1.0)
    assert {load.limit for load in few.loads(0.0, most=400)} == {10}


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each origin was asked for the job that is to start next."""
    counts: Counter[str] = Counter()
    look = OriginQueues._next_of

    def counted(self: OriginQueues, origin: Origin, now: float) -> Job | None:
        counts[origin.name] += 1
        return look(self, origin, now)

    monkeypatch.setattr(OriginQueues, "_next_of", counted)
    return counts


def test_a_request_that_ends_costs_a_look_at_those_that_may_start_and_at_none_of_a_thousand_others(
    looks: Counter[str],
) -> None:
    waiting, now = queues(concurrency=MAX_IN_FLIGHT, max_events=100_000), 0.0
    for number in range(3_000):
        waiting.add(job(f"http://h{number % 1_000}:80", f"s{number}"), now, 0)
    flying = []
    while started := start_all(waiting, now):
        flying += started
        now += 1.0
        waiting.unblock()
    assert waiting.in_flight > MAX_IN_FLIGHT - 2 * SHARES_OF_THE_REST, "each origin has one place, or two"
    assert not waiting.has_room_again
    looks.clear()
    for _ in range(50):
        waiting.unblock()
        assert start_all(waiting, now) == []
    assert not looks, "nothing has happened"
    for each in flying[:50]:
        waiting.ended(each, now)
        waiting.unblock()
        assert len(start_all(waiting, now)) == 1
    assert looks.total() <= 50 * 4
    assert max(looks.values()) <= 4


def test_what_cannot_start_costs_no_look_when_it_comes(looks: Counter[str]) -> None:
    waiting = queues(concurrency=8)
    for _ in range(7):
        waiting.add(job(schedule_id="greedy"), 0.0, 0)
    assert len(start_all(waiting, 0.0)) == 6
    looks.clear()
    waiting.add(job(schedule_id="greedy"), 0.0, 0)
    assert start_all(waiting, 0.0) == []
    assert not looks, "its schedule has its share"
    for number in range(3):
        waiting.add(job(schedule_id=f"s{number}"), 0.0, 0)
    assert len(start_all(waiting, 0.0)) == 2
    looks.clear()
    waiting.add(job(schedule_id="next"), 0.0, 0)
    assert start_all(waiting, 0.0) == []
    assert not looks, "its origin is at its limit"


def test_one_turn_gives_no_more_their_turn_again_than_a_courier_starts_in_a_few(
    looks: Counter[str],
) -> None:
    waiting = queues(concurrency=MAX_IN_FLIGHT, max_events=100_000)
    hanging = [job("http://hangs:80", f"s{number}") for number in range(MAX_IN_FLIGHT - SHARES_OF_THE_REST)]
    for each in hanging[:-100]:
        waiting.started(each, -1.0)
    for number in range(400):
        waiting.add(job(f"http://h{number % 100}:80", f"s{number}"), 0.0, 0)
    while start_all(waiting, 0.0):
        waiting.unblock()
    assert waiting.waiting > 100
    for each in hanging[:-100]:
        waiting.ended(each, 1.0)
    looks.clear()
    waiting.unblock()
    assert waiting.has_room_again
    assert len(start_all(waiting, 1.0)) >= UNBLOCKED_AT_ONCE
    assert len(looks) == UNBLOCKED_AT_ONCE
    while waiting.has_room_again:
        waiting.unblock()
        start_all(waiting, 1.0)
    assert waiting.waiting == 0


def has_room(waiting: OriginQueues, origin: Origin) -> bool:
    """Whether a job that waits for this origin could start, by the rules alone and but for its pace."""
    left = MAX_IN_FLIGHT - waiting.in_flight
    limit = max(1, min(origin.concurrency, left // SHARES_OF_THE_REST))
    if not left or origin.in_flight >= limit or (waiting._has_tenants and origin.tenant.in_flight >= left):
        return False
    return any(origin.flying.get(each, 0) < limit - limit // SHARES_OF_AN_ORIGIN for each in origin.jobs)


def assert_may_start(job: Job, waiting: OriginQueues) -> None:
    """A job that comes next keeps its origin, its schedule and its tenant within their shares."""
    left = MAX_IN_FLIGHT - waiting.in_flight
    assert left
    (origin,) = (each for each in waiting._origins.values() if each.name == _key(job))
    limit = max(1, min(origin.concurrency, left // SHARES_OF_THE_REST))
    assert origin.in_flight < limit
    share = limit - limit // SHARES_OF_AN_ORIGIN
    assert origin.flying.get(job.attempt.event.schedule_id, 0) < share
    assert len(origin.young) < MAX_YOUNG
    assert not waiting._has_tenants or origin.tenant.in_flight < left


def is_of(schedule_id: str, job: Job) -> bool:
    return job.attempt.event.schedule_id.endswith(schedule_id)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("tenants", [("",), ("", "acme:", "globex:")], ids=["", "tenants"])
def test_after_each_turn_nothing_waits_that_may_start(
    seed: int, tenants: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where fewer places are shared, limits move with each request."""
    monkeypatch.setattr("scheduler_app.worker.origins.MAX_IN_FLIGHT", most := 60)
    monkeypatch.setitem(globals(), "MAX_IN_FLIGHT", most)
    for name in ("scheduler_app.worker.origins.MAX_YOUNG", f"{__name__}.MAX_YOUNG"):
        monkeypatch.setattr(name, 5)
    drawn, now, flying = random.Random(seed), 100.0, list[Job]()
    waiting = queues(concurrency=drawn.choice((2, 6, 40)), max_events=100_000)
    for _ in range(400):
        now += drawn.choice((0.0, 0.001, YOUNG_SECONDS))
        for _ in range(drawn.choice((0, 0, 1, 10))):
            name, schedule_id = f"http://h{drawn.randrange(12)}:80", f"s{drawn.randrange(3)}"
            waiting.add(job(name, drawn.choice(tenants) + schedule_id), now, 0)
        for _ in range(min(len(flying), drawn.choice((0, 1, 1, 8)))):
            waiting.ended(flying.pop(drawn.randrange(len(flying))), now)
        if not drawn.randrange(20):
            gone = f"s{drawn.randrange(3)}"
            waiting.take_out(partial(is_of, gone))
        if not drawn.randrange(20):
            waiting.review(now, 0)
        goes_on = True
        while goes_on:
            waiting.unblock()
            while (found := waiting.next(now)) is not None:
                assert_may_start(found, waiting)
                waiting.started(found, now)
                flying.append(found)
            goes_on = waiting.has_room_again
        for origin in waiting._origins.values():
            if has_room(waiting, origin):
                young = [at for at in origin.young.values() if at >= now - YOUNG_SECONDS]
                assert len(young) == MAX_YOUNG
                assert waiting.is_pacing, "the courier would not look again soon"
    assert waiting.in_flight == len(flying)
    origins, of_tenants = (
        waiting._origins.values(),
        Counter(tenant_of(each.attempt.event.id) for each in flying),
    )
    schedules = Counter((each.origin, each.attempt.event.schedule_id) for each in flying)
    found_schedules = {
        (origin.name.partition(" ")[0], schedule_id): count
        for origin in origins
        for schedule_id, count in origin.flying.items()
    }
    assert found_schedules == schedules
    assert sum(origin.in_flight for origin in origins) == len(flying)
    assert all(origin.in_flight == sum(origin.flying.values()) for origin in origins)
    assert {name: each.in_flight for name, each in waiting._tenants.items() if each.in_flight} == of_tenants
    assert (
        waiting.waiting
        == sum(origin.waiting for origin in origins)
        == sum(len(queue) for origin in origins for queue in origin.jobs.values())
    )


def test_what_is_taken_out_is_taken_from_every_origin_and_the_rest_starts() -> None:
    waiting = queues(concurrency=100)
    jobs = [job(origin, schedule) for origin in ("http://a:80", "http://b:80") for schedule in ("s1", "s2")]
    for each in jobs:
        waiting.add(each, 0.0, 0)
    _, second, _, fourth = jobs
    last = [each for each in jobs if each.origin == "http://b:80"]
    assert waiting.take_out(lambda each: each is fourth) == [fourth]
    assert waiting.waiting == 3
    assert waiting.take_out(lambda each: each.attempt.event.schedule_id == "s2") == [second]
    assert waiting.take_out(lambda each: each in (second, fourth)) == []
    more = [job("http://a:80", "s1") for _ in range(2)]
    for each in more:
        waiting.add(each, 0.0, 0)
    assert waiting.take_out(lambda each: each is more[0]) == [more[0]]
    assert start_all(waiting, 0.0) == [jobs[0], last[0], more[1]]
    assert waiting.waiting == 0


def test_an_origin_of_which_all_is_taken_out_gives_up_its_turn_and_is_not_at_its_limit_any_more() -> None:
    waiting = queues(concurrency=100)
    for origin in ("http://a:80", "http://b:80"):
        waiting.add(job(origin), 0.0, 0)
    assert len(waiting.take_out(lambda each: each.origin == "http://a:80")) == 1
    for origin in ("http://a:80", "http://a:80", "http://a:80", "http://b:80", "http://b:80"):
        waiting.add(job(origin), 0.0, 0)
    order = [each.origin[7] for each in start_all(waiting, 0.0)]
    assert order == ["b", "a", "b", "a", "b", "a"]
    full = queues(concurrency=1)
    for _ in range(2):
        full.add(job(), 0.0, 0)
    assert len(start_all(full, 0.0)) == 1
    assert load_of(full, 3.0).full_seconds == 3.0
    full.take_out(lambda _: True)
    assert load_of(full, 4.0).full_seconds == 0.0


def tenant_and_origin(job: Job) -> tuple[str, str]:
    return tenant_of(job.attempt.event.id), job.origin


def test_tenants_take_turns_and_so_do_the_origins_of_a_tenant() -> None:
    waiting = queues(concurrency=100)
    for origin in ("http://a:80", "http://b:80"):
        for _ in range(2):
            assert waiting.add(job(origin, "acme:s"), 0.0, 0) is None
    for _ in range(2):
        assert waiting.add(job("http://a:80", "globex:s"), 0.0, 0) is None
    order = [tenant_and_origin(each) for each in start_all(waiting, 0.0)]
    assert order == [
        ("acme", "http://a:80"),
        ("globex", "http://a:80"),
        ("acme", "http://b:80"),
        ("globex", "http://a:80"),
        ("acme", "http://a:80"),
        ("acme", "http://b:80"),
    ]
    assert waiting.waiting == 0


def test_one_receiver_of_two_tenants_is_an_origin_for_each() -> None:
    waiting = queues(concurrency=4)
    for _ in range(9):
        assert waiting.add(job(schedule_id="acme:s1"), 0.0, 0) is None
        assert waiting.add(job(schedule_id="acme:s2"), 0.0, 0) is None
    assert len(start_all(waiting, 0.0)) == 4
    assert waiting.add(job(schedule_id="globex:s"), 0.0, 0) is None
    assert [tenant_and_origin(each) for each in start_all(waiting, 0.0)] == [("globex", "http://a:80")]
    shown = {load.origin: load.in_flight for load in waiting.loads(0.0, most=9)}
    assert shown == {"http://a:80 (acme)": 4, "http://a:80 (globex)": 1}


def test_however_many_origins_of_a_tenant_hang_there_is_room_for_the_next_tenant() -> None:
    waiting = queues(concurrency=4)

    def hang(tenant: str, count: int) -> int:
        for number in range(count):
            waiting.add(job(f"http://{number}:80", f"{tenant}:s{number}"), 0.0, 0)
        return len(start_all(waiting, 0.0))

    assert hang("acme", 2 * MAX_IN_FLIGHT) == MAX_IN_FLIGHT // 2
    assert hang("globex", 2 * MAX_IN_FLIGHT) == MAX_IN_FLIGHT // 4
    assert hang("third", 1) == 1


def test_one_round_gives_each_tenant_its_turn_again_that_has_room() -> None:
    waiting = queues(concurrency=4)
    ends = [job(f"http://{number}:80") for number in range(MAX_IN_FLIGHT // 2)]
    for each in ends:
        waiting.started(each, -1.0)
    for tenant in ("acme", "globex", "third"):
        for number in range(MAX_IN_FLIGHT // 2):
            waiting.add(job(f"http://{number}:80", f"{tenant}:s"), 0.0, 0)
        start_all(waiting, 0.0)

    def blocked() -> list[str]:
        return [each.name for each in waiting._tenants.values() if each.blocked]

    assert blocked() == ["acme", "globex", "third"]
    for each in ends:
        waiting.ended(each, 1.0)
    waiting.unblock()
    assert blocked() == []


def test_the_look_for_the_next_one_goes_on_behind_a_tenant_that_has_its_share() -> None:
    waiting = queues(concurrency=4)
    for number in range(MAX_IN_FLIGHT):
        waiting.add(job(f"http://{number}:80", f"acme:s{number}"), 0.0, 0)
    for _ in range(MAX_IN_FLIGHT // 2):
        found = waiting.next(0.0)
        assert found is not None
        waiting.started(found, -1.0)
    waiting.add(job(schedule_id="globex:s"), 0.0, 0)
    found = waiting.next(0.0)
    assert found is not None
    assert tenant_and_origin(found) == ("globex", "http://a:80")


def test_a_worker_that_knows_no_tenants_gives_the_default_one_all_it_has() -> None:
    waiting = queues(concurrency=4)
    for number in range(2 * MAX_IN_FLIGHT):
        waiting.add(job(f"http://{number}:80"), 0.0, 0)
    assert len(start_all(waiting, 0.0)) == MAX_IN_FLIGHT


def test_what_a_tenant_with_its_share_cannot_send_soon_is_postponed_and_goes_on_when_it_has_room() -> None:
    waiting, kept = queues(concurrency=4, max_events=MAX_IN_FLIGHT), 0
    jobs = [job(f"http://{number}:80", f"acme:s{number}") for number in range(MAX_IN_FLIGHT)]
    for each in jobs[: MAX_IN_FLIGHT // 2]:
        assert waiting.add(each, 0.0, 0) is None
    started = start_all(waiting, 0.0)
    assert len(started) == MAX_IN_FLIGHT // 2
    for each in jobs[MAX_IN_FLIGHT // 2 :]:
        late = waiting.add(each, 0.0, MAX_IN_FLIGHT)
        kept += late is None
    assert kept == MIN_KEPT
    assert late is not None
    assert (late.full, late.in_flight, late.waiting) == ("the tenant acme", MAX_IN_FLIGHT // 2, MIN_KEPT)
    assert waiting.next(0.0) is None
    waiting.ended(started[0], 1.0)
    waiting.unblock()
    assert len(start_all(waiting, 1.0)) == 1


def test_tenants_are_forgotten_with_their_last_origin_and_what_is_taken_out_is_out_of_turn() -> None:
    waiting = queues()
    for tenant in ("acme", "globex"):
        assert waiting.add(job(schedule_id=f"{tenant}:s"), 0.0, 0) is None
    taken = waiting.take_out(lambda each: tenant_and_origin(each)[0] == "acme")
    assert len(taken) == 1
    started = start_all(waiting, 0.0)
    assert [tenant_and_origin(each)[0] for each in started] == ["globex"]
    waiting.ended(started[0], 0.0)
    waiting.review(1_000.0, 0)
    assert waiting._tenants == {}
