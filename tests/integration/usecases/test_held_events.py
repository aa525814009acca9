"""What a worker holds obeys the present: a claimed event that waits is judged again before it is sent."""

import secrets
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
import redis

from scheduler_app.broker.redis.flow_control import RedisLimiter
from scheduler_app.clock import clock
from scheduler_app.domain.destination import Auth, AuthType, Breaker, Destination
from scheduler_app.domain.errors import Conflict
from scheduler_app.domain.http_action import BodyKind, RequestBody, http_action
from scheduler_app.domain.lateness import CatchUp
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from scheduler_app.store.events import cancellations
from scheduler_app.usecases.deeds.events import EventService
from scheduler_app.worker.recorder import Recorder
from scheduler_app.worker.rejudging import Rejudging
from tests.builders import message
from tests.integration.usecases.held_by_workers import KEY, HoldingWorker, holding_worker
from tests.processes import wait_until

#: As many as wait in a worker for any of these limits, and those that start at once.
EVENTS = 6
#: After so many seconds something is late that no test makes wait so long.
LATE = 3_600
LATER = timedelta(seconds=LATE + 10)
#: Limits, and how many of the events start at once by them.
LIMITS = [
    pytest.param({"concurrency": 2}, 2, id="concurrency"),
    pytest.param({"rate_per_second": 1, "burst": 3}, 2, id="rate"),
    pytest.param({"rate_per_second": 50, "burst": 50, "concurrency": 2}, 2, id="rate-and-concurrency"),
    pytest.param({"concurrency": 2, "breaker": Breaker(5, 60)}, 2, id="concurrency-and-breaker"),
    pytest.param({"breaker": Breaker(2, 60)}, 2, id="breaker"),
]


@pytest.fixture
def limiter(redis_url: str) -> Iterator[RedisLimiter]:
    prefix = f"test-{secrets.token_hex(6)}:"
    client = redis.Redis.from_url(redis_url)
    client.set(f"{prefix}flow:began", "1")
    with closing(RedisLimiter(client, prefix)) as made:
        yield made


@pytest.fixture
def worker(store: Store, limiter: RedisLimiter) -> Iterator[HoldingWorker]:
    with holding_worker(store, limiter) as made:
        yield made


def change(worker: HoldingWorker, **changes: Any) -> None:
    """A person's edit of the destination."""
    old = worker.store.destinations.get("d")
    assert isinstance(old, Destination)
    made = replace(old, **changes, version=old.version + 1, updated_at=clock.now())
    assert worker.store.destinations.update(made, version=old.version)


def edit(worker: HoldingWorker, **changes: Any) -> None:
    """A person's edit of the schedule's request."""
    old = worker.store.schedules.get("s1")
    assert isinstance(old, Schedule)
    made = replace(old, action=replace(http_action(old.action), **changes), version=old.version + 1)
    assert worker.store.schedules.update(made, version=old.version)


def events_of(store: Store) -> EventService:
    return EventService(store, lambda events, now: None)


@pytest.mark.parametrize(("limits", "first"), LIMITS)
def test_a_pause_of_the_destination_holds_for_what_workers_have_claimed(
    worker: HoldingWorker, limits: dict[str, Any], first: int
) -> None:
    worker.put(**limits)
    worker.deliver(worker.due(EVENTS), first)
    change(worker, paused=True)
    worker.look()
    began = len(worker.calls())
    worker.finish()
    assert len(worker.calls()) == began
    assert [row["state"] for row in worker.rows()].count("ready_queue") == EVENTS - began


@pytest.mark.parametrize(("limits", "first"), LIMITS)
def test_a_new_url_and_new_credentials_hold_for_what_workers_have_claimed(
    worker: HoldingWorker, limits: dict[str, Any], first: int
) -> None:
    worker.put(**limits, auth=Auth(AuthType.BEARER, "old"))
    worker.deliver(worker.due(EVENTS), first)
    change(
        worker,
        url=worker.journal.url("/new"),
        auth=Auth(AuthType.BEARER, "new"),
        rate_per_second=None,
    )
    worker.look()
    began = len(worker.calls())
    worker.finish()
    assert len(worker.calls()) == began
    assert len(worker.calls("/new")) + began == EVENTS
    assert {call.seen.headers["authorization"] for call in worker.calls("/new")} == {"Bearer new"}


def test_fewer_requests_at_once_hold_for_what_workers_have_claimed(worker: HoldingWorker) -> None:
    worker.put(concurrency=4)
    worker.deliver(worker.due(12), 4)
    change(worker, concurrency=1)
    worker.look()
    worker.gate.open(4)
    for count in (5, 6):
        wait_until(lambda count=count: len(worker.calls()) >= count, f"request {count}")  # type: ignore[misc]
        wait_until(lambda: worker.gate.waiting > 0, "it to wait for its answer")
        assert worker.gate.most == 1
        worker.gate.open(1)


@pytest.mark.parametrize(
    "policy",
    [
        {"expire_after_seconds": LATE},
        {"catch_up": CatchUp.NONE, "late_after_seconds": LATE},
        {"catch_up": CatchUp.LATEST, "late_after_seconds": LATE, "catch_up_window_seconds": LATE + 1},
    ],
)
@pytest.mark.parametrize(("limits", "first"), LIMITS)
def test_what_became_late_while_a_worker_held_it_expires(
    worker: HoldingWorker, policy: dict[str, Any], limits: dict[str, Any], first: int
) -> None:
    worker.put(**limits)
    worker.deliver(worker.due(EVENTS, **policy), first)
    worker.ahead = LATER
    late_from = worker.now()
    worker.finish()
    rows = worker.rows()
    begun = [row for row in rows if row["attempts"]]
    # By a rate, another one may just be on its way.
    assert all(row["attempts"][0]["started_at"] < late_from for row in begun)
    assert len(worker.calls()) == len(begun)
    assert [row["state"] for row in rows].count("expired") == EVENTS - len(begun)


def test_only_the_newest_of_what_became_late_in_a_worker_is_sent(worker: HoldingWorker) -> None:
    worker.put(concurrency=1)
    policy = {"catch_up": CatchUp.LATEST, "late_after_seconds": LATE, "catch_up_window_seconds": 2 * LATE}
    # Its next occurrence is a day away: the newest of those that wait has none after it.
    newest, *others = worker.due(EVENTS, rrule="FREQ=DAILY", **policy)
    worker.deliver([newest, *others], 1)
    worker.ahead = LATER
    worker.finish()
    states = {row["_id"]: row["state"] for row in worker.rows()}
    assert states[newest] == "completed"
    assert list(states.values()).count("expired") == EVENTS - 2


def test_a_deleted_schedule_s_events_are_cancelled_in_the_worker_that_holds_them(
    worker: HoldingWorker,
) -> None:
    worker.put(concurrency=2)
    worker.deliver(worker.due(EVENTS), 2)
    worker.store.schedules.delete("s1", clock.now())
    worker.look()
    worker.finish()
    assert len(worker.calls()) == 2
    assert [row["state"] for row in worker.rows()].count("cancelled") == EVENTS - 2


def test_events_whose_destination_was_deleted_meanwhile_end_as_dead_letters(worker: HoldingWorker) -> None:
    worker.put(concurrency=2)
    worker.deliver(worker.due(EVENTS), 2)
    worker.store.destinations.delete("d")
    worker.look()
    worker.finish()
    assert len(worker.calls()) == 2
    assert [row["state"] for row in worker.rows()].count("error") == EVENTS - 2


def test_an_edit_of_the_schedule_holds_for_what_workers_have_claimed(worker: HoldingWorker) -> None:
    worker.put(concurrency=2)
    worker.deliver(worker.due(EVENTS), 2)
    edit(worker, headers=(("x-kind", "edited"),))
    worker.look()
    worker.finish()
    kinds = [call.seen.headers.get("x-kind") for call in worker.calls()]
    assert kinds == [None] * 2 + ["edited"] * (EVENTS - 2)


def test_an_event_that_waits_in_a_worker_can_be_cancelled_and_one_in_flight_cannot(
    worker: HoldingWorker,
) -> None:
    worker.put(concurrency=2)
    worker.deliver(worker.due(EVENTS), 2)
    flying = {call.key for call in worker.calls()}
    waiting = next(row["_id"] for row in worker.rows() if row["_id"] not in flying)
    cancelled = events_of(worker.store).cancel(waiting, clock.now())
    assert cancelled.state == "cancelled"
    with pytest.raises(Conflict, match="its request is in flight"):
        events_of(worker.store).cancel(next(iter(flying)), clock.now())
    worker.finish()
    assert waiting not in {call.key for call in worker.calls()}
    assert [row["state"] for row in worker.rows()].count("completed") == EVENTS - 1
    assert not list(worker.store.mongo.collection("cancel_requests").find())


def test_a_request_to_cancel_whose_process_died_long_ago_cancels_nothing(
    worker: HoldingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for its answer any more."""
    worker.put(concurrency=2)
    worker.deliver(worker.due(EVENTS), 2)
    flying = {call.key for call in worker.calls()}
    waiting = next(row["_id"] for row in worker.rows() if row["_id"] not in flying)
    # From its first moment on: the worker may look at any.
    monkeypatch.setattr(cancellations, "STANDS_SECONDS", -3_600.0)
    worker.store.cancel_requests.put(waiting, "left behind")
    worker.look()
    worker.finish()
    assert [row["state"] for row in worker.rows()] == ["completed"] * EVENTS


def test_a_message_that_waits_in_a_worker_can_be_cancelled_and_keeps_no_secret(
    worker: HoldingWorker,
) -> None:
    worker.put(concurrency=1)
    now = clock.now()
    made = [
        message(
            now, f"m{number}", url=NOT_GIVEN, destination="d", body=RequestBody(BodyKind.TEXT, b"secret")
        )._replace(origin=KEY)
        for number in range(3)
    ]
    worker.store.messages.insert_many(made, now)
    worker.deliver([each.id for each in made], 1)
    flying = worker.calls()[0].key
    waiting = next(each.id for each in made if each.id != flying)
    assert events_of(worker.store).cancel(waiting, now).state == "cancelled"
    stored = next(row for row in worker.rows() if row["_id"] == waiting)
    assert stored["wiped"] is True
    assert "sealed" not in stored


def test_an_event_claimed_before_its_time_can_be_cancelled(worker: HoldingWorker) -> None:
    worker.put()
    worker.ahead = timedelta(seconds=-30)  # this worker's clock: all is due in half a minute
    ids = worker.due(EVENTS)
    worker.ahead = timedelta(seconds=-60)
    worker.pipeline.delivery.deliver(ids)
    assert events_of(worker.store).cancel(ids[0], clock.now()).state == "cancelled"
    worker.ahead = timedelta(0)
    worker.finish()
    assert len(worker.calls()) == EVENTS - 1
    assert worker.pipeline.capacity.held == 0


# Without limits of a destination: what waits for its origin's share


@pytest.fixture
def narrow(store: Store) -> Iterator[HoldingWorker]:
    """A worker that sends two requests at once to any origin."""
    with holding_worker(store, None, origin_concurrency=2) as made:
        yield made


def saturated(worker: HoldingWorker) -> None:
    worker.deliver(worker.due(EVENTS, url=worker.journal.url("/old")), 2)
    wait_until(lambda: bool(worker.pipeline.courier.waiting()), "the origin to be saturated")


def test_a_deleted_schedule_s_events_that_wait_for_their_origin_are_cancelled(narrow: HoldingWorker) -> None:
    saturated(narrow)
    narrow.store.schedules.delete("s1", clock.now())
    narrow.look()
    narrow.finish()
    assert len(narrow.calls()) == 2
    assert "completed" in narrow.states()
    assert "cancelled" in narrow.states()


def test_an_edit_holds_for_events_that_wait_for_their_origin(narrow: HoldingWorker) -> None:
    saturated(narrow)
    edit(narrow, url=narrow.journal.url("/new"))
    narrow.look()
    narrow.finish()
    assert len(narrow.calls()) == 2
    assert narrow.calls("/new")


def test_an_event_that_waits_for_its_origin_can_be_cancelled(narrow: HoldingWorker) -> None:
    saturated(narrow)
    waiting = narrow.pipeline.courier.waiting()[0].attempt.event.id
    assert events_of(narrow.store).cancel(waiting, clock.now()).state == "cancelled"
    narrow.finish()
    assert waiting not in {call.key for call in narrow.calls()}


def test_what_became_late_while_it_waited_for_its_origin_expires(narrow: HoldingWorker) -> None:
    narrow.deliver(narrow.due(EVENTS, url=narrow.journal.url("/old"), expire_after_seconds=LATE), 2)
    narrow.ahead = LATER
    narrow.finish()
    assert len(narrow.calls()) == 2


# What is held at all


def test_a_worker_holds_no_more_of_a_destination_than_it_sends_in_some_seconds(
    worker: HoldingWorker,
) -> None:
    worker.put(concurrency=2)
    ids = worker.due(200)
    worker.deliver(ids, 2)  # whose requests hang: this is a receiver that takes long
    wait_until(
        lambda: [row["state"] for row in worker.rows()].count("running") < 20,
        "the others to be put off",
    )


def test_mongodb_is_asked_what_holds_now_only_while_something_waits(
    worker: HoldingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    for of, name in (("cancel_requests", "texts"), ("schedules", "facts"), ("destinations", "versions")):
        noted(monkeypatch, getattr(worker.store, of), name, asked)
    worker.look()
    assert asked == []
    worker.put(concurrency=2)
    worker.deliver(worker.due(EVENTS), 2)
    worker.look()
    assert set(asked) == {"texts", "facts", "versions"}


def noted(monkeypatch: pytest.MonkeyPatch, of: object, name: str, asked: list[str]) -> None:
    """Notes each call of a method, which does what it does."""
    ask = getattr(of, name)

    def call(*given: Any, **options: Any) -> Any:
        asked.append(name)
        return ask(*given, **options)

    monkeypatch.setattr(of, name, call)


def test_a_destination_counts_what_waits_for_it_in_workers_too(
    worker: HoldingWorker, limiter: RedisLimiter
) -> None:
    made = worker.put(concurrency=2)
    worker.deliver(worker.due(EVENTS), 2)
    in_flight = limiter.look(made).in_flight
    waiting = worker.store.destinations.waiting("d", in_flight=in_flight)
    assert (in_flight, waiting) == (2, EVENTS - 2)


def test_who_asks_to_cancel_what_is_in_flight_is_told_at_the_next_look(store: Store) -> None:
    for each in ("flying", "elsewhere"):
        store.cancel_requests.put(each, "asked")
    rejudging = Rejudging(
        store,
        cast(Recorder, SimpleNamespace(put=list)),
        places=(),
        take_out=lambda _: [],
        in_flight=lambda: ["flying", "another"],
        held=lambda: 1,
    )
    rejudging.look()
    assert not store.cancel_requests.stands("flying")
    assert store.cancel_requests.stands("elsewhere"), "it may be another worker's"
