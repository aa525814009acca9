"""Where tasks go that a program sends by our application."""

from types import SimpleNamespace

import pytest

from scheduler_app.broker.rabbitmq.transport import (
    AHEAD,
    ConfirmingChannel,
    lane_of,
    lane_queue,
    name_prefix,
    queue_of,
    scoped,
    unscoped,
)
from scheduler_app.broker.task import DELIVER, PRIORITIES, QUEUE, delivery_queue, route_task


def test_our_task_goes_to_the_queue_of_callbacks_and_others_where_they_say() -> None:
    assert route_task(DELIVER, (), {}, {}) == {"queue": QUEUE}
    assert route_task("shop.tasks.pay", (), {}, {}) is None
    assert route_task("shop.tasks.pay", (), {}, {"queue": SimpleNamespace(name="pay")}) is None
    with pytest.raises(ValueError, match=r"shop\.tasks\.pay would wait behind them"):
        route_task("shop.tasks.pay", (), {}, {"queue": SimpleNamespace(name=QUEUE)})


def test_a_queue_of_events_is_reached_by_its_own_name_without_an_exchange() -> None:
    queue = delivery_queue("callbacks")
    assert (queue.name, queue.exchange.name, queue.routing_key) == ("callbacks", "", "callbacks")


def test_names_in_rabbitmq_keep_two_deployments_apart() -> None:
    assert name_prefix("a:b%c") == "a%3Ab%25c:"
    assert scoped("ours:", "callbacks") == "ours:callbacks"
    assert [scoped("ours:", name) for name in ("", "amq.direct")] == ["", "amq.direct"]
    assert unscoped("ours:", "ours:callbacks") == "callbacks"
    assert unscoped("ours:", "theirs:callbacks") == "theirs:callbacks"


def test_a_lane_is_a_queue_of_its_own() -> None:
    for lane in (AHEAD, *PRIORITIES):
        name = lane_queue("ours:", "slow", str(lane))
        assert name == f"ours:slow:{lane}"
        assert queue_of("ours:", name) == "slow"
    assert queue_of("ours:", "ours:celery.pidbox") == "celery.pidbox"
    assert queue_of("ours:", "ours:a:b") == "a:b"


def test_a_message_goes_to_the_lane_of_its_priority_or_of_its_time() -> None:
    assert lane_of({"eta": "2026-03-02T12:00:00Z"}, None) == AHEAD
    for lane, number in PRIORITIES.items():
        assert lane_of({"eta": None}, number) == lane.value
    assert lane_of({}, None) == "fresh"
    assert lane_of({}, 99) == "fresh"


def test_a_confirm_is_for_its_own_message_or_for_all_up_to_it() -> None:
    channel = object.__new__(ConfirmingChannel)
    channel._unconfirmed, channel._refused = {1, 2, 3, 4, 5}, set()
    channel._on_basic_ack(2, multiple=False)
    assert channel._unconfirmed == {1, 3, 4, 5}
    channel._on_basic_ack(3, multiple=True)
    assert (channel._unconfirmed, channel._refused) == ({4, 5}, set())
    channel._on_basic_nack(4, multiple=True)
    assert (channel._unconfirmed, channel._refused) == ({5}, {4})
