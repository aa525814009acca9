"""Blackouts, as beats and workers obey them."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta

import pytest
from structlog.testing import capture_logs

from scheduler_app.broker.app import make_app
from scheduler_app.broker.publisher import CeleryPublisher
from scheduler_app.config import Settings
from scheduler_app.domain.blackout import Blackout, BlackoutPolicy
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.event import Event, manual
from scheduler_app.domain.ids import TENANT, WholeId
from scheduler_app.domain.kill_switch import Scope, Target
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.states import Kind, State
from scheduler_app.health import Status
from scheduler_app.health.stops import check_blackouts
from scheduler_app.store import Store
from scheduler_app.store.stops import CorruptBlackout
from scheduler_app.usecases.duties.dispatch import Dispatch
from scheduler_app.usecases.duties.housekeeping import Recovery
from scheduler_app.usecases.stops import BlackoutService, BlackoutView
from scheduler_app.worker import Pipeline
from tests.acceptance.journal import Journal
from tests.builders import LONG_OVER, draft, event, message, schedule
from tests.documents import event_document
from tests.executors import executors
from tests.held_clock import HeldClock
from tests.processes import PATIENCE_SECONDS, wait_until

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
BILLING = Target(TENANT, Scope.TAG, "billing")
ERP = Target(TENANT, Scope.DESTINATION, "erp")
ONE = Target(TENANT, Scope.SCHEDULE, "other")


def set_blackout(
    store: Store, now: datetime, target: Target, policy: BlackoutPolicy = "postpone", hours: int = 1
) -> None:
    """From five seconds before `now` on."""
    start = f"DTSTART:{now - 5 * SECOND:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=YEARLY"
    name = f"{target.scope.value}-{policy}"
    made = Blackout.of(name, target, {"rrule": start}, hours * HOUR, policy, now, timezone="UTC")
    assert store.blackouts.put(made)


@pytest.fixture
def dispatch(store: Store, settings: Settings) -> Callable[..., int]:
    """One page of a beat that has just started."""

    def page(now: datetime) -> int:
        made = Dispatch(store, CeleryPublisher(make_app(settings)), horizon_seconds=5)
        return made.dispatch_page(now).dispatched

    return page


@pytest.fixture
def world(store: Store, now: datetime) -> dict[str, Event]:
    """Due events: of schedules with a tag, with a destination, with neither; a message to that destination; a
    call by hand, and an occurrence from before the blackouts, of the schedule with a tag."""
    made = Destination(id=WholeId("erp"), url="http://127.0.0.1:9/", created_at=now, updated_at=now)
    assert store.destinations.insert(made)
    store.schedules.insert(schedule(now, "tagged", tags=("billing",)))
    store.schedules.insert(draft(url=NOT_GIVEN, destination="erp").schedule("erp-1", now, max_retries=1))
    store.schedules.insert(schedule(now, "other"))
    events = {name: event(now, name) for name in ("tagged", "erp-1", "other")}
    events["by-hand"] = manual("tagged", 1, now)
    events["earlier"] = event(now - 60 * SECOND, "tagged")
    store.events.insert(list(events.values()), now, "made")
    events["message"] = message(now, url=NOT_GIVEN, destination="erp")
    assert store.messages.insert(events["message"], now)
    return events


def states(store: Store, events: dict[str, Event], now: datetime) -> dict[str, str]:
    """What became of those that were not dispatched: `skipped`, or `later`."""
    found = {name: event_document(store, made.id) for name, made in events.items()}
    return {
        name: "later" if row["state"] == State.READY_QUEUE else str(row["state"])
        for name, row in found.items()
        if row["state"] != State.WORKER_QUEUE
    }


@pytest.mark.parametrize(
    ("target", "policy", "stopped"),
    [
        (BILLING, "postpone", {"tagged": "later", "by-hand": "later", "earlier": "later"}),
        # What was not to run within, a call by hand and a message are sent when it is over.
        (BILLING, "skip", {"tagged": "skipped", "by-hand": "later", "earlier": "later"}),
        (ERP, "skip", {"erp-1": "skipped", "message": "later"}),
        (ONE, "skip", {"other": "skipped"}),
        (Target("acme", Scope.ALL), "skip", {}),
    ],
    ids=lambda value: str(value) if isinstance(value, Target | str) else "",
)
def test_what_falls_due_within_is_skipped_or_postponed_to_its_end(
    store: Store,
    dispatch: Callable[..., int],
    world: dict[str, Event],
    now: datetime,
    target: Target,
    policy: BlackoutPolicy,
    stopped: dict[str, str],
) -> None:
    set_blackout(store, now, target, policy)
    assert dispatch(now) == len(world) - len(stopped)
    assert states(store, world, now) == stopped
    end = now - 5 * SECOND + HOUR
    for name, became in stopped.items():
        found = event_document(store, world[name].id)
        assert "blackout" in found["status"][-1]["message"]
        if became == "later":
            assert found["due_at"] == end
        else:
            assert "due_at" not in found
            assert found["archived_at"] == now
    # Nothing of it is looked at again before the end, and then it is sent.
    assert dispatch(now) == 0
    assert dispatch(end) == sum(became == "later" for became in stopped.values())


def test_what_fell_due_within_one_that_skips_is_skipped_though_it_is_over(
    store: Store, dispatch: Callable[..., int], world: dict[str, Event], now: datetime
) -> None:
    """Beats were away, or the worker that had claimed it was killed."""
    set_blackout(store, now, BILLING, "skip")
    assert dispatch(now + 2 * HOUR) == len(world) - 1
    assert states(store, world, now) == {"tagged": "skipped"}
    assert "tag-skip" in event_document(store, world["tagged"].id)["status"][-1]["message"]


@pytest.mark.parametrize("after", [10 * SECOND, 2 * HOUR], ids=["within", "when it is over"])
def test_what_a_killed_worker_had_claimed_is_skipped_when_it_is_recovered(
    store: Store, dispatch: Callable[..., int], world: dict[str, Event], now: datetime, after: timedelta
) -> None:
    """It was claimed ahead of its time, and recovery gives it a new one."""
    set_blackout(store, now, BILLING, "skip")
    occurrence = world["tagged"].id
    store.claims.claim([occurrence], until=now, now=now - SECOND, lease_seconds=LONG_OVER, worker="killed")
    assert Recovery(store).recover_workers(now + after).workers == 1
    dispatch(now + after + 5 * SECOND)
    found = event_document(store, occurrence)
    assert found["state"] == State.SKIPPED
    assert "tag-skip" in found["status"][-1]["message"]


def test_only_occurrences_of_its_time_that_nothing_was_tried_for_are_skipped(
    store: Store, now: datetime
) -> None:
    made = {
        "skipped": event(now, "s1"),
        "at its end": event(now + SECOND, "s2"),
        "before it": event(now - SECOND, "s3"),
        "after it": event(now + 2 * SECOND, "s4"),
        "tried": event(now, "s5", attempt=1),
        "by hand": event(now, "s6", kind=Kind.MANUAL),
    }
    store.events.insert(list(made.values()), now, "made")
    store.mongo.collection("events").update_one({"_id": made["tried"].id}, {"$set": {"attempt": 1}})
    ids = [each.id for each in made.values()]
    assert store.blacked_out.skip(ids, now, now + SECOND, now, "of the test") == 2
    found = {name: event_document(store, each.id)["state"] for name, each in made.items()}
    assert [name for name, state in found.items() if state == State.SKIPPED] == ["skipped", "at its end"]


def test_what_fell_due_before_one_was_given_is_sent_when_it_is_over(
    store: Store, dispatch: Callable[..., int], world: dict[str, Event], now: datetime
) -> None:
    set_blackout(store, now, BILLING, "skip")
    late = {"$set": {"created_at": now + SECOND}}
    store.mongo.collection("blackouts").update_one({"_id": "tag-skip"}, late)
    assert dispatch(now + 2 * HOUR) == len(world)


def test_what_was_put_off_beyond_one_that_skips_is_skipped(
    store: Store, dispatch: Callable[..., int], world: dict[str, Event], now: datetime
) -> None:
    """A worker gives it back to beats; the blackout is over when one looks at it."""
    set_blackout(store, now, BILLING, "skip")
    later = {"due_at": now + 2 * HOUR, "postponed_from": now}
    store.mongo.collection("events").update_one({"_id": world["tagged"].id}, {"$set": later})
    assert dispatch(now + 2 * HOUR) == len(world) - 1
    assert states(store, world, now) == {"tagged": "skipped"}


def test_what_fell_due_within_one_that_postpones_is_sent_when_it_is_over(
    store: Store, dispatch: Callable[..., int], world: dict[str, Event], now: datetime
) -> None:
    set_blackout(store, now, BILLING)
    assert dispatch(now + 2 * HOUR) == len(world)


def test_overlapping_blackouts_postpone_to_the_end_of_both(
    store: Store, dispatch: Callable[..., int], world: dict[str, Event], now: datetime
) -> None:
    set_blackout(store, now, BILLING, hours=1)
    set_blackout(store, now, Target(TENANT, Scope.ALL), hours=3)
    assert dispatch(now) == 0
    assert event_document(store, world["tagged"].id)["due_at"] == now - 5 * SECOND + 3 * HOUR


def test_what_is_due_after_the_end_within_the_horizon_is_dispatched(
    store: Store, dispatch: Callable[..., int], now: datetime
) -> None:
    set_blackout(store, now, Target(TENANT, Scope.ALL))
    end = now - 5 * SECOND + HOUR
    store.events.insert([event(end - SECOND), event(end), event(end + SECOND)], now, "made")
    assert dispatch(end - 2 * SECOND) == 2
    assert event_document(store, event(end - SECOND).id)["due_at"] == end


def test_a_document_that_somebody_bent_stops_nothing_and_no_other(
    store: Store, dispatch: Callable[..., int], world: dict[str, Event], now: datetime
) -> None:
    set_blackout(store, now, BILLING)
    set_blackout(store, now, ERP)
    for change in (
        {"duration_seconds": "long"},
        {"duration_seconds": float("nan")},
        {"pinned": 5},
        {"target": "default/planet/x"},
        {"target": "acme/all"},
        {"policy": "maybe"},
        {"created_at": "soon"},
        {"v": 99},
    ):
        documents = store.mongo.collection("blackouts")
        sound = documents.find_one({"_id": "tag-postpone"})
        documents.update_one({"_id": "tag-postpone"}, {"$set": change})
        assert [each.name for each in store.blackouts.everybodys(now).all] == ["destination-postpone"]
        assert sound is not None
        documents.replace_one({"_id": "tag-postpone"}, sound)
    documents.update_one({"_id": "tag-postpone"}, {"$set": {"pinned": "no rule"}})
    documents.update_one({"_id": "tag-postpone"}, {"$set": {"target": "default/all"}})
    assert dispatch(now) == 4
    assert states(store, world, now) == {"erp-1": "later", "message": "later"}


@pytest.mark.parametrize("pinned", ["no rule", "DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY;INTERVAL=0"])
def test_one_whose_stored_rule_raises_is_reported_as_corrupt(
    store: Store, now: datetime, pinned: str
) -> None:
    set_blackout(store, now, ERP)
    set_blackout(store, now, BILLING)
    documents = store.mongo.collection("blackouts")
    documents.update_one({"_id": "tag-postpone"}, {"$set": {"pinned": pinned, "rrule": pinned}})
    view = BlackoutView(store)
    with capture_logs() as lines:
        view.look()
        view.look()
    reported = [line["blackout"] for line in lines if line["event"] == "blackout.corrupt"]
    assert reported == ["tag-postpone"]
    assert [each.name for each in view.known.all] == ["destination-postpone"]
    corrupt = [each for each in store.blackouts.of(TENANT, now) if isinstance(each, CorruptBlackout)]
    assert [each.name for each in corrupt] == ["tag-postpone"]
    check = check_blackouts(store.blackouts.corrupt(now))
    assert check.status is Status.WRONG
    assert "tag-postpone" in check.found
    assert "destination-postpone" not in check.found
    assert check_blackouts([]).status is Status.OK


def test_a_sound_one_can_be_set_beside_one_whose_stored_rule_raises(store: Store, now: datetime) -> None:
    set_blackout(store, now, BILLING)
    documents = store.mongo.collection("blackouts")
    documents.update_one({"_id": "tag-postpone"}, {"$set": {"pinned": "no rule"}})
    documents.update_one({"_id": "tag-postpone"}, {"$set": {"rrule": "no rule"}})
    night = {"cron": "0 22 * * *"}
    made = Blackout.of("night", BILLING, night, HOUR, "postpone", now, timezone="UTC")
    assert BlackoutService(store).put(made, now) == (made, "created")


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


@pytest.mark.parametrize("policy", ["postpone", "skip"])
def test_a_worker_sends_nothing_within_a_blackout_that_it_was_dispatched_before(
    store: Store, pipeline: Pipeline, time: HeldClock, policy: BlackoutPolicy
) -> None:
    now = time.hold()
    due = now + SECOND
    with closing(Journal()) as journal:
        store.schedules.insert(schedule(now, "tagged", tags=("billing",), url=journal.url("/tagged")))
        store.schedules.insert(schedule(now, "other", url=journal.url("/other")))
        events = {name: event(due, name) for name in ("tagged", "other")}
        store.events.insert(list(events.values()), now, "made")
        assert pipeline.delivery.deliver([made.id for made in events.values()]) == 2
        set_blackout(store, now.replace(microsecond=0), BILLING, policy)
        wait_until(lambda: bool(pipeline.withholding.blackouts.known.all), "the worker to know of it")
        time.go_on()
        assert pipeline.wait_until_empty(PATIENCE_SECONDS)
    assert list(journal.calls) == ["/other"]
    found = event_document(store, events["tagged"].id)
    assert (found["state"], found["attempt"]) == (State.READY_QUEUE, 0)
    assert found["postponed_from"] == due
    # What is to be skipped comes to a beat at once, which does it.
    assert (found["due_at"] > now + 3_000 * SECOND) == (policy == "postpone")
