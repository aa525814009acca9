"""A worker beside the limits of a destination: what starts, what is put off and until when, what is freed."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
import redis
from redis.exceptions import ConnectionError as RedisAway
from structlog.testing import capture_logs

from scheduler_app.broker.redis.flow_control import RedisLimiter
from scheduler_app.clock import clock, monotonic
from scheduler_app.domain.destination import Breaker, Destination
from scheduler_app.domain.flow_control import FlowRequest
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.store import Store
from scheduler_app.worker import Pipeline, flow_control
from scheduler_app.worker.capacity import MAX_UNRECORDED
from tests.acceptance.journal import Journal
from tests.builders import event, schedule
from tests.executors import executors
from tests.integration.actions.receiver import says
from tests.processes import PATIENCE_SECONDS, wait_until

SECOND = timedelta(seconds=1)


class Bench:
    """A worker's pipeline, and one destination with events that are due."""

    def __init__(self, store: Store, limiter: RedisLimiter, journal: Journal) -> None:
        self.store = store
        self.limiter = limiter
        self.journal = journal
        self.pipeline = Pipeline(
            store,
            executors(),
            now=clock.now,
            worker="w1",
            horizon_seconds=5,
            max_events=1_000,
            limiter=limiter,
        )
        self.pipeline.start()

    def destination(self, url: str, **limits: Any) -> Destination:
        now = clock.now()
        made = Destination(id=WholeId("d"), url=url, created_at=now, updated_at=now, **limits)
        assert self.store.destinations.insert(made)
        self.store.schedules.insert(schedule(now - 10 * SECOND, url=NOT_GIVEN, destination="d"))
        return made

    def events(self, count: int) -> list[str]:
        """Events that are due since a moment, a millisecond apart."""
        first = clock.now().replace(microsecond=0) - SECOND
        made = [
            event(first + timedelta(milliseconds=number), origin="destination d") for number in range(count)
        ]
        self.store.events.insert(made, clock.now(), "made")
        return [each.id for each in made]

    def deliver(self, ids: Sequence[str]) -> None:
        assert self.pipeline.delivery.deliver(ids) == len(ids)

    def wait_until_empty(self) -> None:
        assert self.pipeline.wait_until_empty(PATIENCE_SECONDS)

    def row(self, event_id: str) -> dict[str, Any]:
        found = self.store.mongo.collection("events").find_one({"_id": event_id})
        assert found is not None
        return found

    def states(self, ids: Sequence[str]) -> list[str]:
        return [self.row(each)["state"] for each in ids]

    def put_off(self, ids: Sequence[str], now: datetime) -> list[float]:
        """By how many seconds each was put off."""
        return [(self.row(each)["due_at"] - now).total_seconds() for each in ids]

    def sent(self, path: str) -> list[str]:
        return [call.key for call in self.journal.calls[path]]


@pytest.fixture
def journal() -> Iterator[Journal]:
    with closing(Journal()) as made:
        yield made


@pytest.fixture
def limiter(redis_url: str) -> RedisLimiter:
    prefix = f"test-{secrets.token_hex(6)}:"
    client = redis.Redis.from_url(redis_url)
    client.set(f"{prefix}flow:began", "1")
    return RedisLimiter(client, prefix)


@pytest.fixture
def bench(store: Store, limiter: RedisLimiter, journal: Journal) -> Iterator[Bench]:
    made = Bench(store, limiter, journal)
    yield made
    made.pipeline.stop_starting()
    made.pipeline.interrupt()
    made.pipeline.stop()


def test_what_a_slow_rate_has_no_room_for_is_put_off_each_to_its_own_place(
    bench: Bench, journal: Journal
) -> None:
    bench.destination(journal.url("/a"), rate_per_second=0.01)
    ids, now = bench.events(4), clock.now()
    bench.deliver(ids)
    bench.wait_until_empty()
    assert bench.sent("/a") == ids[:1]
    assert bench.states(ids) == ["completed", *["ready_queue"] * 3]
    first, second, third = bench.put_off(ids[1:], now)
    assert 0 < first < 160
    assert second - first == pytest.approx(100, abs=0.01)
    assert third - second == pytest.approx(100, abs=0.01)
    for each in ids[1:]:
        assert "the destination d waits for its rate" in bench.row(each)["status"][-1]["message"]


def test_a_breaker_that_opened_puts_off_what_waits_and_is_shown(bench: Bench, journal: Journal) -> None:
    made = bench.destination(journal.script("/bad", says("500 No")), breaker=Breaker(1, 300.0))
    bad, *others = bench.events(4)
    bench.deliver([bad])
    wait_until(lambda: bench.states([bad]) == ["retrying"], "the failure")
    wait_until(lambda: bench.limiter.look(made).breaker == "open", "the breaker to open")
    now = clock.now()
    bench.deliver(others)
    bench.wait_until_empty()
    assert bench.sent("/bad") == [bad]
    assert all(250 < each < 310 for each in bench.put_off(others, now))
    assert bench.put_off(others, now) == sorted(bench.put_off(others, now))
    assert "waits for its breaker to close" in bench.row(others[0])["status"][-1]["message"]
    shown = bench.pipeline.flow_control.open_breakers
    assert shown(monotonic()) == ["d"]
    assert shown(monotonic() + 299) == ["d"]
    assert shown(monotonic() + 400) == []


def test_the_end_of_a_request_lets_the_next_one_start(
    bench: Bench, journal: Journal, slow: Callable[[], None]
) -> None:
    made = bench.destination(journal.url("/slow"), concurrency=1)
    ids = bench.events(3)
    bench.deliver(ids)
    wait_until(lambda: len(bench.sent("/slow")) == 1, "the first request")
    assert bench.limiter.look(made).in_flight == 1
    slow()
    bench.wait_until_empty()
    assert bench.sent("/slow") == ids
    assert bench.states(ids) == ["completed"] * 3
    wait_until(lambda: bench.limiter.look(made).in_flight == 0, "all slots to be free")
    answers = bench.limiter.look(made).answers
    assert [each.status_code for each in answers] == [200] * 3
    wait_until(lambda: not bench.pipeline.flow_control._queues, "the destination to be forgotten")


def test_a_worker_that_ends_gives_back_what_waits_for_room(
    bench: Bench, journal: Journal, slow: Callable[[], None]
) -> None:
    bench.destination(journal.url("/slow"), concurrency=1)
    ids = bench.events(3)
    bench.deliver(ids)
    wait_until(lambda: len(bench.sent("/slow")) == 1, "the first request")
    bench.pipeline.stop_starting()
    wait_until(lambda: bench.states(ids[1:]) == ["ready_queue"] * 2, "what waits to be given back")
    assert bench.row(ids[1])["status"][-1]["message"] == "Given back by w1"
    slow()
    bench.wait_until_empty()
    assert bench.sent("/slow") == ids[:1]


def test_what_another_worker_has_by_now_waits_for_no_room_here(
    bench: Bench, journal: Journal, slow: Callable[[], None]
) -> None:
    bench.destination(journal.url("/slow"), concurrency=1)
    first, lost, last = bench.events(3)
    bench.deliver([first])
    wait_until(lambda: len(bench.sent("/slow")) == 1, "the first request")
    bench.deliver([lost])
    bench.deliver([last])
    events = bench.store.mongo.collection("events")
    events.update_one({"_id": lost}, {"$set": {"owner": "another"}})
    for lease in bench.pipeline.leases._leases:
        bench.pipeline.leases.renew(lease)
    wait_until(lambda: bench.pipeline.capacity.held == 2, "its room to be free")
    slow()
    bench.wait_until_empty()
    assert bench.sent("/slow") == [first, last]
    assert bench.row(lost)["state"] == "running"


def test_the_slot_of_an_event_that_another_worker_has_by_now_is_free_at_once(
    bench: Bench, journal: Journal
) -> None:
    made = bench.destination(journal.url("/a"), concurrency=1)
    lost, other = bench.events(2)
    bench.pipeline.backlog.put(MAX_UNRECORDED, monotonic())  # nothing starts
    bench.pipeline.capacity._is_behind = lambda: False
    bench.deliver([lost])
    wait_until(lambda: bench.limiter.look(made).in_flight == 1, "its slot to be granted")
    bench.store.mongo.collection("events").update_one({"_id": lost}, {"$set": {"owner": "another"}})
    for lease in bench.pipeline.leases._leases:
        bench.pipeline.leases.renew(lease)
    bench.deliver([other])
    bench.pipeline.backlog.written(MAX_UNRECORDED)
    bench.wait_until_empty()
    assert bench.sent("/a") == [other]


def test_while_redis_knows_no_durations_what_waits_is_put_off_by_what_this_worker_knows(
    bench: Bench, journal: Journal, slow: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.destination(journal.url("/slow"), concurrency=1)
    first, *others = bench.events(6)
    bench.deliver([first])
    wait_until(lambda: len(bench.sent("/slow")) == 1, "the first request")
    later = monotonic() + 1_000  # which the first request has taken by then
    monkeypatch.setattr(flow_control, "monotonic", lambda: later)
    bench.deliver(others)
    wait_until(lambda: bench.states(others).count("ready_queue") == 3, "three to be put off")
    due = [bench.row(each)["due_at"] for each in others[2:]]
    assert min(after - before for before, after in pairwise(due)) > 900 * SECOND


def test_a_paused_destination_is_asked_for_again_after_a_while(bench: Bench, journal: Journal) -> None:
    bench.destination(journal.url("/a"), paused=True)
    ids, now = bench.events(3), clock.now()
    bench.deliver(ids)
    bench.wait_until_empty()
    assert bench.sent("/a") == []
    delays = bench.put_off(ids, now)
    assert delays == sorted(delays)
    assert all(1 < each < 120 for each in delays)
    assert delays[-1] - delays[0] < 1, "a pause has no rate by which they would come one after the other"
    assert "waits for it to be resumed" in bench.row(ids[0])["status"][-1]["message"]


def test_limits_that_cannot_be_read_are_told_of_once_and_ends_are_told_when_they_can(
    bench: Bench, journal: Journal, slow: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bench.destination(journal.url("/slow"), concurrency=1)
    first, *others = bench.events(6)
    bench.deliver([first])
    wait_until(lambda: len(bench.sent("/slow")) == 1, "the first request")
    decide = bench.limiter.decide

    def away(_: Sequence[FlowRequest]) -> Any:
        raise RedisAway("away")

    with capture_logs() as lines:
        monkeypatch.setattr(bench.limiter, "decide", away)
        now = clock.now()
        for some in (others[:1], others[1:]):
            bench.deliver(some)
            wait_until(lambda some=some: set(bench.states(some)) == {"ready_queue"}, "it to be put off")  # type: ignore[misc]
        slow()
        bench.wait_until_empty()
        monkeypatch.setattr(bench.limiter, "decide", decide)
        wait_until(lambda: bench.limiter.look(made).in_flight == 0, "the slot to be free")
        wait_until(lambda: any(line["event"] == "flow.known" for line in lines), "the news")
    assert [line["event"] for line in lines if line["event"].startswith("flow.")] == [
        *("flow.unknown", "flow.known")
    ]
    assert all(0 < each < 60 for each in bench.put_off(others, now))
    together = bench.put_off(others[1:], now)
    assert together[-1] - together[0] < 1, "nothing is known by which they would come one after the other"
    assert "Redis does not answer" in bench.row(others[0])["status"][-1]["message"]
    assert bench.limiter.look(made).answers[0].status_code == 200
