"""Whatever lies in the queue: a worker drops what is no message of ours, counts it, and goes on."""

import base64
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import requests
from redis import Redis as RedisClient

from scheduler_app.broker.task import DELIVER, QUEUE
from scheduler_app.embedded import free_port
from tests.acceptance.journal import Journal
from tests.acceptance.shared_stack import SharedStack
from tests.acceptance.stack import ONCE, Process, Stack
from tests.processes import wait_until


def packed(body: Any) -> str:
    return base64.b64encode(json.dumps(body).encode()).decode()


def message(body: str | None = None, *, headers: dict[str, Any] | None = None) -> bytes:
    """A `deliver` message as it lies in Redis, but for the given changes."""
    made: dict[str, Any] = {
        "body": packed([[], {"v": 1, "ids": []}, {}]) if body is None else body,
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {"task": DELIVER, "id": "one", "lang": "py", "retries": 0, "eta": None, **(headers or {})},
        "properties": {
            "delivery_tag": "tag",
            "delivery_mode": 2,
            "priority": 0,
            "body_encoding": "base64",
            "delivery_info": {"exchange": "", "routing_key": QUEUE},
        },
    }
    return json.dumps(made).encode()


def with_arguments(**kwargs: Any) -> bytes:
    return message(packed([[], kwargs, {}]))


def with_properties(**changes: Any) -> bytes:
    good: dict[str, Any] = json.loads(message())["properties"]
    return changed("properties", {**good, **changes})


def changed(field: str, value: Any) -> bytes:
    return json.dumps({**json.loads(message()), field: value}).encode()


def garbage() -> dict[str, tuple[bytes, str]]:
    """What lies there, and the reason under which it is counted. Made when the test runs: the large ones take
    half a second, and every process of a run reads this file."""
    compressed = {"compression": "application/x-gzip"}
    bomb = base64.b64encode(zlib.compress(b" " * 2**26)).decode()
    return {
        "bad JSON": (b"{'not': json", "not_json"),
        "not UTF-8": (b"\xff\xfe\x00garbage", "not_json"),
        "empty": (b"", "not_json"),
        "nested too deeply": (b"[" * 100_000, "not_json"),
        "a list": (b"[1, 2, 3]", "envelope"),
        "a number": (b"42", "envelope"),
        "null": (b"null", "envelope"),
        "text with control characters": (b'"\\u001b[31mred\\n{\\"forged\\": 1}"', "envelope"),
        "no properties": (b'{"body": "", "headers": {}}', "envelope"),
        "no delivery tag": (with_properties(delivery_tag=None), "envelope"),
        "a delivery tag that is a list": (with_properties(delivery_tag=[1]), "envelope"),
        "no delivery info": (with_properties(delivery_info=None), "envelope"),
        "headers that are a list": (changed("headers", [1]), "envelope"),
        "no headers": (changed("headers", None), "envelope"),
        "an unknown body encoding": (with_properties(body_encoding="rot13"), "envelope"),
        "a body that is a number": (changed("body", 7), "envelope"),
        "wrong base64": (message("QUJ"), "body"),
        "a compressed bomb": (message(bomb, headers=compressed), "compressed"),
        "compressed garbage": (message(packed([1]), headers=compressed), "compressed"),
        "50 MB": (b'{"body": "' + b"A" * 50_000_000 + b'"}', "too_large"),
        "an unknown task": (message(headers={"task": "somebody.elses"}), "unknown_task"),
        "a task that is a list": (message(headers={"task": [1]}), "headers"),
        "no task id": (message(headers={"id": None}), "headers"),
        "retries that are text": (message(headers={"retries": "many"}), "headers"),
        "an eta that is no time": (message(headers={"eta": "soon"}), "headers"),
        "an expiry that is no time": (message(headers={"expires": "never"}), "headers"),
        "an eta years ahead": (message(headers={"eta": "2999-01-01T00:00:00+00:00"}), "headers"),
        "time limits that are text": (message(headers={"timelimit": "x"}), "headers"),
        "the protocol of old": (changed("headers", {"lang": "py"}), "headers"),
        "a foreign content type": (changed("content-type", "application/x-python-serialize"), "content_type"),
        "a foreign charset": (changed("content-encoding", "utf-7"), "content_type"),
        "a body of nothing": (message(packed(None)), "arguments"),
        "an empty body": (message(""), "arguments"),
        "a body that is no JSON": (message(base64.b64encode(b"{").decode()), "arguments"),
        "a body that is a map": (message(packed({"ids": []})), "arguments"),
        "arguments that are a map": (message(packed([{}, [], {}])), "arguments"),
        "no ids": (with_arguments(v=1), "arguments"),
        "ids that are text": (with_arguments(v=1, ids="abc"), "arguments"),
        "ids that are numbers": (with_arguments(v=1, ids=[1, 2]), "arguments"),
        "thousands of ids": (with_arguments(v=1, ids=["x"] * 5_000), "arguments"),
        "an id of 500 KB": (with_arguments(v=1, ids=["x" * 500_000]), "arguments"),
        "an argument too many": (with_arguments(v=1, ids=[], more=1), "arguments"),
        "a positional argument": (message(packed([[1], {"v": 1, "ids": []}, {}])), "arguments"),
        "a later version": (with_arguments(v=2, ids=["x"], more=1), "version"),
    }  # fmt: skip


def dropped(port: int) -> dict[str, int]:
    """What the worker says it dropped, by reason."""
    text = requests.get(f"http://127.0.0.1:{port}/metrics").text
    found = re.findall(r'^scheduler_messages_dropped_total\{reason="(\w+)"\} ([\d.e+]+)', text, re.MULTILINE)
    return {reason: round(float(count)) for reason, count in found if float(count)}


@pytest.fixture
def port(stack: SharedStack) -> int:
    """Where the worker of `stack` tells its metrics."""
    return stack.metrics_port


@pytest.fixture
def worker(stack: SharedStack) -> Process:
    return stack.parts["worker"]


@pytest.mark.timeout(180)
def test_garbage_of_every_kind_is_dropped_and_counted_and_the_worker_goes_on(
    stack: Stack, port: int, worker: Process, journal: Journal
) -> None:
    before, lines_before, given = Counter(dropped(port)), len(lines_of(stack)), garbage()
    expected = Counter(reason for _, reason in given.values())
    with RedisClient.from_url(stack.environment["BROKER_URL"]) as broker:
        for raw, _ in given.values():
            broker.lpush(stack.key(), raw)
        wanted = before.total() + len(given)
        wait_until(lambda: sum(dropped(port).values()) == wanted, "all of it to be dropped")
        assert Counter(dropped(port)) - before == expected
        made = stack.create(journal.url("/after"), rrule=ONCE)
        assert stack.finished(made)[0]["state"] == "completed"
        wait_until(lambda: not broker.hlen(stack.key("unacked")), "every message to be acknowledged")
        assert not broker.llen(stack.key())
    assert worker.poll() is None
    lines = lines_of(stack)[lines_before:]
    assert max(map(len, lines)) < 2_000
    assert not any("Traceback" in line for line in lines)
    assert sum('"message.dropped"' in line for line in lines) == len(given)
    assert sum("'task': 'somebody.elses'" in line for line in lines) == 1


def lines_of(stack: Stack) -> list[str]:
    """The worker's log."""
    return (stack.folder / "worker.log").read_text(errors="replace").splitlines()


#: What may lie where kombu keeps the messages that workers hold: none of it is `[message, exchange, key]`.
HELD_GARBAGE = (b"{", b"\xff", b"[]", b"42", b"[[1], 2, 3]", b'["text", "", "callbacks"]')


@pytest.mark.timeout(180)
def test_garbage_among_the_held_messages_does_not_keep_the_others_from_coming_back(
    make_stack: Callable[..., Stack],
) -> None:
    stack, port = make_stack(), free_port()
    held = json.dumps([json.loads(message(headers={"task": "somebody.elses"})), "", QUEUE])
    with RedisClient.from_url(stack.environment["BROKER_URL"]) as broker:
        # The sweep takes the latest first: the message that is one comes last.
        broker.hset(stack.key("unacked"), "tag", held)
        broker.zadd(stack.key("unacked_index"), {"tag": 1})
        for number, raw in enumerate(HELD_GARBAGE):
            broker.hset(stack.key("unacked"), f"garbage{number}", raw)
            broker.zadd(stack.key("unacked_index"), {f"garbage{number}": 2 + number})
        worker = stack.worker(METRICS_PORT=str(port))
        wanted = {"unacked": len(HELD_GARBAGE), "unknown_task": 1}
        wait_until(lambda: dropped(port) == wanted, "the sweep to see all of it")
        # The last of it is acknowledged a moment after it is counted.
        wait_until(lambda: not broker.zcard(stack.key("unacked_index")), "no message to be held")
        wait_until(lambda: not broker.hlen(stack.key("unacked")), "no message to be kept")
    assert worker.poll() is None


@pytest.mark.timeout(180)
def test_a_broadcast_that_is_no_command_ends_nobody(
    stack: Stack, port: int, worker: Process, journal: Journal
) -> None:
    before = Counter(dropped(port))
    number = stack.environment["BROKER_URL"].rpartition("/")[2]
    with RedisClient.from_url(stack.environment["BROKER_URL"]) as broker:
        channel = stack.key(f"/{number}.celery.pidbox")
        wait_until(lambda: broker.publish(channel, b"\xff") == 1, "the worker to listen there")
        for raw in (b"[1]", b"42", b'{"properties": {}}', message("QUJ"), message()):
            assert broker.publish(channel, raw) == 1
    schedule = stack.create(journal.url("/after"), run_at="2040-01-01T00:00:00Z")
    stack.post(f"/schedules/{schedule}/trigger", status=202)
    assert stack.finished(schedule)[0]["state"] == "completed"
    wanted = before + Counter(envelope=3, body=1)
    wait_until(lambda: dropped(port) == wanted, f"the count {dropped(port)}")
    assert worker.poll() is None
