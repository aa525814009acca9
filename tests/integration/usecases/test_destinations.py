"""A worker and a dispatcher beside destinations: what is sent, what waits, and what its history says."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import redis
from cryptography.fernet import Fernet

from scheduler_app.broker.redis.flow_control import RedisLimiter
from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.domain.action import CALLBACKS, QueueLengths
from scheduler_app.domain.destination import Auth, AuthType, Breaker, Destination
from scheduler_app.domain.flow_control import FlowGrant, FlowRequest, FlowState, Limited, Limiter, WaitReason
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.store import Store
from scheduler_app.usecases.duties.dispatch import AHEAD_SECONDS, PAUSED_SECONDS, DestinationLimits, Dispatch
from scheduler_app.usecases.duties.dispatch_selection import Batch
from scheduler_app.worker import Pipeline
from tests.acceptance.journal import Journal
from tests.builders import event, schedule
from tests.executors import executors
from tests.processes import PATIENCE_SECONDS

SECOND = timedelta(seconds=1)
KEY = "destination d"


@pytest.fixture
def journal() -> Iterator[Journal]:
    with closing(Journal()) as made:
        yield made


@pytest.fixture
def limiter(redis_url: str) -> Iterator[RedisLimiter]:
    prefix = f"test-{secrets.token_hex(6)}:"
    client = redis.Redis.from_url(redis_url)
    client.set(f"{prefix}flow:began", "1")
    with closing(RedisLimiter(client, prefix)) as made:
        yield made


@pytest.fixture
def work(store: Store) -> Iterator[Callable[..., None]]:
    """Lets a worker deliver events, and waits until all is written."""
    pipelines: list[Pipeline] = []

    def worked(ids: Sequence[str], limiter: Limiter | None) -> None:
        pipeline = Pipeline(
            store,
            executors(),
            now=clock.now,
            worker="w1",
            horizon_seconds=5,
            max_events=1_000,
            limiter=limiter,
        )
        pipelines.append(pipeline)
        pipeline.start()
        pipeline.delivery.deliver(ids)
        assert pipeline.wait_until_empty(PATIENCE_SECONDS)

    yield worked
    for pipeline in pipelines:
        pipeline.stop_starting()
        pipeline.stop()


def put(store: Store, url: str, **fields: Any) -> Destination:
    now = clock.now()
    made = Destination(id=WholeId("d"), url=url, created_at=now, updated_at=now, **fields)
    assert store.destinations.insert(made)
    return made


def due(store: Store, count: int = 1) -> list[str]:
    """Events of one schedule that names the destination, due a moment ago, a millisecond apart."""
    now = clock.now()
    store.schedules.insert(schedule(now - 10 * SECOND, url=NOT_GIVEN, destination="d"))
    first = now.replace(microsecond=0) - SECOND
    made = [event(first + timedelta(milliseconds=number), origin=KEY) for number in range(count)]
    store.events.insert(made, now, "made")
    return [each.id for each in made]


def row(store: Store, event_id: str) -> dict[str, Any]:
    found = store.mongo.collection("events").find_one({"_id": event_id})
    assert found is not None
    return found


def last_words(store: Store, event_id: str) -> str:
    return str(row(store, event_id)["status"][-1]["message"])


def test_an_event_is_sent_as_its_destination_says(
    store: Store, journal: Journal, work: Callable[..., None], limiter: Limiter
) -> None:
    put(store, journal.url("/a"), auth=Auth(AuthType.BEARER, "t"), method="PUT", rate_per_second=100)
    (event_id,) = due(store)
    work([event_id], limiter)
    (call,) = journal.calls["/a"]
    assert (call.seen.method, call.seen.headers["authorization"]) == ("PUT", "Bearer t")
    assert row(store, event_id)["state"] == "completed"


@pytest.mark.parametrize("limits", [{"rate_per_second": 5}, {"concurrency": 1}, {"breaker": Breaker(1, 60)}])
def test_without_an_answer_about_limits_nothing_is_sent_and_the_history_says_why(
    store: Store, journal: Journal, work: Callable[..., None], limits: dict[str, Any]
) -> None:
    put(store, journal.url("/a"), **limits)
    (event_id,) = due(store)
    with closing(RedisLimiter.of_url("redis://127.0.0.1:1", "x:")) as away:
        work([event_id], away)
    assert not journal.calls["/a"]
    assert row(store, event_id)["state"] == "ready_queue"
    assert row(store, event_id)["attempt"] == 0
    assert "Redis does not answer" in last_words(store, event_id)


def test_a_destination_without_limits_asks_nobody(
    store: Store, journal: Journal, work: Callable[..., None]
) -> None:
    put(store, journal.url("/a"))
    (event_id,) = due(store)
    work([event_id], None)
    assert row(store, event_id)["state"] == "completed"


def test_events_of_a_paused_destination_wait_in_their_order(
    store: Store, journal: Journal, work: Callable[..., None], limiter: Limiter
) -> None:
    put(store, journal.url("/a"), paused=True)
    ids = due(store, 3)
    work(ids, limiter)
    assert not journal.calls["/a"]
    assert "waits for it to be resumed" in last_words(store, ids[0])
    times = [row(store, each)["due_at"] for each in ids]
    assert times == sorted(set(times))


def test_an_event_whose_destination_is_gone_ends_as_a_dead_letter_that_says_so(
    store: Store, work: Callable[..., None], limiter: Limiter
) -> None:
    (event_id,) = due(store)
    work([event_id], limiter)
    assert row(store, event_id)["state"] == "error"
    assert "there is no destination d" in last_words(store, event_id)


def test_a_method_that_the_destination_no_longer_allows_is_not_sent(
    store: Store, journal: Journal, work: Callable[..., None], limiter: Limiter
) -> None:
    put(store, journal.url("/a"), allowed_methods=("POST",))
    (event_id,) = due(store)
    work([event_id], limiter)
    assert not journal.calls["/a"]
    assert "allows POST, and not GET" in last_words(store, event_id)


def test_a_corrupt_destination_stops_its_own_events_and_no_others(
    store: Store, journal: Journal, work: Callable[..., None], limiter: Limiter
) -> None:
    put(store, journal.url("/a"))
    store.mongo.collection("destinations").update_one({"_id": "d"}, {"$set": {"paused": "no"}})
    ids = due(store)
    now = clock.now()
    store.schedules.insert(schedule(now - 10 * SECOND, "other", url=journal.url("/b")))
    other = event(now, "other")
    store.events.insert([other], now, "made")
    work([*ids, other.id], limiter)
    assert "paused is a str" in last_words(store, ids[0])
    assert row(store, other.id)["state"] == "completed"


def places(store: Store, ids: Sequence[str], now: datetime) -> list[float]:
    return [(row(store, each)["due_at"] - now).total_seconds() for each in ids]


def test_a_backlog_is_put_off_each_event_to_its_own_place_without_a_message(
    store: Store, limiter: Limiter
) -> None:
    put(store, "http://127.0.0.1:9/", rate_per_second=10)
    ids, now = due(store, 100), clock.now()
    found = store.outbox.due(now, limit=200)
    kept = DestinationLimits(store, limiter).in_time(found, now, now)
    assert [each.id for each in kept] == ids[: len(kept)]
    assert len(kept) == 21  # those of the next two seconds
    later = places(store, ids[len(kept) :], now)
    assert later == pytest.approx([2.1 + 0.1 * number for number in range(79)], abs=0.2)
    assert later == sorted(later)
    put_off = row(store, ids[-1])
    assert (put_off["state"], put_off.get("dispatches", 0)) == ("ready_queue", 0)
    assert put_off["postponed_from"] == put_off["run_time"]
    assert "its place in the line of the destination d" in last_words(store, ids[-1])


def test_places_that_two_dispatchers_took_for_the_same_events_are_given_back(
    store: Store, limiter: Limiter
) -> None:
    made = put(store, "http://127.0.0.1:9/", rate_per_second=1)
    due(store, 50)
    now = clock.now()
    found = store.outbox.due(now, limit=200)
    for _ in range(2):
        DestinationLimits(store, limiter).in_time(found, now, now)
    line = limiter.look(made).line
    assert line < 60  # and not a hundred


class Counted:
    """A limiter that notes how many places it is asked for, and answers as the one that it asks, or as it is
    told."""

    def __init__(self, limiter: Limiter, answer: FlowGrant | None = None) -> None:
        self._limiter = limiter
        self._answer = answer
        self.unavailable = limiter.unavailable
        self.reserved: list[int] = []

    def decide(self, asks: Sequence[FlowRequest]) -> list[FlowGrant]:
        self.reserved += [each.reserve for each in asks]
        return [self._answer for _ in asks] if self._answer else self._limiter.decide(asks)

    def look(self, destination: Limited) -> FlowState:
        return self._limiter.look(destination)

    def close(self) -> None:
        self._limiter.close()


def test_the_limiter_is_asked_for_the_places_that_are_needed_and_gets_back_what_others_took(
    store: Store, limiter: Limiter
) -> None:
    # So slow that no place comes near while this machine takes its time.
    put(store, "http://127.0.0.1:9/", rate_per_second=0.1)
    due(store, 10)
    now, counted = clock.now(), Counted(limiter)
    lines, found = DestinationLimits(store, counted), store.outbox.due(now, limit=20)
    kept = len(lines.in_time(found, now, now))
    assert counted.reserved == [10]
    lines.in_time(found, now, now)
    assert counted.reserved == [10, 10, kept - 10]
    # What was put off has had its place.
    later = now + 600 * SECOND
    again = [each for each in store.outbox.due(later, limit=20) if each.postponed_from]
    assert list(lines.in_time(again, later, later)) == again
    assert (len(again), len(counted.reserved)) == (10, 3)


def test_only_a_place_that_is_some_way_off_and_later_than_the_event_is_due_puts_it_off(
    store: Store, limiter: Limiter
) -> None:
    put(store, "http://127.0.0.1:9/", breaker=Breaker(1, 60))
    now = clock.now().replace(microsecond=0)
    made = [event(now + number * SECOND, origin=KEY) for number in range(4)]
    store.events.insert(made, now, "made")
    half = timedelta(seconds=0.5)
    ids, until = [each.id for each in made], now + 5 * SECOND
    grant = FlowGrant(
        0, 0.0, WaitReason.BREAKER, first=AHEAD_SECONDS, step=half.total_seconds(), is_open=True
    )
    found = store.outbox.due(until, limit=20)
    kept = DestinationLimits(store, Counted(limiter, grant)).in_time(found, until, now)
    assert [each.id for each in kept] == [ids[0]]
    assert places(store, ids, now) == [0, 2.5, 3, 3.5]
    assert last_words(store, ids[1]).endswith("the destination d, which waits for its breaker to close")
    # One whose place comes when it is due anyway is dispatched.
    exact = event(now + 2 * half + 2 * SECOND, "exact", origin=KEY)
    store.events.insert([exact], now, "made")
    due_then = [each for each in store.outbox.due(until, limit=20) if each.id == exact.id]
    then = FlowGrant(0, 0.0, WaitReason.RATE, first=3.0, step=1.0, is_open=False)
    assert DestinationLimits(store, Counted(limiter, then)).in_time(due_then, until, now) == due_then
    soon = then._replace(first=4.0)
    assert DestinationLimits(store, Counted(limiter, soon)).in_time(due_then, until, now) == []
    assert last_words(store, exact.id).endswith("the line of the destination d")


class Nobody:
    """A broker that must not be sent anything."""

    unavailable: tuple[type[Exception], ...] = ()

    def publish(self, batches: Sequence[Batch]) -> None:
        raise AssertionError(batches)

    def queue_lengths(self, queue: str = CALLBACKS) -> QueueLengths:
        return QueueLengths()


def test_a_beat_puts_off_what_its_destination_takes_later(store: Store, limiter: Limiter) -> None:
    put(store, "http://127.0.0.1:9/", paused=True)
    due(store, 3)
    dispatch = Dispatch(store, Nobody(), horizon_seconds=5, limiter=limiter)
    assert dispatch.dispatch_page(clock.now()).dispatched == 0
    assert store.mongo.collection("events").count_documents({"postponed_from": {"$exists": True}}) == 3


def test_destinations_without_limits_cost_no_question(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    put(store, "http://127.0.0.1:9/")
    other = event(clock.now() - SECOND, "other", origin="destination bent")
    bent = Destination(id=WholeId("bent"), url="http://x/", created_at=clock.now(), updated_at=clock.now())
    store.destinations.insert(bent)
    store.mongo.collection("destinations").update_one({"_id": "bent"}, {"$set": {"paused": "no"}})
    due(store, 2)
    store.events.insert([other], clock.now(), "made")
    now = clock.now()
    found = store.outbox.due(now, limit=20)
    with closing(RedisLimiter.of_url("redis://127.0.0.1:1", "x:")) as away:
        assert list(DestinationLimits(store, away).in_time(found, now, now)) == found
    assert len(found) == 3
    assert "flow.unknown" not in "".join(capsys.readouterr())


def test_an_event_that_was_put_off_is_dispatched_when_its_place_comes(store: Store, limiter: Limiter) -> None:
    put(store, "http://127.0.0.1:9/", rate_per_second=1)
    ids, now = due(store, 10), clock.now()
    lines = DestinationLimits(store, limiter)
    lines.in_time(store.outbox.due(now, limit=20), now, now)
    later = now + 20 * SECOND
    again = lines.in_time(store.outbox.due(later, limit=20), later, later)
    assert {each.id for each in again} >= set(ids[4:])


def test_a_paused_destination_s_events_get_no_message(store: Store, limiter: Limiter) -> None:
    put(store, "http://127.0.0.1:9/", paused=True)
    ids, now, counted = due(store, 5), clock.now().replace(microsecond=0) + SECOND, Counted(limiter)
    found = store.outbox.due(now, limit=20)
    for _ in range(2):
        assert DestinationLimits(store, counted).in_time(found, now, now) == []
    assert "is paused" in last_words(store, ids[0])
    assert places(store, ids, now) == [PAUSED_SECONDS + number / 1000 for number in range(5)]
    assert all(row(store, each)["postponed_from"] == row(store, each)["run_time"] for each in ids)
    assert counted.reserved == [], "they had no places"


def test_what_moves_to_another_queue_is_left_to_its_turn_and_what_stays_obeys_the_limits(
    store: Store, limiter: Limiter
) -> None:
    put(store, "http://127.0.0.1:9/", paused=True)
    (moving, staying), now = due(store, 2), clock.now()
    assert store.outbox.move({"us": [moving]}, now) == 1  # as long as its destination was for it
    named = {"$set": {"queue": "us", "routed": True}}  # by its schedule
    store.mongo.collection("events").update_one({"_id": staying}, named)
    found = store.outbox.due(now, limit=20, queue="us")
    assert {each.id for each in found} == {moving, staying}
    assert DestinationLimits(store, limiter).in_time(found, now, now, queue="us") == []
    assert row(store, moving).get("postponed_from") is None
    assert "is paused" in last_words(store, staying)


def test_a_limiter_that_is_away_leaves_the_judgement_to_workers(store: Store) -> None:
    put(store, "http://127.0.0.1:9/", rate_per_second=1)
    due(store, 5)
    now = clock.now()
    found = store.outbox.due(now, limit=20)
    with closing(RedisLimiter.of_url("redis://127.0.0.1:1", "x:")) as away:
        assert list(DestinationLimits(store, away).in_time(found, now, now)) == found


def test_destinations_are_sealed_anew_with_the_newest_key(settings: Settings, store: Store) -> None:
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    with closing(Store(replace(settings, secrets_key=old))) as before:
        put(before, "http://x/?key=canary", auth=Auth(AuthType.BEARER, "canary"))
    with closing(Store(replace(settings, secrets_key=f"{new},{old}"))) as between:
        assert between.destinations.reseal() == (1, {})
        assert between.destinations.reseal() == (0, {})
    with closing(Store(replace(settings, secrets_key=new))) as after:
        found = after.destinations.get("d")
        assert isinstance(found, Destination)
        assert found.auth == Auth(AuthType.BEARER, "canary")
