"""What a RabbitMQ says of itself, and what that means for a broker."""

import pytest

from scheduler_app.broker.rabbitmq.backend import _server
from scheduler_app.health import Status


@pytest.mark.parametrize(
    ("product", "version", "status"),
    [
        ("RabbitMQ", "3.10.0", Status.OK),
        ("RabbitMQ", "3.10", Status.OK),
        ("RabbitMQ", "3.9.29", Status.WRONG),
        ("RabbitMQ", "4.1.0-rc.1", Status.OK),
        ("RabbitMQ", "?", Status.WRONG),
    ],
)
def test_a_rabbitmq_that_is_too_old_is_found_by_its_first_two_numbers(
    product: str, version: str, status: Status
) -> None:
    check = _server({"product": product, "version": version}, "amqp://here")
    assert (check.name, check.status, check.found) == ("rabbitmq", status, f"{version} at amqp://here")
    assert check.facts == {"version": version}


def test_a_broker_of_another_make_is_no_rabbitmq() -> None:
    check = _server({"product": "LavinMQ", "version": "4.0"}, "amqp://here")
    assert (check.status, check.found) == (Status.WRONG, "LavinMQ 4.0 at amqp://here")
