"""How many messages may wait in each lane."""

import pytest

from scheduler_app.domain.action import Lane, QueueLengths
from scheduler_app.usecases.duties.dispatch_selection import (
    ASK_AGAIN_SECONDS,
    ASK_FULL_AGAIN_SECONDS,
    LANE_MESSAGES,
    LATE_REFILL,
    URGENT_A_SECOND,
    Room,
    RoomEstimate,
)


def test_an_empty_queue_has_room_for_so_many_in_each_lane() -> None:
    assert Room.beside(QueueLengths()) == Room(50, 150, 50)


def test_a_lane_that_has_too_many_has_no_room_and_takes_none_from_the_others() -> None:
    full = Room.beside(QueueLengths(urgent=1_000, fresh=150, late=0))
    assert (full.urgent, full.fresh, full.late) == (0, 0, LANE_MESSAGES[Lane.LATE])


def test_the_late_lane_is_filled_again_when_a_good_part_of_it_is_free() -> None:
    nearly = LANE_MESSAGES[Lane.LATE] - LATE_REFILL
    assert Room.beside(QueueLengths(late=nearly + 1)).late == 0
    assert Room.beside(QueueLengths(late=nearly)).late == LATE_REFILL


def test_what_is_published_takes_its_room() -> None:
    assert Room(2, 2, 2).after_publishing([Lane.FRESH, Lane.LATE, Lane.LATE, Lane.LATE]) == Room(2, 1, 0)


class Queue:
    def __init__(self) -> None:
        self.lengths = QueueLengths()
        self.asked = 0

    def __call__(self) -> QueueLengths:
        self.asked += 1
        return self.lengths


class Watch:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_the_broker_is_asked_once_a_second_and_what_is_published_meanwhile_is_counted(watch: Watch) -> None:
    queue = Queue()
    estimate = RoomEstimate(queue, watch)
    for _ in range(10):
        estimate.room()
        estimate.published([Lane.FRESH])
    assert queue.asked == 1
    assert estimate.room().fresh == LANE_MESSAGES[Lane.FRESH] - 10
    watch.now += ASK_AGAIN_SECONDS
    assert estimate.room().fresh == LANE_MESSAGES[Lane.FRESH]
    assert queue.asked == 2


def test_what_seems_full_is_looked_at_again_before_it_is_left_to_beat(watch: Watch) -> None:
    queue = Queue()
    estimate = RoomEstimate(queue, watch)
    estimate.room()
    estimate.published([Lane.FRESH] * LANE_MESSAGES[Lane.FRESH])
    assert estimate.room().fresh == 0
    watch.now += ASK_FULL_AGAIN_SECONDS * 2
    assert estimate.room().fresh == LANE_MESSAGES[Lane.FRESH], "workers have fetched them meanwhile"
    assert queue.asked == 2


def test_looking_again_makes_nothing_more_urgent(watch: Watch) -> None:
    estimate = RoomEstimate(Queue(), watch)
    estimate.room()
    estimate.published([Lane.URGENT] * URGENT_A_SECOND + [Lane.FRESH] * LANE_MESSAGES[Lane.FRESH])
    watch.now += ASK_FULL_AGAIN_SECONDS * 2
    assert estimate.room().urgent == 0


def test_looking_again_leaves_what_is_urgent_the_rest_of_its_second(watch: Watch) -> None:
    estimate = RoomEstimate(Queue(), watch)
    estimate.room()
    estimate.published([Lane.URGENT] + [Lane.FRESH] * LANE_MESSAGES[Lane.FRESH])
    watch.now += ASK_FULL_AGAIN_SECONDS * 2
    assert estimate.room().urgent == URGENT_A_SECOND - 1


def test_a_program_is_urgent_so_often_a_second_and_no_more(watch: Watch) -> None:
    estimate = RoomEstimate(Queue(), watch)
    urgent = 0
    while estimate.room().urgent:
        estimate.published([Lane.URGENT])
        urgent += 1
    assert urgent == URGENT_A_SECOND
    watch.now += ASK_AGAIN_SECONDS
    assert estimate.room().urgent == URGENT_A_SECOND


def test_while_the_urgent_lane_is_full_nothing_is_urgent(watch: Watch) -> None:
    queue = Queue()
    queue.lengths = QueueLengths(urgent=LANE_MESSAGES[Lane.URGENT])
    assert RoomEstimate(queue, watch).room().urgent == 0


def test_a_broker_that_does_not_answer_is_asked_again_a_second_later_and_no_sooner(watch: Watch) -> None:
    def away() -> QueueLengths:
        raise OSError("away")

    estimate = RoomEstimate(away, watch)
    with pytest.raises(OSError):
        estimate.room()
    assert estimate.room().fresh == LANE_MESSAGES[Lane.FRESH], "publishing tells whether it is back"
    estimate.published([Lane.URGENT])  # it is
    assert estimate.room().urgent == LANE_MESSAGES[Lane.URGENT] - 1
    watch.now += ASK_AGAIN_SECONDS
    with pytest.raises(OSError):
        estimate.room()
