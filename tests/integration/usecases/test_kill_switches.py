"""Kill switches, as beats and workers obey them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Event as Flag
from threading import Thread
from typing import Any, NoReturn

import pytest
from prometheus_client import REGISTRY
from pymongo.errors import AutoReconnect
from structlog.testing import capture_logs

from scheduler_app.broker.app import make_app
from scheduler_app.broker.publisher import CeleryPublisher
from scheduler_app.clock import clock, monotonic
from scheduler_app.config import Settings
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.event import Event
from scheduler_app.domain.ids import TENANT, WholeId
from scheduler_app.domain.kill_switch import KillSwitch, Scope, Target
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.outbox import HELD_FOR
from scheduler_app.usecases import stops
from scheduler_app.usecases.duties.dispatch import Dispatch
from scheduler_app.usecases.stops import (
    EVENTS_A_PAGE,
    KILL_SWITCH_LOOK_SECONDS,
    HeldEvents,
    KillSwitchService,
    KillSwitchView,
    Polled,
)
from scheduler_app.worker import Pipeline, withholding
from scheduler_app.worker.withholding import STALE_SECONDS, Withholding
from tests.acceptance.journal import Journal
from tests.builders import draft, event, message, schedule
from tests.documents import event_document
from tests.executors import executors
from tests.held_clock import HeldClock
from tests.processes import PATIENCE_SECONDS, wait_until
from tests.standstills import Standstills

SECOND = timedelta(seconds=1)
EVERYTHING = Target(TENANT, Scope.ALL)
BILLING = Target(TENANT, Scope.TAG, "billing")
ERP = Target(TENANT, Scope.DESTINATION, "erp")


def _has_events() -> None:
    """What a worker waits for that has events."""


@pytest.fixture
def dispatch(store: Store, settings: Settings) -> Callable[..., int]:
    """One page of a beat that has just started."""

    def page(now: datetime) -> int:
        made = Dispatch(store, CeleryPublisher(make_app(settings)), horizon_seconds=5)
        return made.dispatch_page(now).dispatched

    return page


@pytest.fixture
def world(store: Store, now: datetime) -> dict[str, Event]:
    """A due event of a schedule with a tag, of one with a destination, of one without both, and a message to
    that destination."""
    made = Destination(id=WholeId("erp"), url="http://127.0.0.1:9/", created_at=now, updated_at=now)
    assert store.destinations.insert(made)
    store.schedules.insert(schedule(now, "tagged", tags=("billing", "x")))
    store.schedules.insert(draft(url=NOT_GIVEN, destination="erp").schedule("erp-1", now, max_retries=1))
    store.schedules.insert(schedule(now, "other"))
    events = {name: event(now, name, origin=f"o-{name}") for name in ("tagged", "erp-1", "other")}
    store.events.insert(list(events.values()), now, "made")
    events["message"] = message(now, url=NOT_GIVEN, destination="erp")
    assert store.messages.insert(events["message"], now)
    return events


def turn_on(store: Store, target: Target, now: datetime) -> None:
    KillSwitchService(store).turn_on(target, now)


def held(store: Store, events: dict[str, Event]) -> set[str]:
    documents = {name: event_document(store, made.id) for name, made in events.items()}
    return {name for name, found in documents.items() if "held" in found}


@pytest.mark.parametrize(
    ("target", "stopped"),
    [
        (EVERYTHING, {"tagged", "erp-1", "other", "message"}),
        (BILLING, {"tagged"}),
        (ERP, {"erp-1", "message"}),
        (Target("acme", Scope.ALL), set()),
        (Target(TENANT, Scope.TAG, "bill"), set()),
    ],
    ids=lambda value: str(value) if isinstance(value, Target) else "",
)
def test_what_it_stops_is_held_and_the_rest_is_dispatched(
    store: Store,
    dispatch: Callable[..., int],
    world: dict[str, Event],
    now: datetime,
    target: Target,
    stopped: set[str],
) -> None:
    turn_on(store, target, now)
    assert dispatch(now) == len(world) - len(stopped)
    assert held(store, world) == stopped
    for name in stopped:
        found = event_document(store, world[name].id)
        assert (found["state"], found["due_at"]) == (State.READY_QUEUE, now + HELD_FOR)
        assert f"kill switch of {target}" in found["status"][-1]["message"]
    # What is held is not read again: no busy loop.
    assert dispatch(now) == 0


def test_what_was_held_is_due_again_at_its_own_time_when_it_is_off(
    store: Store, dispatch: Callable[..., int], world: dict[str, Event], now: datetime
) -> None:
    turn_on(store, EVERYTHING, now)
    turn_on(store, BILLING, now)
    dispatch(now)
    assert not HeldEvents(store).release_page(now)
    assert held(store, world) == set(world)
    assert KillSwitchService(store).turn_off(EVERYTHING) == len(world)
    assert not HeldEvents(store).release_page(now + SECOND)
    assert held(store, world) == set()
    for made in world.values():
        found = event_document(store, made.id)
        assert found["due_at"] == now
        assert "postponed_from" not in found
    # Each is judged anew: the other switch is still on.
    assert dispatch(now + SECOND) == len(world) - 1
    assert held(store, world) == {"tagged"}


def test_many_held_events_are_released_page_by_page(
    store: Store, dispatch: Callable[..., int], now: datetime
) -> None:
    count = EVENTS_A_PAGE + 10
    store.events.insert([event(now, f"s{number}") for number in range(count)], now, "made")
    turn_on(store, EVERYTHING, now)
    while store.holding.count(EVERYTHING.keys, most=count) < count:
        dispatch(now)
    KillSwitchService(store).turn_off(EVERYTHING)
    release = HeldEvents(store)
    assert release.release_page(now)
    assert not release.release_page(now)
    assert store.holding.keys() == []
    assert store.events.living_by_state()["ready_queue"] == count


def test_an_event_that_was_cancelled_while_it_was_held_stays_cancelled(
    store: Store, dispatch: Callable[..., int], world: dict[str, Event], now: datetime
) -> None:
    turn_on(store, EVERYTHING, now)
    dispatch(now)
    assert store.cancellations.cancel(world["other"].id, now, "by hand")
    later = now + 60 * SECOND
    moved = store.messages.reschedule(world["message"].id, later, later, now, "moved")
    assert moved
    KillSwitchService(store).turn_off(EVERYTHING)
    HeldEvents(store).release_page(now)
    assert event_document(store, world["other"].id)["state"] == State.CANCELLED
    assert event_document(store, world["message"].id)["due_at"] == later


def test_what_moved_on_while_it_was_held_is_held_no_more_and_keeps_its_time(
    store: Store, now: datetime
) -> None:
    waits, moved = event(now, "s1"), event(now, "s2")
    store.events.insert([waits, moved], now, "made")
    assert store.holding.hold([waits.id, moved.id], "k", now, now, "held") == 2
    until = now + HELD_FOR
    events = store.mongo.collection("events")
    events.update_one({"_id": moved.id}, {"$set": {"state": State.WORKER_QUEUE.value}})
    assert store.holding.count(["k"], most=10) == 2
    assert store.holding.release("k", now, limit=10) == 2
    found = [event_document(store, each.id) for each in (waits, moved)]
    assert [each["due_at"] for each in found] == [now, until]
    assert ["held" in each for each in found] == [False, False]
    assert store.holding.keys() == []


def test_a_document_that_somebody_bent_stops_what_its_id_says(
    store: Store, dispatch: Callable[..., int], world: dict[str, Event], now: datetime
) -> None:
    turn_on(store, BILLING, now)
    switches = store.mongo.collection("kill_switches")
    for change in ({"since": "soon"}, {"v": "x"}, {"tenant": 5}, {"note": ["x"]}):
        switches.update_one({"_id": BILLING.key}, {"$set": change})
        (shown,) = KillSwitchService(store).that_are_on(TENANT)
        assert shown.switch.target == BILLING
        assert "reason" in type(shown.switch).__slots__
    for bent in ("default/planet/x", "nonsense", 5, "default/all/x", "/all"):
        switches.insert_one({"_id": bent})
    dispatch(now)
    assert held(store, world) == {"tagged"}
    assert KillSwitchService(store).turn_off(BILLING) == 1


def look_in_vain(view: Polled[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens; a look that is answered has all the time that it needs."""
    with monkeypatch.context() as patch:
        patch.setattr(stops, "ANSWER_SECONDS", 0.1)
        view.look()
    assert view.is_away


def test_while_mongodb_does_not_answer_the_last_known_state_holds(
    store: Store, settings: Settings, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_on(store, BILLING, now)
    view = KillSwitchView(store)
    assert view.current().targets == {BILLING}
    away = Store(replace(settings, mongo_uri="mongodb://127.0.0.1:9/"))
    view._read = away.kill_switches.everybodys
    look_in_vain(view, monkeypatch)
    assert view.known.targets == {BILLING}
    view._read = store.kill_switches.everybodys
    store.kill_switches.delete(BILLING)
    view.look()
    assert not view.is_away
    assert not view.known
    away.close()


# -- workers ---------------------------------------------------------------------------------------------


@pytest.fixture
def time() -> HeldClock:
    """The worker's."""
    return HeldClock()


@pytest.fixture
def pipeline(store: Store, time: HeldClock) -> Iterator[Pipeline]:
    made = Pipeline(
        store,
        executors(origin_concurrency=200),
        now=time,
        worker="w1",
        horizon_seconds=5,
        max_events=10_000,
    )
    made.start()
    yield made
    made.stop_starting()
    made.interrupt()
    made.stop()


@pytest.fixture
def journal() -> Iterator[Journal]:
    made = Journal()
    yield made
    made.close()


def test_what_a_worker_has_claimed_is_judged_again_before_it_is_sent(
    store: Store, pipeline: Pipeline, journal: Journal, time: HeldClock
) -> None:
    now = time.hold()
    due = now + SECOND
    store.schedules.insert(schedule(now - SECOND, "tagged", tags=("billing",), url=journal.url("/tagged")))
    store.schedules.insert(schedule(now - SECOND, "other", url=journal.url("/other")))
    events = {name: event(due, name) for name in ("tagged", "other")}
    store.events.insert(list(events.values()), now, "made")
    assert pipeline.delivery.deliver([made.id for made in events.values()]) == 2
    turn_on(store, BILLING, clock.now())
    wait_until(lambda: bool(pipeline.withholding.kill_switches.known), "the worker to know that it is on")
    time.go_on()
    assert pipeline.wait_until_empty(PATIENCE_SECONDS)
    assert "/tagged" not in journal.calls
    assert len(journal.calls["/other"]) == 1
    found = event_document(store, events["tagged"].id)
    assert (found["state"], found["held"], found["attempt"]) == (State.READY_QUEUE, BILLING.key, 0)
    assert found["postponed_from"] == events["tagged"].due_at
    KillSwitchService(store).turn_off(BILLING)
    HeldEvents(store).release_page(clock.now())
    wait_until(lambda: not pipeline.withholding.may_start(), "what it knows to be old")
    assert pipeline.delivery.deliver([events["tagged"].id]) == 1
    assert pipeline.wait_until_empty(PATIENCE_SECONDS)
    assert [call.key for call in journal.calls["/tagged"]] == [events["tagged"].id]


def test_nothing_is_sent_later_than_a_second_after_the_answer(
    store: Store, pipeline: Pipeline, journal: Journal
) -> None:
    """Some hundreds of callbacks a second, stopped in their midst; the large one is among the long tests."""
    store.schedules.insert(schedule(clock.now() - SECOND, "s1", tags=("billing",), url=journal.url("/a")))
    done = Flag()

    def load() -> None:
        number = 0
        while not done.is_set():
            now = clock.now()
            made = [event(now + timedelta(milliseconds=number + n), "s1") for n in range(50)]
            number += 50
            store.events.insert(made, now, "made")
            pipeline.delivery.deliver([each.id for each in made])
            done.wait(0.1)

    sending = Thread(target=load)
    sending.start()
    try:
        wait_until(lambda: len(journal.calls["/a"]) > 200, "the load to run")
        with Standstills() as standstills:
            turn_on(store, EVERYTHING, clock.now())
            answered = clock.now()
            wait_until(lambda: clock.now() > answered + 3 * SECOND, "three seconds")
    finally:
        done.set()
        sending.join()
    assert pipeline.wait_until_empty(PATIENCE_SECONDS)
    last = max(call.at for call in journal.calls["/a"])
    # Between a look, a start and the arrival nobody can keep this process from standing still.
    assert last <= answered.timestamp() + 1 + standstills.seconds
    assert store.holding.count(EVERYTHING.keys, most=10_000) > 0


def test_a_switch_that_is_on_twice_is_one_and_keeps_since_when(store: Store, now: datetime) -> None:
    service = KillSwitchService(store)
    first = service.turn_on(BILLING, now, note="first")
    again = service.turn_on(BILLING, now + SECOND, note="second")
    assert (first.was_on, again.was_on) == (False, True)
    (shown,) = service.that_are_on(TENANT)
    assert shown.switch == KillSwitch(BILLING, now, "second")
    assert again.switch == shown.switch


@pytest.fixture
def aged(monkeypatch: pytest.MonkeyPatch) -> Callable[[Withholding, float], None]:
    """Says how old what a worker knows is: this machine may stand still between a look and a question."""

    def set_age(watch: Withholding, seconds: float) -> None:
        monkeypatch.setattr(withholding, "monotonic", lambda: watch.kill_switches.looked_at + seconds)

    return set_age


def test_a_worker_that_was_frozen_looks_again_before_it_starts_anything(
    store: Store, aged: Callable[[Withholding, float], None]
) -> None:
    watch = Withholding(store, _has_events)
    aged(watch, 0.0)
    assert not watch.may_start()
    watch.blackouts.look()
    watch.kill_switches.look()
    assert watch.may_start()
    aged(watch, STALE_SECONDS + 0.01)
    assert not watch.may_start()
    # A MongoDB that does not answer stops no worker: the last known state holds.
    watch.kill_switches.is_away = True
    assert watch.may_start()


def test_a_worker_without_events_asks_nothing_and_looks_before_it_starts_the_first_one(
    store: Store, pipeline: Pipeline
) -> None:
    view, looks = pipeline.withholding.kill_switches, list[float]()
    read = view._read

    def noted() -> Any:
        looks.append(monotonic())
        return read()

    view._read = noted
    assert not pipeline.withholding.may_start()
    pipeline.capacity.reserve(1)
    wait_until(pipeline.withholding.may_start, "a look")
    pipeline.capacity.release(1)
    before, gone_at = len(looks), monotonic()
    wait_until(lambda: monotonic() > gone_at + 5 * KILL_SWITCH_LOOK_SECONDS, "the time of five looks")
    assert len(looks) <= before + 1, "one may have begun before the event had gone"


def test_a_look_that_breaks_is_counted_each_time_logged_once_and_followed_by_others(store: Store) -> None:
    def failures() -> float:
        found = REGISTRY.get_sample_value("scheduler_worker_failures_total", {"step": "withholding"})
        return found or 0.0

    watch, before = Withholding(store, _has_events), failures()
    read = watch.kill_switches._read

    def broken() -> NoReturn:
        raise ZeroDivisionError("a mistake of ours")

    watch.kill_switches._read = broken
    with capture_logs() as lines:
        watch.start()
        try:
            wait_until(lambda: failures() - before >= 2, "two looks that fail")
            assert not watch.may_start()
            watch.kill_switches._read = read
            wait_until(watch.may_start, "a look that succeeds")
        finally:
            watch.stop()
            watch.join()
    assert [line["event"] for line in lines if line["log_level"] == "error"] == ["withholding.failed"]


@pytest.mark.parametrize("unknown", ["kill_switches", "blackouts"])
def test_a_worker_that_has_just_started_sends_nothing_before_it_knows_what_is_stopped(
    store: Store,
    settings: Settings,
    aged: Callable[[Withholding, float], None],
    monkeypatch: pytest.MonkeyPatch,
    unknown: str,
) -> None:
    """MongoDB did not answer its first look in time, and answers again."""
    away = Store(replace(settings, mongo_uri="mongodb://127.0.0.1:9/"))
    watch, without_answer = Withholding(store, _has_events), Withholding(away, _has_events)
    aged(watch, 0.0)
    view = getattr(watch, unknown)
    read, view._read = view._read, getattr(without_answer, unknown)._read
    look_in_vain(view, monkeypatch)
    view._read = read
    other = watch.blackouts if unknown == "kill_switches" else watch.kill_switches
    other.look()
    assert not watch.may_start()
    view.look()
    assert watch.may_start()
    away.close()


def test_a_worker_looks_for_blackouts_at_once_again_until_mongodb_answers_and_then_when_they_are_old(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stops, "monotonic", lambda: 100.0)  # what is known grows no older
    watch = Withholding(store, _has_events)
    read, looks = watch.blackouts._read, list[str]()
    switches = watch.kill_switches._read

    def fails_twice() -> Any:
        looks.append("blackouts")
        if looks.count("blackouts") <= 2:
            raise AutoReconnect("connection closed")
        return read()

    def noted() -> Any:
        looks.append("kill switches")
        return switches()

    watch.blackouts._read, watch.kill_switches._read = fails_twice, noted
    watch.start()
    try:
        wait_until(lambda: looks.count("kill switches") >= 5, "five rounds")
    finally:
        watch.stop()
        watch.join()
    assert looks[:6] == ["blackouts", "kill switches"] * 3
    assert set(looks[6:]) == {"kill switches"}


def test_nothing_starts_by_what_was_known_almost_a_second_ago(
    store: Store, aged: Callable[[Withholding, float], None]
) -> None:
    watch = Withholding(store, _has_events)
    watch.blackouts.look()
    watch.kill_switches.look()
    aged(watch, KILL_SWITCH_LOOK_SECONDS)
    assert watch.may_start()
    aged(watch, 0.9)
    assert not watch.may_start()
    # A look may take as long as it may at most, and starts are not held up by the wait for the next one.
    assert KILL_SWITCH_LOOK_SECONDS < STALE_SECONDS / 2
