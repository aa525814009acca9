"""Requests beside a Redis that accepts connections and answers nothing: beats do what it would have done."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from scheduler_app.embedded import Redis
from tests.acceptance.stack import Stack
from tests.processes import freeze, wait_until

#: What is promised for a GET and for a POST.
GET_SECONDS, POST_SECONDS = 2.0, 5.0
POSTS = 40


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    with tempfile.TemporaryDirectory(prefix="hanging-") as folder, Redis(Path(folder) / "redis") as made:
        yield made


@pytest.fixture(scope="module")
def stack(make_stack: Callable[..., Stack], redis: Redis) -> Stack:
    """An API alone: it publishes what is due, and nothing else runs."""
    made = make_stack(BROKER_URL=redis.url)
    made.api()
    limited = {"url": "http://127.0.0.1:9/", "concurrency": 1}
    assert requests.put(f"{made.url}/api/destinations/limited", json=limited, timeout=60).ok
    return made


@contextmanager
def frozen(redis: Redis) -> Iterator[None]:
    assert redis.pid
    freeze(redis.pid)
    try:
        yield
    finally:
        os.kill(redis.pid, signal.SIGCONT)


def timed(ask: Callable[[], requests.Response]) -> tuple[requests.Response, float]:
    started = time.monotonic()
    return ask(), time.monotonic() - started


def post(stack: Stack, number: int) -> tuple[requests.Response, float]:
    receiver: dict[str, Any] = (
        {"destination": "limited"} if number % 2 else {"callback_url": "http://127.0.0.1:9/"}
    )
    made = {"id": f"m{time.monotonic_ns()}", "delay_seconds": 0, **receiver}
    return timed(lambda: requests.post(f"{stack.url}/api/messages", json=made, timeout=60))


def all_in_time(stack: Stack, gets: str) -> bool:
    with ThreadPoolExecutor(POSTS + 1) as at_once:
        posted = [at_once.submit(post, stack, number) for number in range(POSTS)]
        time.sleep(0.2)  # not in order to succeed: the POSTs are in their threads by then
        got = at_once.submit(timed, lambda: requests.get(stack.url + gets, timeout=60))
        answers = [each.result() for each in posted]
    assert {answer.status_code for answer, _ in answers} == {201}
    answer, took = got.result()
    assert answer.status_code == 200
    slowest = max(seconds for _, seconds in answers)
    print(f"GET {took:.2f} s, POST {slowest:.2f} s")
    return took < GET_SECONDS and slowest < POST_SECONDS


@pytest.mark.timeout(180)
@pytest.mark.parametrize("gets", ["/api/destinations/limited", "/api/messages"])
def test_requests_are_answered_soon_beside_forty_posts(stack: Stack, redis: Redis, gets: str) -> None:
    with frozen(redis):
        # A machine that stands still meanwhile makes some tries late.
        wait_until(lambda: all_in_time(stack, gets), "answers that come soon")

        key, made = {"Idempotency-Key": gets}, {"callback_url": "http://127.0.0.1:9/", "delay_seconds": 0}
        first, again = (
            requests.post(f"{stack.url}/api/messages", json=made, headers=key, timeout=60) for _ in range(2)
        )
        assert first.json()["id"] == again.json()["id"]

    def publishes() -> bool:
        assert post(stack, 0)[0].status_code == 201
        found = requests.get(f"{stack.url}/api/messages", params={"state": "worker_queue"}, timeout=60).json()
        return bool(found["messages"])

    wait_until(publishes, "the API to publish again", pause=0.5)
