"""Claimed batches that wait for their time: which comes next, and what is taken out of them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.lateness import Lateness
from scheduler_app.domain.states import SUSPECT_AFTER
from scheduler_app.worker.batch import (
    OBEYED_AHEAD,
    READ_AHEAD,
    ClaimedBatch,
    ReadBatch,
    WaitingBatches,
)
from scheduler_app.worker.lease import Lease
from tests.builders import event, schedule

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def batch(*seconds: int) -> ClaimedBatch:
    """Events that are due so many seconds after noon."""
    events = [event(NOON + timedelta(seconds=each)) for each in seconds]
    return ClaimedBatch(events, Lease("token", [each.id for each in events], asked_at=0, timeout_seconds=10))


def test_batches_come_in_the_order_of_their_first_events_however_they_were_put() -> None:
    waiting = WaitingBatches(now=lambda: NOON + timedelta(hours=1))
    late, early, middle = batch(30), batch(1, 40), batch(20)
    for each in (late, early, middle):
        waiting.put(each)
    assert [waiting.next() for _ in range(3)] == [early, middle, late]


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
