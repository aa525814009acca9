"""The transport that kombu's own is replaced by."""

from collections.abc import Iterator
from typing import Any

import pytest
from kombu.connection import Connection
from kombu.transport.redis import Transport

from scheduler_app.broker.backends import backend_of


@pytest.fixture
def channel(redis_url: str) -> Iterator[Any]:
    backend_of(redis_url)
    with Connection(redis_url) as connection:  # type: ignore[no-untyped-call]
        yield connection.channel()


def test_kombu_as_it_comes_makes_a_client_for_each_question(redis_url: str) -> None:
    with Connection(redis_url, transport=Transport) as connection:  # type: ignore[no-untyped-call]
        channel = connection.channel()
        with channel.conn_or_acquire() as one, channel.conn_or_acquire() as other:
            assert one is not other


def test_a_channel_asks_redis_through_one_client(channel: Any) -> None:
    with channel.conn_or_acquire() as one, channel.conn_or_acquire() as other:
        assert one is other
        assert one.ping()
        assert one.connection_pool is channel.pool


def test_a_channel_that_gave_its_connections_up_asks_through_new_ones(channel: Any) -> None:
    with channel.conn_or_acquire() as client:
        given_up = client.connection_pool
    channel._disconnect_pools()
    with channel.conn_or_acquire() as client:
        assert client.connection_pool is channel.pool is not given_up
        assert client.ping()


def test_waiting_for_messages_keeps_a_connection_of_its_own(channel: Any) -> None:
    with channel.conn_or_acquire() as client:
        assert channel.client is not client
        assert channel.client.connection_pool is not client.connection_pool
