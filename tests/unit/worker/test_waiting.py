"""Claimed batches that wait for their time: which comes next, and what is taken out of them."""

from datetime import UTC, datetime, timedelta

from scheduler_app.worker.batch import ClaimedBatch, WaitingBatches
from scheduler_app.worker.lease import Lease
from tests.builders import event

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
