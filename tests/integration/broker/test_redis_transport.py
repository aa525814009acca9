"""The transport that kombu's own is replaced by."""

import json
import queue as queues
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import pytest
import redis
from kombu.connection import Connection
from kombu.transport.redis import Transport
from structlog.testing import capture_logs

from scheduler_app.broker import malformed
from scheduler_app.broker.backends import backend_of
from scheduler_app.broker.malformed import MAX_MESSAGE_BYTES
from scheduler_app.broker.redis import backend
from scheduler_app.broker.redis.backend import RedisBackend
from scheduler_app.broker.task import delivery_queue
from scheduler_app.config import Settings
from scheduler_app.domain.retry import MAX_TIMEOUT_SECONDS
from tests.processes import PATIENCE_SECONDS


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of other tests have taken no room."""
    monkeypatch.setattr(malformed, "_lines", malformed._Lines())


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


@pytest.fixture
def queue(redis_url: str) -> Iterator[Any]:
    """A queue of our transport; its messages are JSON."""
    backend_of(redis_url)
    with Connection(redis_url) as connection:  # type: ignore[no-untyped-call]
        made = connection.SimpleQueue("q")
        yield made
        made.close()


@pytest.fixture
def client(redis_url: str) -> "Iterator[redis.Redis]":
    with closing(redis.Redis.from_url(redis_url)) as made:
        yield made


def take(queue: Any) -> Any:
    return queue.get(timeout=PATIENCE_SECONDS)


def events_of(lines: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [line["event"] for line in lines]


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (b"{not json", "not_json"),
        (b"[" * 100_000, "not_json"),
        (b'"' + b"x" * (MAX_MESSAGE_BYTES - 1) + b'"', "too_large"),
        (b'"' + b"x" * (MAX_MESSAGE_BYTES - 2) + b'"', "envelope"),
        (b"[]", "envelope"),
        (b'{"headers": {}}', "envelope"),
    ],
)
def test_an_item_that_is_no_message_is_dropped_and_what_follows_is_read(
    queue: Any, client: "redis.Redis", item: bytes, reason: str
) -> None:
    queue.put({"v": 1})
    client.rpush("q", item)  # the next to be taken
    with capture_logs() as lines:
        message = take(queue)
    assert message.payload == {"v": 1}
    assert [(line["event"], line["reason"]) for line in lines] == [("message.dropped", reason)]
    message.ack()
    assert client.llen("q") == client.hlen("unacked") == 0


def test_a_message_whose_body_cannot_be_decoded_is_dropped(queue: Any, client: "redis.Redis") -> None:
    queue.put({"v": 1})
    item = client.rpop("q")
    assert isinstance(item, bytes)
    broken = json.loads(item) | {"body": "abcde"}
    queue.put({"v": 2})
    client.rpush("q", json.dumps(broken))
    with capture_logs() as lines:
        assert take(queue).payload == {"v": 2}
    assert [line["reason"] for line in lines] == ["body"]


def test_a_message_that_redis_refuses_to_note_is_worked_on_all_the_same(
    queue: Any, client: "redis.Redis"
) -> None:
    queue.put({"v": 1})
    client.set("unacked", "of another type")
    with capture_logs() as lines:
        message = take(queue)
        assert message.payload == {"v": 1}
        assert queue.channel.qos.held() == [message.delivery_tag]
        message.ack()
        assert queue.channel.qos.held() == []
    assert events_of(lines) == ["broker.refused"] * 2
    assert "noted as held" in lines[0]["message"]
    assert "acknowledged" in lines[1]["message"]


def test_a_message_that_redis_refuses_to_take_back_is_held_no_longer(
    queue: Any, client: "redis.Redis"
) -> None:
    queue.put({"v": 1})
    message = take(queue)
    client.delete("unacked")
    client.set("unacked", "of another type")
    with capture_logs() as lines:
        message.requeue()
    assert events_of(lines) == ["broker.refused"]
    assert "given back" in lines[0]["message"]
    assert queue.channel.qos.held() == []


@pytest.mark.parametrize("settle", ["ack", "requeue", "reject"])
def test_a_message_of_a_lost_connection_is_left_to_come_again(
    queue: Any, client: "redis.Redis", settle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.put({"v": 1})
    message = take(queue)
    with monkeypatch.context() as patch, capture_logs() as lines:
        patch.setattr(queue.channel, "connection", None)
        getattr(message, settle)()
    assert events_of(lines) == ["broker.channel_gone"]
    assert client.hlen("unacked") == 1


def test_a_channel_gives_back_at_its_end_what_it_holds(queue: Any, client: "redis.Redis") -> None:
    queue.put({"v": 1})
    take(queue)
    queue.channel.qos.restore_unacked_once()
    assert (client.llen("q"), client.hlen("unacked")) == (1, 0)


def test_what_a_channel_cannot_give_back_at_its_end_is_told_and_ends_nothing(
    queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.put({"v": 1})
    take(queue)
    qos = queue.channel.qos

    def gone(*_: Any, **__: Any) -> None:
        raise AttributeError("the connection is gone")

    with monkeypatch.context() as patch, capture_logs() as lines:
        patch.setattr(qos, "channel", None)
        patch.setattr(qos, "_flush", gone)
        qos.restore_unacked_once()
    assert events_of(lines) == ["broker.restore_failed"]


def test_a_held_message_that_kombu_did_not_write_is_dropped_and_the_others_come_back(
    queue: Any, client: "redis.Redis", caplog: pytest.LogCaptureFixture
) -> None:
    queue.put({"v": 1})
    tag = take(queue).delivery_tag
    garbage = (
        b"{",
        b'[{}, "", "q"]',
        b'["a secret", "", "q"]',
        b"5",
        b'[{"__type__": "decimal", "__value__": "x"}, "", "q"]',  # ArithmeticError
        b'[{"__type__": "uuid", "__value__": {"hex": 5}}, "", "q"]',  # AttributeError
    )
    for number, kept in enumerate(garbage):
        client.hset("unacked", f"garbage{number}", kept)
        client.zadd("unacked_index", {f"garbage{number}": 1.0})
    with capture_logs() as lines:
        for name in (*(f"garbage{number}" for number in range(len(garbage))), tag):
            queue.channel.qos.restore_by_tag(name)
    dropped = [("message.dropped", "unacked")] * len(garbage)
    assert [(line["event"], line["reason"]) for line in lines] == dropped
    assert (client.hlen("unacked"), client.zcard("unacked_index"), client.llen("q")) == (0, 0, 1)
    assert not caplog.records, "kombu logs all of what it cannot put back"


def test_of_why_a_held_message_is_no_message_of_kombu_s_some_is_told(
    queue: Any, client: "redis.Redis"
) -> None:
    client.hset("unacked", "long", b"[1, 2, 3]")
    client.zadd("unacked_index", {"long": 1.0})

    def fails(*_: Any) -> None:
        raise KeyError("x" * 1_000)

    queue.channel._do_restore_message = fails
    with capture_logs() as lines:
        queue.channel.qos.restore_by_tag("long")
    assert [line["detail"] for line in lines] == [f"KeyError: '{'x' * 1_000}"[:200]]


def test_what_nobody_can_read_of_a_broadcast_is_dropped_as_if_it_had_been_delivered(queue: Any) -> None:
    queue.channel._fanout_to_queue["celery.pidbox"] = "replies"
    with capture_logs() as lines:
        assert queue.channel._deliver_fanout_message({}, "celery.pidbox")
    assert events_of(lines) == ["message.dropped"]


def test_all_messages_but_some_are_given_back(queue: Any, client: "redis.Redis") -> None:
    for number in range(4):
        queue.put({"v": number})
    taken = [take(queue) for _ in range(4)]
    queue.channel.return_all_but({taken[1].delivery_tag})
    assert queue.channel.qos.held() == [taken[1].delivery_tag]
    assert client.llen("q") == 3
    assert queue.channel.sizes("q")[0] == 3
    assert sum(queue.channel.sizes("q").values()) == 3
    assert sum(queue.channel.sizes("other").values()) == 0


def test_what_redis_has_given_while_a_worker_ends_is_given_back_with_the_rest(
    queue: Any, client: "redis.Redis"
) -> None:
    queue.put({"v": 0})
    assert take(queue).payload == {"v": 0}
    queue.channel._brpop_start(PATIENCE_SECONDS)
    queue.put({"v": 1})  # goes to the connection that waits
    assert client.llen("q") == 0
    queue.channel.return_all_but(set())
    assert queue.channel.qos.held() == []
    assert (client.llen("q"), client.hlen("unacked")) == (2, 0)


def test_when_no_message_came_in_time_redis_is_asked_again(queue: Any) -> None:
    queue.put({"v": 0})
    take(queue).ack()
    queue.channel._brpop_start(0.01)
    with pytest.raises(queues.Empty):
        queue.channel._brpop_read()
    queue.put({"v": 1})
    assert take(queue).payload == {"v": 1}


def test_a_connection_that_is_lost_while_it_waits_is_told_and_made_again(
    queue: Any, client: "redis.Redis"
) -> None:
    queue.put({"v": 0})
    take(queue).ack()
    queue.channel._brpop_start(PATIENCE_SECONDS)
    host, port = queue.channel.client.connection._sock.getsockname()
    client.client_kill(f"{host}:{port}")
    with pytest.raises(queue.channel.connection_errors):
        queue.channel._brpop_read()
    queue.put({"v": 1})
    assert take(queue).payload == {"v": 1}


def test_of_two_queues_with_one_priority_none_waits_for_the_other_to_be_empty(redis_url: str) -> None:
    backend_of(redis_url)
    taken: list[str] = []
    with Connection(redis_url) as connection:  # type: ignore[no-untyped-call]
        for name in ("one", "two") * 2:
            with connection.SimpleQueue(name) as made:
                made.put({"by": name})
        with connection.Consumer(
            [delivery_queue("one"), delivery_queue("two")],
            callbacks=[lambda body, message: taken.append(body["by"])],
        ):
            while len(taken) < 4:
                connection.drain_events(timeout=PATIENCE_SECONDS)
    assert taken in (["one", "two"] * 2, ["two", "one"] * 2)


def test_what_a_worker_holds_is_given_to_no_other_before_the_longest_callback_has_ended(
    settings: Settings,
) -> None:
    held_for = RedisBackend().transport_options(settings)["visibility_timeout"]
    assert held_for > MAX_TIMEOUT_SECONDS + settings.horizon_seconds


def test_a_redis_that_accepts_and_does_not_answer_is_given_up_after_a_while(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "SILENT_SECONDS", 0.3)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        backend_of(url)
        options = RedisBackend().transport_options(settings)
        with (
            Connection(url, transport_options=options) as connection,  # type: ignore[no-untyped-call]
            pytest.raises(redis.TimeoutError),
        ):
            connection.channel()
