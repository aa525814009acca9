"""Every message in the broker."""

import tempfile
from pathlib import Path

import pytest

from tests.golden.conftest import Bench, Ran
from tests.golden.golden_files import compare
from tests.golden.product import RabbitMQ
from tests.golden.recording import Recording, shown_messages
from tests.golden.run import lanes

pytestmark = pytest.mark.long


def test_every_message_in_redis_is_as_recorded(ran: Ran, over_documents: Ran) -> None:
    compare("messages-redis", {"run.json": ran.messages, "over-documents.json": over_documents.messages})


def test_every_lane_in_redis_is_as_recorded(bench: Bench) -> None:
    with bench.product("lanes") as (product, _, steady):
        lanes.record(Recording(product))
        compare("lanes-redis", {"lanes.json": steady(shown_messages(product.messages()))})


def test_every_lane_in_rabbitmq_is_as_recorded(bench: Bench) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="rabbitmq-") as folder,
        RabbitMQ(Path(folder), password="only-for-tests") as server,
        bench.product("lanes", broker_url=server.url, flow_control_url=bench.redis.url) as (
            product,
            _,
            steady,
        ),
    ):
        lanes.record(Recording(product))
        compare(
            "lanes-rabbitmq", {"lanes.json": steady(shown_messages(product.messages_in_rabbitmq(server)))}
        )
