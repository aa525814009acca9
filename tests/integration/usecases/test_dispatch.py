"""Due events become messages in a real Redis."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.beat.duties import dispatch_duty
from scheduler_app.beat.scheduler import Tick
from scheduler_app.broker.app import make_app
from scheduler_app.broker.publisher import CeleryPublisher
from scheduler_app.config import Settings
from scheduler_app.domain.action import CALLBACKS, QueueLengths
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.usecases.duties.dispatch import PROMPT_AT_ONCE, WORTH_PARTS, Dispatch, PromptDispatch
from scheduler_app.usecases.duties.dispatch_selection import CLAIM_AHEAD, EVENTS_A_PAGE, Batch
from scheduler_app.usecases.duties.expansion import Expansion
from tests.builders import event, schedule
from tests.integration.usecases.queued import messages
from tests.processes import PATIENCE_SECONDS

SECOND = timedelta(seconds=1)


@pytest.fixture
def publisher(settings: Settings) -> CeleryPublisher:
    app = make_app(settings)
    return CeleryPublisher(app)


@pytest.fixture
def dispatch(store: Store, publisher: CeleryPublisher) -> Dispatch:
    return Dispatch(store, publisher, horizon_seconds=5)


def states(store: Store) -> dict[str, int]:
    return {state: count for state, count in store.events.living_by_state().items() if count}


def test_a_message_holds_ids_and_nothing_else(
    store: Store, dispatch: Dispatch, redis_url: str, now: datetime
) -> None:
    made = [event(now + SECOND, f"s{number}") for number in range(3)]
    store.events.insert(made, now, "made")
    assert dispatch.dispatch_page(now).dispatched == 3
    (message,) = messages(redis_url)
    assert message["v"] == 1
    assert sorted(message["ids"]) == sorted(each.id for each in made)
    assert datetime.fromisoformat(message["eta"]) == now + SECOND - CLAIM_AHEAD
    assert set(message) == {"v", "ids", "eta", "priority"}
    assert states(store) == {"worker_queue": 3}
    # What is left there, recovery takes for a dispatcher that died, and sends a second message.
    assert store.mongo.collection("outbox").find_one() is None


def test_two_beats_dispatch_everything_between_them_without_waiting_for_another_tick(
    store: Store, publisher: CeleryPublisher, redis_url: str, now: datetime
) -> None:
    many = [event(now + SECOND, f"s{number}") for number in range(3 * EVENTS_A_PAGE)]
    store.events.insert(many, now, "made")
    together = threading.Barrier(2)

    def beat() -> None:
        dispatch = Dispatch(store, publisher, horizon_seconds=5)
        tick = Tick([dispatch_duty(dispatch)], now=lambda: now, stopping=lambda: False, unavailable=())
        together.wait(PATIENCE_SECONDS)
        while tick.run():
            pass

    with ThreadPoolExecutor(2) as beats:
        for future in [beats.submit(beat) for _ in range(2)]:
            future.result()
    sent = [one for message in messages(redis_url) for one in message["ids"]]
    assert sorted(sent) == sorted(each.id for each in many)
    assert states(store) == {"worker_queue": len(many)}


def test_a_page_of_many_events_is_dispatched_in_parts_each_event_once(
    store: Store, dispatch: Dispatch, redis_url: str, now: datetime
) -> None:
    made = [event(now + SECOND, f"s{number}") for number in range(WORTH_PARTS + 1)]
    store.events.insert(made, now, "made")
    assert dispatch.dispatch_page(now).dispatched == len(made)
    sent = [one for message in messages(redis_url) for one in message["ids"]]
    assert sorted(sent) == sorted(each.id for each in made)
    assert states(store) == {"worker_queue": len(made)}


def test_what_lies_beyond_the_horizon_stays_in_mongodb(
    store: Store, dispatch: Dispatch, redis_url: str, now: datetime
) -> None:
    store.events.insert([event(now + 6 * SECOND)], now, "made")
    assert dispatch.dispatch_page(now).dispatched == 0
    assert messages(redis_url) == []
    assert states(store) == {"ready_queue": 1}


def test_what_is_overdue_goes_out_without_an_eta(
    store: Store, dispatch: Dispatch, redis_url: str, now: datetime
) -> None:
    store.events.insert([event(now - 3600 * SECOND)], now, "made")
    dispatch.dispatch_page(now)
    assert [message["eta"] for message in messages(redis_url)] == [None]


@pytest.mark.parametrize(
    "how", [{"attempt": 1}, {"lost_leases": 1}, {"postponed_from": datetime(2026, 3, 1, tzinfo=UTC)}]
)
def test_an_event_that_comes_back_travels_apart_from_one_that_is_as_it_was_made(
    store: Store, dispatch: Dispatch, redis_url: str, now: datetime, how: dict[str, Any]
) -> None:
    first, other, returning = (event(now, name) for name in ("s1", "s2", "s3"))
    store.events.insert([first, other, returning], now, "made")
    store.mongo.collection("events").update_one({"_id": returning.id}, {"$set": how})
    assert dispatch.dispatch_page(now).dispatched == 3
    sent = sorted((sorted(message["ids"]) for message in messages(redis_url)), key=len)
    assert sent == [[returning.id], [first.id, other.id]]


def test_nothing_is_dispatched_twice(store: Store, dispatch: Dispatch, redis_url: str, now: datetime) -> None:
    store.events.insert([event(now)], now, "made")
    assert [dispatch.dispatch_page(now).dispatched for _ in range(3)] == [1, 0, 0]
    assert len(messages(redis_url)) == 1


def test_when_publishing_fails_the_events_wait_again_at_once(
    store: Store, publisher: CeleryPublisher, now: datetime
) -> None:
    class Unlucky:
        unavailable: tuple[type[Exception], ...] = (OSError,)

        def publish(self, batches: Sequence[Batch]) -> None:
            raise OSError("the broker is away")

        def queue_lengths(self, queue: str = CALLBACKS) -> QueueLengths:
            return QueueLengths()

    store.events.insert([event(now)], now, "made")
    with pytest.raises(OSError, match="away"):
        Dispatch(store, Unlucky(), horizon_seconds=5).dispatch_page(now)
    assert states(store) == {State.READY_QUEUE: 1}
    assert store.outbox.put_back_abandoned(now, limit=10) == 0, "nothing is left for recovery"


def test_only_what_was_just_made_is_dispatched_before_the_next_tick(
    store: Store, dispatch: Dispatch, redis_url: str, now: datetime
) -> None:
    mine, far, other = event(now, "s1"), event(now + 60 * SECOND, "s1"), event(now, "s2")
    store.events.insert([mine, far, other], now, "made")
    assert dispatch.dispatch_these([mine, far], now) == 1
    assert [message["ids"] for message in messages(redis_url)] == [[mine.id]]


@pytest.fixture
def prompt(store: Store, dispatch: Dispatch) -> PromptDispatch:
    expansion = Expansion(store, timeframe_seconds=60)
    return PromptDispatch(expansion, dispatch, (), timeframe_seconds=60, horizon_seconds=5)


def test_a_turn_is_given_back_by_each_request_that_dispatches(
    store: Store, prompt: PromptDispatch, redis_url: str, now: datetime
) -> None:
    made = [event(now + SECOND, f"s{number}") for number in range(PROMPT_AT_ONCE + 1)]
    store.events.insert(made, now, "made")
    for each in made:
        prompt.dispatch_soon([each], now)
    assert sorted(name for message in messages(redis_url) for name in message["ids"]) == sorted(
        each.id for each in made
    )


@pytest.mark.parametrize(("after", "made"), [(4.999, 2), (5.001, 0)])
def test_many_new_schedules_wait_for_no_tick_up_to_the_horizon(
    store: Store, prompt: PromptDispatch, now: datetime, after: float, made: int
) -> None:
    at = now + timedelta(seconds=after)
    new = [schedule(now, f"s{number}", run_at=at) for number in range(2)]
    store.schedules.insert_many(new)
    prompt.expand_and_dispatch(new, now)
    assert store.mongo.collection("events").count_documents({}) == made
