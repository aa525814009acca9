"""What a worker may hold, how old an unwritten outcome may be, and how often something happened."""

import threading

import pytest

from scheduler_app.worker.capacity import (
    MAX_UNRECORDED,
    MAX_UNRECORDED_SECONDS,
    Capacity,
    RecordingBacklog,
    WorkerStopping,
)
from scheduler_app.worker.origins import WINDOW_SECONDS, Rate
from tests.processes import wait_until


def test_the_oldest_outcome_counts_until_it_is_written() -> None:
    backlog = RecordingBacklog()
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
    backlog = RecordingBacklog()
    backlog.put(1, 0.0)
    assert not backlog.is_behind(MAX_UNRECORDED_SECONDS)
    assert backlog.is_behind(MAX_UNRECORDED_SECONDS + 0.1)
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
    thread.join()
    assert capacity.held == 100


def test_nothing_is_reserved_while_outcomes_wait_too_long() -> None:
    behind = [True]
    capacity = Capacity(100, is_behind=lambda: behind[0])
    thread = threading.Thread(target=capacity.reserve, args=(1,), daemon=True)
    thread.start()
    assert capacity.held == 0
    behind[0] = False
    wait_until(lambda: capacity.held == 1, "the reservation")
    thread.join()


def test_a_worker_that_ends_reserves_nothing() -> None:
    capacity = Capacity(100, is_behind=lambda: True)
    capacity.stop()
    with pytest.raises(WorkerStopping):
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


def test_more_than_there_is_room_for_at_all_is_taken_when_nothing_else_is_held() -> None:
    capacity = Capacity(10, is_behind=lambda: False)
    capacity.reserve(25)
    assert capacity.held == 25
    assert not capacity.wait_until_empty(0.0)
    capacity.release(24)
    assert not capacity.wait_until_empty(0.0)
    capacity.release()
    assert capacity.wait_until_empty(0.0)


def test_who_waits_for_room_is_told_when_the_worker_ends() -> None:
    capacity, told = Capacity(10, is_behind=lambda: False), threading.Event()
    capacity.reserve(10)

    def waits() -> None:
        with pytest.raises(WorkerStopping):
            capacity.reserve(1)
        told.set()

    thread = threading.Thread(target=waits, daemon=True)
    thread.start()
    capacity.stop()
    assert told.wait(60)
    assert capacity.held == 10
    capacity.release(10)
    with pytest.raises(WorkerStopping):
        capacity.reserve(1)
    assert capacity.held == 0


def test_a_backlog_of_nothing_is_not_behind() -> None:
    backlog = RecordingBacklog()
    assert (backlog.count, backlog.age(100.0), backlog.is_behind(100.0)) == (0, 0.0, False)
    backlog.put(MAX_UNRECORDED - 1, 100.0)
    assert not backlog.is_behind(100.0)
    backlog.put(1, 100.0)
    assert backlog.is_behind(100.0)
    backlog.written(1)
    assert not backlog.is_behind(100.0 + MAX_UNRECORDED_SECONDS)
    backlog.written(MAX_UNRECORDED - 1)
    assert (backlog.count, backlog.age(200.0)) == (0, 0.0)


def test_a_rate_forgets_each_second_when_it_leaves_the_window() -> None:
    rate = Rate()
    for second in range(WINDOW_SECONDS):
        for _ in range(second + 1):
            rate.count(100.0 + second)
    total = sum(range(WINDOW_SECONDS + 1))
    assert rate.per_second(100.0 + WINDOW_SECONDS - 1) == pytest.approx(total / (WINDOW_SECONDS - 1))
    for gone in range(1, WINDOW_SECONDS + 1):
        total -= gone
        expected = total / WINDOW_SECONDS
        assert rate.per_second(100.0 + WINDOW_SECONDS - 1 + gone) == pytest.approx(expected)
    rate.count(200.0)
    rate.count(200.9)
    assert rate.per_second(200.9) == 2.0


def test_who_waits_for_events_goes_on_when_there_is_one_or_the_worker_ends() -> None:
    for ends in (False, True):
        capacity = Capacity(10, is_behind=lambda: False)
        thread = threading.Thread(target=capacity.wait_for_events, daemon=True)
        thread.start()
        wait_until(lambda of=capacity: len(of._changed._waiters) == 1, "it to wait")  # type: ignore[misc]
        if ends:
            capacity.stop()
        else:
            capacity.reserve(1)
        thread.join(60)
        assert not thread.is_alive()


def test_who_waits_for_the_last_event_to_be_written_is_told_of_it() -> None:
    capacity = Capacity(10, is_behind=lambda: False)
    capacity.reserve(2)
    thread = threading.Thread(target=capacity.wait_until_empty, daemon=True)
    thread.start()
    wait_until(lambda: len(capacity._changed._waiters) == 1, "it to wait")  # type: ignore[attr-defined]
    capacity.release(2)
    thread.join(60)
    assert not thread.is_alive()
