"""Claimed batches that wait for their time: which comes next, and what is taken out of them."""

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from pymongo.errors import AutoReconnect

from scheduler_app.domain.destination import Destination
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.lateness import Lateness
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.domain.states import SUSPECT_AFTER, Kind
from scheduler_app.store.destinations import CorruptDestination
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.usecases.duties.dispatch_selection import EVENTS_OF_A_BUSY_ORIGIN
from scheduler_app.worker import batch as waiting_batches
from scheduler_app.worker.batch import (
    OBEYED_AHEAD,
    READ_AHEAD,
    READ_AHEAD_OF_MANY,
    ClaimedBatch,
    ReadBatch,
    StoreRetry,
    WaitingBatches,
    is_withdrawn,
)
from scheduler_app.worker.capacity import WorkerStopping
from scheduler_app.worker.lease import Lease
from tests.builders import event, message, schedule
from tests.processes import wait_until

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def batch(*seconds: float) -> ClaimedBatch:
    """Events that are due so many seconds after noon."""
    events = [event(NOON + timedelta(seconds=each)) for each in seconds]
    return ClaimedBatch(events, Lease("token", [each.id for each in events], asked_at=0, timeout_seconds=10))


def test_batches_come_in_the_order_of_their_first_events_however_they_were_put() -> None:
    waiting = WaitingBatches(now=lambda: NOON + timedelta(hours=1))
    late, early, middle = batch(30), batch(1, 40), batch(20)
    for each in (late, early, middle):
        waiting.put(each)
    assert [waiting.next() for _ in range(3)] == [early, middle, late]


@pytest.mark.parametrize(
    ("seconds", "count"),
    [
        ((0,), 1),
        ((0, 5, 6), 1),
        ((0, 0.1, 5), 2),
        ((0, OBEYED_AHEAD.total_seconds(), 5), 2),
        ((0, 0.1), 2),
    ],
)
def test_of_a_batch_only_what_is_due_soon_may_be_read_and_the_rest_waits_on(
    seconds: tuple[float, ...], count: int
) -> None:
    at = [NOON]
    waiting, made = WaitingBatches(now=lambda: at[0]), batch(*seconds)
    waiting.put(made)
    assert waiting.next() == made._replace(events=made.events[:count])
    at[0] = NOON + timedelta(hours=1)
    rest = made.events[count:]
    assert [waiting.next() for _ in waiting._waiting] == ([made._replace(events=rest)] if rest else [])


def test_a_batch_that_is_given_back_is_given_back_whole() -> None:
    waiting, made = WaitingBatches(now=lambda: NOON), batch(0, 30)
    waiting.put(made)
    waiting.give_back()
    assert waiting.next() == made


def test_events_that_are_taken_out_come_with_their_leases_and_the_others_wait_on_in_their_order() -> None:
    waiting = WaitingBatches(now=lambda: NOON + timedelta(hours=1))
    emptied, parted, whole = batch(1), batch(2, 3), batch(4)
    for each in (whole, parted, emptied):
        waiting.put(each)
    taken = [(emptied.events[0], emptied.lease), (parted.events[0], parted.lease)]
    found = waiting.take_out({made.id for made, _ in taken})
    assert sorted(found, key=lambda pair: pair[0].due_at) == taken
    assert waiting.next() == parted._replace(events=[parted.events[1]])
    assert waiting.next() == whole
    assert waiting.take_out({made.id for made, _ in taken}) == []


def test_a_batch_comes_shortly_before_its_time_and_once_it_is_read_at_its_time() -> None:
    assert READ_AHEAD < OBEYED_AHEAD
    made, at = batch(1), [NOON]
    waiting, read = WaitingBatches(now=lambda: at[0]), ReadBatch(made, {}, {})
    waiting.put(made)
    for expected, instant in ((made, made.events[0].due_at - READ_AHEAD), (read, made.events[0].due_at)):
        at[0] = instant - timedelta(milliseconds=1)
        assert waiting._seconds_to_next() == pytest.approx(0.001)
        assert not waiting._is_due()
        at[0] = instant
        assert waiting.next() == expected
        waiting.put_read(read)


@pytest.mark.parametrize(
    ("count", "ahead"),
    [(EVENTS_OF_A_BUSY_ORIGIN - 1, READ_AHEAD), (EVENTS_OF_A_BUSY_ORIGIN, READ_AHEAD_OF_MANY)],
)
def test_a_batch_of_many_events_comes_earlier(count: int, ahead: timedelta) -> None:
    at = [NOON]
    waiting, made = WaitingBatches(now=lambda: at[0]), batch(*[1] * count)
    waiting.put(made)
    at[0] = made.events[0].due_at - ahead - timedelta(milliseconds=1)
    assert not waiting._is_due()
    at[0] += timedelta(milliseconds=1)
    assert waiting._is_due()


def test_events_are_taken_out_of_batches_that_are_read_already() -> None:
    waiting, made = WaitingBatches(now=lambda: NOON + timedelta(hours=1)), batch(1, 2)
    waiting.put_read(ReadBatch(made, {}, {}))
    first, second = made.events
    assert waiting.take_out({first.id}) == [(first, made.lease)]
    assert waiting.next() == ReadBatch(made._replace(events=[second]), {}, {})


def test_what_asks_for_more_than_what_was_read_is_judged_when_it_is_due() -> None:
    made, plain = batch(1), schedule(NOON)

    def waits(batch: ClaimedBatch, **fields: Any) -> bool:
        return ReadBatch(batch, {"s1": replace(plain, **fields)}, {}).is_judged_when_due()

    assert not waits(made)
    assert waits(made, run_overlap="skip")
    assert waits(made, lateness=Lateness(expire_after_seconds=60))
    suspect = made.events[0]._replace(lost_leases=SUSPECT_AFTER)
    assert waits(made._replace(events=[suspect]))


def test_one_of_many_that_are_judged_when_due_is_enough() -> None:
    made, plain = batch(1, 2), schedule(NOON)
    judged = replace(plain, run_overlap="skip")
    assert ReadBatch(made, {"s1": plain, "s2": judged}, {}).is_judged_when_due()
    corrupt = CorruptSchedule("s2", "bent")
    assert not ReadBatch(made, {"s1": plain, "s2": corrupt}, {}).is_judged_when_due()
    first, second = made.events
    suspect = second._replace(lost_leases=SUSPECT_AFTER)
    assert ReadBatch(made._replace(events=[first, suspect]), {"s1": plain}, {}).is_judged_when_due()
    own_id = WholeId("d")
    free = Destination(id=own_id, url="http://x/", created_at=NOON, updated_at=NOON)
    limited = replace(free, concurrency=1)
    bent = CorruptDestination(own_id, "bent")
    assert not ReadBatch(made, {"s1": plain}, {"d": free, "bent": bent}).is_judged_when_due()
    assert ReadBatch(made, {"s1": plain}, {"d": free, "e": limited}).is_judged_when_due()


def test_a_message_is_judged_when_it_is_due_where_it_may_be_late() -> None:
    made = batch(1)
    plain, expiring = message(NOON), message(NOON, expire_after_seconds=60)
    assert not ReadBatch(made._replace(events=[plain]), {}, {}).is_judged_when_due()
    assert ReadBatch(made._replace(events=[plain, expiring]), {}, {}).is_judged_when_due()


@pytest.mark.parametrize("kind", [Kind.SCHEDULED, Kind.MANUAL])
def test_what_an_earlier_schedule_of_the_same_name_made_is_withdrawn(kind: Kind) -> None:
    made = replace(schedule(NOON - timedelta(days=1)), first_revision=2, revision=2)
    assert is_withdrawn(event(NOON, kind=kind, revision=1), made)
    assert not is_withdrawn(event(NOON, kind=kind, revision=2), made)


def test_what_a_lost_worker_may_have_sent_is_withdrawn_by_a_pause_before_it() -> None:
    paused = replace(schedule(NOON), state=ScheduleState.PAUSED, revised_at=NOON)
    assert not is_withdrawn(event(NOON, lost_leases=1), paused)
    assert is_withdrawn(event(NOON + timedelta(seconds=1), lost_leases=1), paused)


def taking(waiting: WaitingBatches, count: int) -> tuple[list[threading.Thread], list[Any]]:
    """Threads that each take one batch: the first waits for its time, the others for their turn."""
    taken: list[Any] = []
    threads = [
        threading.Thread(target=lambda: taken.append(waiting.next()), daemon=True) for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    wait_until(
        lambda: (len(waiting._changed._waiters), len(waiting._turn._waiters)) == (1, count - 1),  # type: ignore[attr-defined]
        "one to wait for the next batch, and the others for their turn",
    )
    return threads, taken


def test_whoever_takes_a_batch_leaves_the_wait_for_the_next_one_to_another() -> None:
    waiting = WaitingBatches(now=lambda: NOON + timedelta(hours=1))
    threads, taken = taking(waiting, 2)
    first, second = batch(1), batch(2)
    for number, each in enumerate((first, second)):
        waiting.put(each)
        wait_until(lambda count=number + 1: len(taken) == count, "it to be taken")  # type: ignore[misc]
    for thread in threads:
        thread.join(60)
    assert taken == [first, second]


def test_who_takes_the_last_batch_wakes_nobody_and_the_next_one_wakes_who_waits_for_its_turn() -> None:
    waiting = WaitingBatches(now=lambda: NOON + timedelta(hours=1))
    threads, taken = taking(waiting, 3)
    first, second = batch(1), batch(2)
    waiting.put(first)
    wait_until(lambda: len(taken) == 1, "one of them to take it")
    with waiting._turn:
        assert (len(waiting._changed._waiters), len(waiting._turn._waiters)) == (0, 2)  # type: ignore[attr-defined]
    waiting.put(second)
    wait_until(lambda: len(taken) == 2, "another one to take it")
    waiting.stop()
    for thread in threads:
        thread.join()
    assert taken == [first, second, None]


def test_at_the_end_every_thread_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_batches, "LOOK_SECONDS", 3600.0)
    waiting = WaitingBatches(now=lambda: NOON)
    threads, taken = taking(waiting, 3)
    waiting.stop()
    for thread in threads:
        thread.join(60)
    assert taken == [None] * 3


def test_what_waits_for_its_time_is_given_back_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_batches, "LOOK_SECONDS", 3600.0)
    waiting, made = WaitingBatches(now=lambda: NOON), batch(30)
    waiting.put(made)
    (thread,), taken = taking(waiting, 1)
    assert not waiting.giving_back
    waiting.give_back()
    thread.join(60)
    assert taken == [made]
    assert waiting.giving_back


def test_the_pauses_between_questions_grow_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    asking, pauses = StoreRetry(), list[float]()

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        return len(pauses) == 8

    def fails() -> None:
        raise AutoReconnect("of the test")

    monkeypatch.setattr(asking, "_ending", SimpleNamespace(wait=wait))
    with pytest.raises(WorkerStopping):
        asking.until_answered(fails)
    assert pauses == [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 2.0, 2.0]
