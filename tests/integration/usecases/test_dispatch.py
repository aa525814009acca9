"""Due events become messages in a real Redis."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.beat.duties import dispatch_duty
from scheduler_app.beat.scheduler import Tick
from scheduler_app.broker.app import make_app
from scheduler_app.broker.publisher import CeleryPublisher
from scheduler_app.broker.task import PRIORITIES
from scheduler_app.config import Settings
from scheduler_app.domain.action import CALLBACKS, Lane, QueueLengths
from scheduler_app.domain.event import Event
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.usecases.duties import dispatch as dispatching
from scheduler_app.usecases.duties.dispatch import (
    PROMPT_AT_ONCE,
    PROMPT_TURN_SECONDS,
    SELECTION_SECONDS,
    WORTH_PARTS,
    Dispatch,
    PromptDispatch,
)
from scheduler_app.usecases.duties.dispatch_selection import CLAIM_AHEAD, EVENTS_A_BATCH, EVENTS_A_PAGE, Batch
from scheduler_app.usecases.duties.expansion import OCCURRENCES_AN_EDIT, Expansion
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


@pytest.mark.parametrize(("horizon", "due", "ahead"), [(5, 4, 1), (60, 30, 5)])
def test_a_full_message_is_taken_up_earlier_by_a_share_of_the_horizon_and_no_more_than_a_bound(
    store: Store,
    publisher: CeleryPublisher,
    redis_url: str,
    now: datetime,
    horizon: int,
    due: int,
    ahead: int,
) -> None:
    made = [event(now + due * SECOND, f"s{number}") for number in range(EVENTS_A_BATCH)]
    store.events.insert(made, now, "made")
    Dispatch(store, publisher, horizon_seconds=horizon).dispatch_page(now)
    (message,) = messages(redis_url)
    assert datetime.fromisoformat(message["eta"]) == now + (due - ahead) * SECOND


class Slow:
    """A broker that takes its time for each call, by the clock of this test."""

    unavailable: tuple[type[Exception], ...] = ()

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.now = 100.0
        self.batches: list[Batch] = []

    def publish(self, batches: Sequence[Batch]) -> None:
        self.now += self._seconds
        self.batches += batches

    def queue_lengths(self, queue: str = CALLBACKS) -> QueueLengths:
        return QueueLengths()


def test_a_beat_goes_on_with_the_queue_at_which_its_time_was_over(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Slow(SELECTION_SECONDS / 2)
    monkeypatch.setattr(dispatching, "monotonic", lambda: broker.now)
    monkeypatch.setattr(dispatching, "SELECTION_SECONDS", SELECTION_SECONDS)
    beat = Dispatch(store, broker, horizon_seconds=5)
    # The event that it came to no more goes with the next one of its queue.
    for at, served, dispatched in ((now, ["a", "b", "c"], 3), (now + SECOND, ["d", "a", "b"], 4)):
        store.events.insert([event(at, f"of-{name}", queue=name) for name in "abcd"], now, "made")
        page = beat.dispatch_page(at)
        assert (page.dispatched, page.full) == (dispatched, True)
        assert [batch.queue for batch in broker.batches] == served
        broker.batches = []


def test_a_beat_that_takes_its_time_for_one_queue_leaves_the_rest_of_it_to_the_next_page(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Slow(SELECTION_SECONDS)
    monkeypatch.setattr(dispatching, "monotonic", lambda: broker.now)
    monkeypatch.setattr(dispatching, "SELECTION_SECONDS", SELECTION_SECONDS)
    monkeypatch.setattr(dispatching, "EVENTS_A_PAGE", 2)
    store.events.insert([event(now, f"s{number}") for number in range(6)], now, "made")
    beat = Dispatch(store, broker, horizon_seconds=5)
    pages = [beat.dispatch_page(now) for _ in range(2)]
    assert [(page.dispatched, page.full) for page in pages] == [(4, True), (2, False)]


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
    mine, far, other = event(now, "s1"), event(now + 5.001 * SECOND, "s1"), event(now, "s2")
    last = event(now + 5 * SECOND, "s1")
    store.events.insert([mine, last, far, other], now, "made")
    assert dispatch.dispatch_these([mine, last, far], now) == 2
    assert [message["ids"] for message in messages(redis_url)] == [[mine.id], [last.id]]
    assert dispatch.dispatch_these([far], now) == 0


@pytest.mark.parametrize(
    ("waits", "count", "lane"),
    [(49, 1, Lane.URGENT), (50, 1, Lane.FRESH), (0, EVENTS_A_BATCH, Lane.URGENT)],
)
def test_what_a_person_asked_for_is_urgent_as_long_as_there_is_room_and_it_fits_into_a_message(
    store: Store, now: datetime, waits: int, count: int, lane: Lane
) -> None:
    class Holding(Slow):
        def queue_lengths(self, queue: str = CALLBACKS) -> QueueLengths:
            return QueueLengths(urgent=waits)

    broker = Holding(0.0)
    made = [event(now, f"s{number}") for number in range(count)]
    store.events.insert(made, now, "made")
    assert Dispatch(store, broker, horizon_seconds=5).dispatch_these(made, now, urgent=True) == count
    assert [batch.lane for batch in broker.batches] == [lane]


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
    store: Store, prompt: PromptDispatch, redis_url: str, now: datetime, after: float, made: int
) -> None:
    at = now + timedelta(seconds=after)
    new = [schedule(now, f"s{number}", run_at=at) for number in range(2)]
    store.schedules.insert_many(new)
    prompt.expand_and_dispatch(new, now)
    assert store.mongo.collection("events").count_documents({}) == made
    sent = [(len(message["ids"]), message["priority"]) for message in messages(redis_url)]
    assert sent == ([(made, PRIORITIES[Lane.FRESH])] if made else [])


def test_of_a_single_new_schedule_the_whole_timeframe_is_expanded(
    store: Store, prompt: PromptDispatch, redis_url: str, now: datetime
) -> None:
    new = schedule(now, rrule="FREQ=SECONDLY;INTERVAL=10")
    triggered = schedule(now, "triggered", on_demand=True)
    store.schedules.insert_many([new, triggered])
    for each in (new, triggered):
        prompt.expand_and_dispatch([each], now)
    assert store.mongo.collection("events").count_documents({}) == 6
    assert [len(message["ids"]) for message in messages(redis_url)] == [1]


def test_what_an_edit_must_not_lose_is_dispatched_at_once_and_what_is_too_much_is_returned(
    store: Store, prompt: PromptDispatch, redis_url: str, now: datetime
) -> None:
    made = schedule(now)
    store.schedules.insert(made)
    assert prompt.expand_until(made, now + 3 * SECOND) is None
    assert [(len(message["ids"]), message["priority"]) for message in messages(redis_url)] == [
        (3, PRIORITIES[Lane.FRESH])
    ]
    left = prompt.expand_until(made, now + (OCCURRENCES_AN_EDIT + 1) * SECOND)
    assert left is not None
    assert left.next_run_at == now + SECOND


class Turns(threading.BoundedSemaphore):
    """Notes how long a request waits for its turn, and has none."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float | None] = []

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        self.waited.append(timeout)
        return False


def test_a_request_waits_for_its_turn_for_a_moment_and_only_if_the_broker_may_answer(
    store: Store, prompt: PromptDispatch, redis_url: str, now: datetime
) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    turns = Turns()
    busy = replace(prompt, turns=turns)
    busy.dispatch_soon([], now)
    replace(busy, is_away=lambda: True).dispatch_soon([made], now)
    assert turns.waited == []
    busy.dispatch_soon([made], now)
    assert turns.waited == [PROMPT_TURN_SECONDS]
    assert (messages(redis_url), states(store)) == ([], {"ready_queue": 1})


@pytest.mark.parametrize(
    ("ask", "lane"),
    [(PromptDispatch.dispatch_soon, Lane.FRESH), (PromptDispatch.dispatch_urgently, Lane.URGENT)],
)
def test_a_request_dispatches_what_is_due_soon_and_before_that_what_a_person_asked_for(
    store: Store,
    prompt: PromptDispatch,
    redis_url: str,
    now: datetime,
    ask: Callable[[PromptDispatch, Sequence[Event], datetime], None],
    lane: Lane,
) -> None:
    store.events.insert([event(now)], now, "made")
    ask(prompt, [event(now)], now)
    assert [message["priority"] for message in messages(redis_url)] == [PRIORITIES[lane]]
