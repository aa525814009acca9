"""Destinations under load, through real processes: three workers share one limit, one breaker, one Redis."""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import redis
import requests
from pymongo import MongoClient

from scheduler_app.worker.destination_queue import KEPT_SECONDS
from tests.acceptance.limited_receiver import LimitedReceiver, excess
from tests.acceptance.stack import Stack
from tests.processes import wait_until

#: Of the tests of `make test` and of the one of thousands, in requests a second.
RATE, HIGH_RATE = 25, 50
#: Where this process stands still, as many as may be under way arrive together with the next burst.
BURST, CONCURRENCY = 10, 5
#: Dispatches for each delivered event, at most.
MOST_DISPATCHES = 1.2


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    """API, one beat, three workers."""
    for name in ("second", "third"):
        stack.worker(name)
    return stack


@pytest.fixture
def receiver() -> Iterator[LimitedReceiver]:
    with closing(LimitedReceiver()) as made:
        yield made


def put(stack: Stack, name: str, url: str, **fields: Any) -> None:
    body = {"url": url, "method": "POST"} | fields
    answer = requests.put(f"{stack.url}/api/destinations/{name}", json=body)
    assert answer.status_code == 201, answer.text


def look(stack: Stack, name: str) -> dict[str, Any]:
    found: dict[str, Any] = requests.get(f"{stack.url}/api/destinations/{name}").json()
    return found


def fire(stack: Stack, name: str, count: int) -> None:
    """So many events: all of a thousand are due at one instant."""
    # Counted by the API: an instant of the test's own may have passed when the last of them is read.
    one = {"name": name, "destination": name, "delay_seconds": 3, "tags": [name]}
    for first in range(0, count, 1_000):
        size = min(1_000, count - first)
        made = stack.post("/schedules/bulk", {"schedules": [one] * size}, status=200)
        assert made["created"] == size, made


def events(stack: Stack, name: str) -> list[dict[str, Any]]:
    with MongoClient[dict[str, Any]](stack.environment["MONGO_URI"]) as client:
        found = client[stack.environment["MONGO_DATABASE"]]["events"]
        return list(found.find({"origin": f"destination {name}"}))


def dispatches(found: list[dict[str, Any]]) -> float:
    """Messages for each event."""
    lines = [line["status"] for event in found for line in event["status"]]
    return lines.count("worker_queue") / len(found)


def check_limits(stack: Stack, receiver: LimitedReceiver, name: str, count: int, rate: int) -> None:
    assert excess(receiver.arrivals, BURST + CONCURRENCY, rate) <= 0
    assert receiver.most_open <= CONCURRENCY
    assert len(receiver.keys) == count
    found = events(stack, name)
    wait_until(lambda: all(each["state"] == "completed" for each in events(stack, name)), "records")
    assert dispatches(found) <= MOST_DISPATCHES
    put_off = [
        each for each in found if any("place in the line" in line["message"] for line in each["status"])
    ]
    assert put_off


def limited(stack: Stack, receiver: LimitedReceiver, name: str, count: int, rate: int = RATE) -> None:
    put(stack, name, receiver.url, rate_per_second=rate, burst=BURST, concurrency=CONCURRENCY)
    fire(stack, name, count)


def test_a_limit_holds_in_every_window_from_three_workers(stack: Stack, receiver: LimitedReceiver) -> None:
    # More than three workers keep in memory: the others wait in MongoDB.
    count = 3 * int(RATE * KEPT_SECONDS) + 100
    limited(stack, receiver, "limited", count)
    wait_until(lambda: bool(receiver.arrivals and look(stack, "limited")["flow"]["waiting"]), "a backlog")
    wait_until(lambda: len(receiver.keys) == count, "all calls")
    check_limits(stack, receiver, "limited", count, RATE)


def flush(stack: Stack) -> None:
    with redis.Redis.from_url(stack.environment["BROKER_URL"]) as client:
        client.flushdb()


def test_a_redis_that_is_flushed_gives_one_more_burst_at_most_and_loses_nothing(
    stack: Stack, receiver: LimitedReceiver
) -> None:
    limited(stack, receiver, "flushed", 150)
    wait_until(lambda: len(receiver.keys) > 50, "a part of the calls")
    flush(stack)
    wait_until(lambda: len(receiver.keys) == 150, "all calls")
    assert excess(receiver.arrivals, 2 * BURST + CONCURRENCY, RATE) <= 0
    assert receiver.most_open <= CONCURRENCY


@pytest.mark.parametrize(("count", "down"), [(100, 7), pytest.param(1_000, 60, marks=pytest.mark.long)])
@pytest.mark.timeout(300)
def test_a_breaker_spares_a_receiver_that_fails_and_delivers_all_after(
    stack: Stack, receiver: LimitedReceiver, count: int, down: int
) -> None:
    failures, open_seconds, name = 10, 5, f"broken-{down}"
    put(
        stack,
        name,
        receiver.url,
        concurrency=CONCURRENCY,
        breaker={"failures": failures, "open_seconds": open_seconds},
        retry_backoff_seconds=1,
        retry_backoff_max_seconds=2,
    )
    receiver.fails = True
    fire(stack, name, count)
    wait_until(lambda: look(stack, name)["flow"]["breaker"] == "open", "an open breaker")
    assert look(stack, name)["flow"]["last_answers"][0]["status_code"] == 503
    began = receiver.arrivals[0]
    wait_until(lambda: time.monotonic() - began > down, "the end of the failure")
    seen, passed = len(receiver.arrivals), time.monotonic() - began
    receiver.fails = False
    assert seen <= failures + passed // open_seconds + 1
    wait_until(lambda: len(receiver.keys) == count, "all calls")
    assert look(stack, name)["flow"]["breaker"] == "closed"
    said = [line["message"] for each in events(stack, name) for line in each["status"]]
    assert any("waits for its breaker to close" in each for each in said)


@pytest.mark.long
def test_a_limit_holds_for_20_000_events_which_finish_in_time(
    stack: Stack, receiver: LimitedReceiver
) -> None:
    count = 20_000
    limited(stack, receiver, "large", count, HIGH_RATE)
    wait_until(lambda: len(receiver.keys) >= count // 2, "half of the calls")
    wait_until(lambda: len(receiver.keys) == count, "all calls")
    took = max(receiver.arrivals) - min(receiver.arrivals)
    assert took <= (count - BURST) / HIGH_RATE * 1.05
    check_limits(stack, receiver, "large", count, HIGH_RATE)
