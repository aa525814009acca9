"""The limiter on a real Redis: rates, slots, breakers, lost state."""

import os
import secrets
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis

from scheduler_app.broker.redis import flow_control
from scheduler_app.broker.redis.flow_control import AWAY_SECONDS, RedisLimiter
from scheduler_app.domain.destination import Breaker, Destination
from scheduler_app.domain.flow_control import (
    FinishedRequest,
    FlowGrant,
    FlowRequest,
    FlowState,
    ReceiverAnswer,
    WaitReason,
)
from scheduler_app.domain.ids import WholeId
from scheduler_app.embedded import Redis
from tests.held_clock import Seconds
from tests.processes import freeze, wait_until

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


@contextmanager
def _answers_nothing(server: Redis) -> Iterator[None]:
    """It is stopped, for longer than anybody may wait for it here."""
    assert server.pid
    freeze(server.pid)
    going_on = threading.Timer(30.0, os.kill, (server.pid, signal.SIGCONT))
    going_on.start()
    try:
        yield
    finally:
        going_on.cancel()
        os.kill(server.pid, signal.SIGCONT)


def destination(name: str = "d", **fields: Any) -> Destination:
    return Destination(id=WholeId(name), url="http://x/", created_at=NOW, updated_at=NOW, **fields)


def ids(count: int, first: int = 0) -> list[str]:
    return [f"e{number}" for number in range(first, first + count)]


def one(limiter: RedisLimiter, made: Destination, **asked: Any) -> FlowGrant:
    (grant,) = limiter.decide([FlowRequest(made, **asked)])
    return grant


def test_a_rate_grants_its_burst_at_once_and_says_when_to_ask_again(limiter: RedisLimiter) -> None:
    made = destination(rate_per_second=0.01, burst=5)
    first = one(limiter, made, wanted=ids(20))
    assert (first.granted, first.why) == (4, WaitReason.RATE)  # a token is kept back for jitter
    assert 99 < first.wait <= 100
    assert one(limiter, made, wanted=ids(20)).granted == 0


def test_a_request_that_has_begun_finds_the_tokens_that_are_kept_back_of_others(
    limiter: RedisLimiter,
) -> None:
    made = destination(rate_per_second=0.01, burst=5)
    assert one(limiter, made, wanted=ids(20), has_begun=True).granted == 5


def test_never_more_than_the_concurrency_holds_slots_and_ends_free_them(limiter: RedisLimiter) -> None:
    made = destination(concurrency=3)
    assert one(limiter, made, wanted=ids(5)).granted == 3
    refused = one(limiter, made, wanted=ids(5, first=5))
    assert (refused.granted, refused.why) == (0, WaitReason.CONCURRENCY)
    freed = one(
        limiter, made, wanted=ids(5, first=5), ended=[FinishedRequest("e0", ReceiverAnswer.WELL, 200, 0.1)]
    )
    assert freed.granted == 1


def test_a_concurrency_that_was_lowered_below_what_is_in_flight_grants_nothing_until_enough_have_ended(
    limiter: RedisLimiter, client: "redis.Redis", prefix: str
) -> None:
    assert one(limiter, destination(concurrency=3), wanted=ids(3)).granted == 3
    lowered = destination(concurrency=1, rate_per_second=1000.0, burst=1000)
    refused = one(limiter, lowered, wanted=ids(5, first=3))
    assert (refused.granted, refused.why) == (0, WaitReason.CONCURRENCY)
    ends = [FinishedRequest(each, ReceiverAnswer.WELL, 200, 0.1) for each in ids(3)]
    assert one(limiter, lowered, wanted=ids(5, first=3), ended=ends).granted == 1


def test_the_slots_of_a_worker_that_died_run_out(limiter: RedisLimiter) -> None:
    made = destination(concurrency=1)
    assert one(limiter, made, wanted=ids(1), slot_seconds=0.0).granted == 1
    assert one(limiter, made, wanted=ids(1, first=1)).granted == 1


def test_many_destinations_are_judged_in_one_call_each_by_itself(limiter: RedisLimiter) -> None:
    asks = [FlowRequest(destination(f"d{n}", concurrency=n + 1), wanted=ids(9)) for n in range(5)]
    assert [grant.granted for grant in limiter.decide(asks)] == [1, 2, 3, 4, 5]


def failed(*event_ids: str) -> list[FinishedRequest]:
    return [FinishedRequest(each, ReceiverAnswer.FAILED, 500, 0.1) for each in event_ids]


def test_a_breaker_opens_after_failures_in_a_row_and_closes_by_a_probe(
    limiter: RedisLimiter, client: "redis.Redis", prefix: str
) -> None:
    made = destination(breaker=Breaker(failures=3, open_seconds=600))
    assert one(limiter, made, ended=failed("a", "b"), wanted=ids(1)).granted == 1
    assert one(limiter, made, ended=[FinishedRequest("e0", ReceiverAnswer.WELL, 200)]).is_open is False
    assert one(limiter, made, ended=failed("a", "b", "c")).is_open
    refused = one(limiter, made, wanted=ids(9))
    assert (refused.granted, refused.why) == (0, WaitReason.BREAKER)
    assert 300 < refused.wait <= 600
    assert limiter.look(made).breaker == "open"
    client.hset(f"{prefix}flow:d", "open_until", "1")  # its time is over
    assert limiter.look(made).breaker == "half-open"
    assert one(limiter, made, wanted=ids(9)).granted == 1
    assert one(limiter, made, wanted=ids(9, first=1)).granted == 0
    assert one(limiter, made, ended=failed("e0")).is_open
    assert one(limiter, made, wanted=ids(9)).granted == 0
    client.hset(f"{prefix}flow:d", "open_until", "1")
    assert one(limiter, made, wanted=ids(9)).granted == 1
    closed = one(limiter, made, ended=[FinishedRequest("e0", ReceiverAnswer.WELL, 200)], wanted=ids(9))
    assert (closed.granted, closed.is_open) == (9, False)


def test_a_breaker_that_allows_more_failures_by_now_opens_again_after_a_failed_probe(
    limiter: RedisLimiter, client: "redis.Redis", prefix: str
) -> None:
    assert one(limiter, destination(breaker=Breaker(1, 600.0)), ended=failed("a")).is_open
    client.hset(f"{prefix}flow:d", "open_until", "1")  # its time is over
    edited = destination(breaker=Breaker(failures=9, open_seconds=600))
    assert one(limiter, edited, wanted=ids(9)).granted == 1
    one(limiter, edited, ended=failed("e0"))
    assert limiter.look(edited).open_for > 300


def test_a_breaker_sees_no_more_requests_than_failures_however_many_are_in_flight(
    limiter: RedisLimiter,
) -> None:
    made = destination(breaker=Breaker(failures=10, open_seconds=600), concurrency=5)
    flying = ids(one(limiter, made, wanted=ids(5)).granted)
    seen = len(flying)
    while flying:
        grant = one(limiter, made, ended=failed(flying.pop(0)), wanted=ids(5, first=seen))
        flying += ids(grant.granted, first=seen)
        seen += grant.granted
    assert seen == 10


def test_a_breaker_lets_no_wave_out_before_an_answer_says_that_the_receiver_is_there(
    limiter: RedisLimiter, client: "redis.Redis", prefix: str
) -> None:
    made = destination(breaker=Breaker(failures=5, open_seconds=60))
    wave = one(limiter, made, wanted=ids(100))
    assert (wave.granted, wave.why) == (5, WaitReason.CONCURRENCY)
    assert one(limiter, made, wanted=ids(100, first=5)).granted == 0
    answered = one(
        limiter, made, ended=[FinishedRequest("e0", ReceiverAnswer.WELL, 200, 0.1)], wanted=ids(100, first=5)
    )
    assert answered.granted == 100
    # The next wave, long after that answer.
    client.delete(f"{prefix}flow:d:slots")
    client.hset(f"{prefix}flow:d", "well_at", "1")
    assert one(limiter, made, wanted=ids(100, first=200)).granted == 5
    # And after Redis lost its data.
    for key in client.scan_iter(f"{prefix}flow:d*"):
        client.delete(key)
    assert one(limiter, made, wanted=ids(100, first=300)).granted == 5


def test_a_breaker_of_a_slow_receiver_holds_up_nothing_while_answers_come(
    limiter: RedisLimiter, client: "redis.Redis", prefix: str
) -> None:
    made = destination(breaker=Breaker(failures=1, open_seconds=60))
    one(limiter, made, ended=[FinishedRequest("a", ReceiverAnswer.WELL, 200, 3_000.0)])
    seconds, micros = client.time()
    client.hset(f"{prefix}flow:d", "well_at", str(seconds + micros / 1e6 - 5_000))
    assert one(limiter, made, wanted=ids(9)).granted == 9


@pytest.mark.parametrize(("asked", "wait"), [(None, 1.0), (86_400.0, 86_400.0), (1e9, 86_400.0)])
def test_a_receiver_that_asks_for_patience_is_left_alone_up_to_a_maximum(
    limiter: RedisLimiter, asked: float | None, wait: float
) -> None:
    made = destination(concurrency=5)
    end = FinishedRequest("a", ReceiverAnswer.FAILED, 429, 0.1, slow_down=True, retry_after=asked)
    refused = one(limiter, made, ended=[end], wanted=ids(1))
    assert (refused.granted, refused.why) == (0, WaitReason.ASKED)
    assert wait - 1 < refused.wait <= wait
    assert limiter.look(made).answers[0].status_code == 429


def slowed(retry_after: float | None = None) -> list[FinishedRequest]:
    return [FinishedRequest("a", ReceiverAnswer.FAILED, 429, 0.1, slow_down=True, retry_after=retry_after)]


def test_of_two_pauses_that_a_receiver_asks_for_the_longer_one_holds(limiter: RedisLimiter) -> None:
    made = destination(concurrency=5)
    one(limiter, made, ended=slowed(600.0))
    one(limiter, made, ended=slowed(5.0))
    assert 300 < limiter.look(made).asked_to_wait <= 600


def test_a_pause_doubles_with_each_demand_and_begins_anew_after_a_success(
    limiter: RedisLimiter, client: "redis.Redis", prefix: str
) -> None:
    made = destination(concurrency=5)

    def pause(ended: list[FinishedRequest]) -> float:
        # Asked for with the demand: Redis judges both by one reading of its clock.
        found = one(limiter, made, ended=ended, wanted=ids(1)).wait
        client.hset(f"{prefix}flow:d", "blocked", "0")  # it is over
        return found

    doubling = [pause(slowed()) for _ in range(8)]
    assert doubling == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60], abs=0.001)
    again = pause([FinishedRequest("b", ReceiverAnswer.WELL, 200), *slowed()])
    assert again == pytest.approx(1, abs=0.001)


def test_places_in_the_line_are_a_rate_apart_and_never_given_twice(limiter: RedisLimiter) -> None:
    made = destination(rate_per_second=0.02)
    first = one(limiter, made, reserve=10)
    second = one(limiter, made, reserve=1)
    assert (first.step, first.first) == (50, 0.0)
    # Each counts from its own instant.
    assert 300 < second.first - first.first <= 500


def test_after_a_loss_nothing_is_granted_until_workers_have_told_what_they_hold(
    limiter: RedisLimiter, client: "redis.Redis", prefix: str
) -> None:
    made = destination(rate_per_second=0.01, burst=5, concurrency=5)
    assert one(limiter, made, wanted=ids(4)).granted == 4
    for key in client.scan_iter(f"{prefix}flow:*"):
        client.delete(key)
    refused = one(limiter, made, wanted=ids(9, first=4), held=ids(4))
    assert (refused.granted, refused.why) == (0, WaitReason.RESTART)
    client.set(f"{prefix}flow:began", "1")
    assert one(limiter, made, wanted=ids(9, first=4), held=ids(4)).granted == 1
    assert limiter.look(made).in_flight == 5


def test_a_redis_that_is_away_is_an_error_of_its_own_kind() -> None:
    limiter = RedisLimiter.of_url("redis://127.0.0.1:1", "x:")
    with pytest.raises(limiter.unavailable):
        limiter.decide([FlowRequest(destination())])


def test_a_redis_that_was_away_is_asked_again_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = Seconds()
    monkeypatch.setattr(flow_control, "monotonic", seconds)
    limiter = RedisLimiter.of_url("redis://127.0.0.1:1", "x:")

    def fault() -> str:
        with pytest.raises(limiter.unavailable) as raised:
            limiter.look(destination())
        return str(raised.value)

    assert "refused" in fault()
    assert fault() == "it did not answer a moment ago"
    seconds.passed += AWAY_SECONDS
    assert "refused" in fault()


def test_a_redis_that_does_not_answer_is_given_up_after_the_limit_and_left_alone_for_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flow_control, "monotonic", Seconds())  # the moment is not over here
    with (
        tempfile.TemporaryDirectory(prefix="redis-") as folder,
        Redis(Path(folder)) as server,
        _answers_nothing(server),
    ):
        limiter = RedisLimiter.of_url(server.url, "x:", seconds=0.2)
        with pytest.raises(redis.TimeoutError):
            limiter.decide([FlowRequest(destination())])
        with pytest.raises(limiter.unavailable, match="it did not answer a moment ago"):
            limiter.look(destination())
        limiter.close()


def test_a_limiter_that_is_closed_has_left_no_connection(
    client: "redis.Redis", redis_url: str, prefix: str
) -> None:
    def connected() -> bool:
        return any(each["name"] == prefix for each in client.client_list())

    limiter = RedisLimiter(redis.Redis.from_url(redis_url, client_name=prefix), prefix)
    limiter.look(destination())
    assert connected()
    limiter.close()
    wait_until(lambda: not connected(), "Redis to see the end of the connection")


def test_a_look_shows_how_a_destination_is_and_changes_nothing(
    limiter: RedisLimiter, client: "redis.Redis", prefix: str
) -> None:
    made = destination(rate_per_second=0.01, burst=5, concurrency=9, breaker=Breaker(3, 60.0))
    assert limiter.look(made) == FlowState("closed", 0, 0, 4.0, 0.0, 0.0, 0.0, ())
    assert one(limiter, made, wanted=ids(3)).granted == 3
    ended = [
        FinishedRequest("e0", ReceiverAnswer.FAILED, None, 0.1),
        FinishedRequest("e1", ReceiverAnswer.WELL, 204, 0.1),
    ]
    one(limiter, made, ended=[*failed("e9"), *ended], reserve=6)
    one(limiter, made, ended=failed("e8"))
    for _ in range(2):
        found = limiter.look(made)
        assert (found.breaker, found.failures, found.in_flight, found.open_for) == ("closed", 1, 1, 0.0)
        assert found.tokens == pytest.approx(1.0, abs=0.5)
        assert 200 < found.line <= 300
        told = [(each.status_code, each.answer) for each in found.answers]
        assert told == [
            *((500, ReceiverAnswer.FAILED), (204, ReceiverAnswer.WELL)),
            *((None, ReceiverAnswer.FAILED), (500, ReceiverAnswer.FAILED)),
        ]
        assert all(0 <= each.seconds_ago < 60 for each in found.answers)
    # A destination without the limit has neither tokens nor a breaker.
    plain = limiter.look(destination(concurrency=9))
    assert (plain.tokens, plain.breaker, plain.in_flight) == (None, "closed", 1)
    limiter.look(destination("never used", rate_per_second=1.0))
    assert not list(client.scan_iter(f"{prefix}flow:never used*"))


def test_an_open_breaker_that_was_taken_away_is_shown_as_closed(limiter: RedisLimiter) -> None:
    assert one(limiter, destination(breaker=Breaker(1, 60.0)), ended=failed("a")).is_open
    opened = limiter.look(destination(breaker=Breaker(1, 60.0)))
    assert opened.breaker == "open"
    assert 0 < opened.open_for <= 60
    assert limiter.look(destination()).breaker == "closed"


def test_the_tokens_that_are_shown_are_none_after_a_burst_and_never_negative(limiter: RedisLimiter) -> None:
    made = destination(rate_per_second=0.01, burst=3)
    assert limiter.look(made).tokens == 2.0
    assert one(limiter, made, wanted=ids(9)).granted == 2
    assert limiter.look(made).tokens == pytest.approx(0.0, abs=0.5)
    # Whose burst was larger before it was edited has fewer than none.
    assert limiter.look(destination(rate_per_second=0.01, burst=2)).tokens == 0.0


def test_of_a_fast_rate_as_many_tokens_are_kept_back_as_come_while_requests_leave(
    limiter: RedisLimiter,
) -> None:
    # Of seconds since 1970, a double cannot tell a hundredth of a thousandth.
    assert one(limiter, destination("a", rate_per_second=50.0, burst=20), wanted=ids(30)).granted in (14, 15)
    assert one(limiter, destination("b", rate_per_second=50.0, burst=2), wanted=ids(30)).granted == 1


def test_only_the_last_answers_are_kept(limiter: RedisLimiter) -> None:
    made = destination(concurrency=1)
    one(
        limiter,
        made,
        ended=[FinishedRequest(f"e{number}", ReceiverAnswer.FAILED, 500 + number) for number in range(8)],
    )
    assert [each.status_code for each in limiter.look(made).answers] == [507, 506, 505, 504, 503]


def test_an_end_without_an_answer_frees_the_slot_and_says_nothing_of_the_receiver(
    limiter: RedisLimiter,
) -> None:
    made = destination(concurrency=1, breaker=Breaker(1, 60.0))
    assert one(limiter, made, wanted=ids(1)).granted == 1
    freed = one(limiter, made, ended=[FinishedRequest("e0", ReceiverAnswer.NOTHING)], wanted=ids(1, first=1))
    assert (freed.granted, freed.is_open) == (1, False)
    assert limiter.look(made).answers == ()


def test_the_line_of_a_destination_moves_as_fast_as_its_requests_end(limiter: RedisLimiter) -> None:
    made = destination(concurrency=2)
    one(limiter, made, ended=[FinishedRequest("a", ReceiverAnswer.WELL, 200, took=1_000.0)])
    assert one(limiter, made, reserve=4).step == 500.0
    assert 1_500 < limiter.look(made).line <= 2_000
    # What was reserved twice is given back.
    one(limiter, made, reserve=-2)
    assert 500 < limiter.look(made).line <= 1_000
