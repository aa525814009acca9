"""The limiter on a real Redis: rates, slots, breakers, lost state."""

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import redis

from scheduler_app.broker.redis.flow_control import RedisLimiter
from scheduler_app.domain.destination import Breaker, Destination
from scheduler_app.domain.flow import Answer, Ask, Ended, Grant, Why

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def prefix() -> str:
    return f"test-{secrets.token_hex(6)}:"


@pytest.fixture
def client(redis_url: str, prefix: str) -> "Iterator[redis.Redis]":
    made = redis.Redis.from_url(redis_url)
    made.set(f"{prefix}flow:began", "1")  # long ago: nothing was lost
    yield made
    made.close()


@pytest.fixture
def limiter(client: "redis.Redis", prefix: str) -> RedisLimiter:
    return RedisLimiter(client, prefix)


def destination(name: str = "d", **fields: Any) -> Destination:
    return Destination(id=name, url="http://x/", created_at=NOW, updated_at=NOW, **fields)


def ids(count: int, first: int = 0) -> list[str]:
    return [f"e{number}" for number in range(first, first + count)]


def one(limiter: RedisLimiter, made: Destination, **asked: Any) -> Grant:
    (grant,) = limiter.decide([Ask(made, **asked)])
    return grant


def test_a_rate_grants_its_burst_at_once_and_says_when_to_ask_again(limiter: RedisLimiter) -> None:
    made = destination(rate_per_second=0.01, burst=5)
    first = one(limiter, made, wanted=ids(20))
    assert (first.granted, first.why) == (4, Why.RATE)  # a token is kept back for jitter
    assert 99 < first.wait <= 100
    assert one(limiter, made, wanted=ids(20)).granted == 0


def test_never_more_than_the_concurrency_holds_slots_and_ends_free_them(limiter: RedisLimiter) -> None:
    made = destination(concurrency=3)
    assert one(limiter, made, wanted=ids(5)).granted == 3
    refused = one(limiter, made, wanted=ids(5, first=5))
    assert (refused.granted, refused.why) == (0, Why.CONCURRENCY)
    freed = one(limiter, made, wanted=ids(5, first=5), ended=[Ended("e0", Answer.WELL, 200, 0.1)])
    assert freed.granted == 1


def test_the_slots_of_a_worker_that_died_run_out(limiter: RedisLimiter) -> None:
    made = destination(concurrency=1)
    assert one(limiter, made, wanted=ids(1), slot_seconds=0.0).granted == 1
    assert one(limiter, made, wanted=ids(1, first=1)).granted == 1


def test_many_destinations_are_judged_in_one_call_each_by_itself(limiter: RedisLimiter) -> None:
    asks = [Ask(destination(f"d{n}", concurrency=n + 1), wanted=ids(9)) for n in range(5)]
    assert [grant.granted for grant in limiter.decide(asks)] == [1, 2, 3, 4, 5]


def failed(*event_ids: str) -> list[Ended]:
    return [Ended(each, Answer.FAILED, 500, 0.1) for each in event_ids]


def test_a_breaker_opens_after_failures_in_a_row_and_closes_by_a_probe(
    limiter: RedisLimiter, client: "redis.Redis", prefix: str
) -> None:
    made = destination(breaker=Breaker(failures=3, open_seconds=60))
    assert one(limiter, made, ended=failed("a", "b"), wanted=ids(1)).granted == 1
    assert one(limiter, made, ended=[Ended("e0", Answer.WELL, 200)]).is_open is False
    assert one(limiter, made, ended=failed("a", "b", "c")).is_open
    refused = one(limiter, made, wanted=ids(9))
    assert (refused.granted, refused.why) == (0, Why.BREAKER)
    assert 30 < refused.wait <= 60
    assert limiter.look(made).breaker == "open"
    client.hset(f"{prefix}flow:d", "open_until", "1")  # its time is over
    assert limiter.look(made).breaker == "half-open"
    assert one(limiter, made, wanted=ids(9)).granted == 1
    assert one(limiter, made, wanted=ids(9, first=1)).granted == 0
    assert one(limiter, made, ended=failed("e0")).is_open
    assert one(limiter, made, wanted=ids(9)).granted == 0
    client.hset(f"{prefix}flow:d", "open_until", "1")
    assert one(limiter, made, wanted=ids(9)).granted == 1
    closed = one(limiter, made, ended=[Ended("e0", Answer.WELL, 200)], wanted=ids(9))
    assert (closed.granted, closed.is_open) == (9, False)


def test_a_breaker_sees_no_more_requests_than_failures_however_many_are_in_flight(
    limiter: RedisLimiter,
) -> None:
    made = destination(breaker=Breaker(failures=10, open_seconds=60), concurrency=5)
    flying = ids(one(limiter, made, wanted=ids(5)).granted)
    seen = len(flying)
    while flying:
        grant = one(limiter, made, ended=failed(flying.pop(0)), wanted=ids(5, first=seen))
        flying += ids(grant.granted, first=seen)
        seen += grant.granted
    assert seen == 10


@pytest.mark.parametrize(("asked", "wait"), [(None, 1.0), (86_400.0, 86_400.0), (1e9, 86_400.0)])
def test_a_receiver_that_asks_for_patience_is_left_alone_up_to_a_maximum(
    limiter: RedisLimiter, asked: float | None, wait: float
) -> None:
    made = destination(concurrency=5)
    end = Ended("a", Answer.FAILED, 429, 0.1, slow_down=True, retry_after=asked)
    refused = one(limiter, made, ended=[end], wanted=ids(1))
    assert (refused.granted, refused.why) == (0, Why.ASKED)
    assert wait - 1 < refused.wait <= wait
    assert limiter.look(made).answers[0].status_code == 429


def test_places_in_the_line_are_a_rate_apart_and_never_given_twice(limiter: RedisLimiter) -> None:
    made = destination(rate_per_second=0.02)
    first = one(limiter, made, reserve=10)
    second = one(limiter, made, reserve=1)
    assert first.step == 50
    # Each counts from its own instant.
    assert 450 < second.first - first.first <= 500


def test_after_a_loss_nothing_is_granted_until_workers_have_told_what_they_hold(
    limiter: RedisLimiter, client: "redis.Redis", prefix: str
) -> None:
    made = destination(rate_per_second=0.01, burst=5, concurrency=5)
    assert one(limiter, made, wanted=ids(4)).granted == 4
    for key in client.scan_iter(f"{prefix}flow:*"):
        client.delete(key)
    refused = one(limiter, made, wanted=ids(9, first=4), held=ids(4))
    assert (refused.granted, refused.why) == (0, Why.RESTART)
    client.set(f"{prefix}flow:began", "1")
    assert one(limiter, made, wanted=ids(9, first=4), held=ids(4)).granted == 1
    assert limiter.look(made).in_flight == 5


def test_a_redis_that_is_away_is_an_error_of_its_own_kind() -> None:
    limiter = RedisLimiter.of_url("redis://127.0.0.1:1", "x:")
    with pytest.raises(limiter.unavailable):
        limiter.decide([Ask(destination())])
