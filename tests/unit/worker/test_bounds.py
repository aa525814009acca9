"""What a worker may hold, how old an unwritten outcome may be, and how often something happened."""

import threading

import pytest

from scheduler_app.worker.backlog import MAX_AGE_SECONDS, MAX_UNRECORDED, Backlog
from scheduler_app.worker.capacity import Capacity, Stopping
from scheduler_app.worker.rate import WINDOW_SECONDS, Rate
from tests.processes import wait_until


def test_the_oldest_outcome_counts_until_it_is_written() -> None:
    backlog = Backlog()
    backlog.put(10, 0.0)
    backlog.put(5, 1.0)
    assert (backlog.count, backlog.age(3.0)) == (15, 3.0)
    backlog.written(4)
    assert backlog.age(3.0) == 3.0
    backlog.written(6)
    assert backlog.age(3.0) == 2.0
    backlog.written(5)
    assert (backlog.count, backlog.age(3.0)) == (0, 0.0)


def test_a_worker_is_behind_when_an_outcome_is_old_or_when_there_are_many() -> None:
    backlog = Backlog()
    backlog.put(1, 0.0)
    assert not backlog.is_behind(MAX_AGE_SECONDS)
    assert backlog.is_behind(MAX_AGE_SECONDS + 0.1)
    backlog.written(1)
    backlog.put(MAX_UNRECORDED, 10.0)
    assert backlog.is_behind(10.0)


def test_room_is_waited_for_and_never_overdrawn() -> None:
    capacity = Capacity(100, is_behind=lambda: False)
    capacity.reserve(80)
    thread = threading.Thread(target=capacity.reserve, args=(30,), daemon=True)
    thread.start()
    capacity.release(9)
    assert capacity.held == 71
    capacity.release(1)
    thread.join(60)
    assert capacity.held == 100


def test_nothing_is_reserved_while_outcomes_wait_too_long() -> None:
    behind = [True]
    capacity = Capacity(100, is_behind=lambda: behind[0])
    thread = threading.Thread(target=capacity.reserve, args=(1,), daemon=True)
    thread.start()
    assert capacity.held == 0
    behind[0] = False
    wait_until(lambda: capacity.held == 1, "the reservation")
    thread.join(60)


def test_a_worker_that_ends_reserves_nothing() -> None:
    capacity = Capacity(100, is_behind=lambda: True)
    capacity.stop()
    with pytest.raises(Stopping):
        capacity.reserve(1)


def test_a_rate_is_the_mean_of_its_window() -> None:
    rate = Rate()
    assert rate.per_second(100.0) == 0
    for number in range(50):
        rate.count(100.0 + number / 100)
    assert rate.per_second(100.5) == 50
    assert rate.per_second(102.5) == pytest.approx(20)
    assert rate.per_second(100.0 + WINDOW_SECONDS + 1) == 0
    rate.count(500.0)
    assert rate.per_second(500.0) == 1
