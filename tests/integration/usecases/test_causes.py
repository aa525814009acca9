"""Causes are opened, counted and over, whoever dies in between; and nobody pays while all is well."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

import pytest
from pymongo.errors import AutoReconnect

from scheduler_app.clock import clock
from scheduler_app.domain.cause import (
    ANSWERING,
    MAX_NAMED,
    Cause,
    CauseKey,
    CauseKind,
    CauseState,
    Tally,
    failing_key,
    found,
)
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store import causes as cause_store
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.store.schedules.last_runs import RunResult
from scheduler_app.usecases import cause_counts
from scheduler_app.usecases.cause_counts import CauseCounts
from scheduler_app.usecases.duties.causes import CauseTending
from scheduler_app.worker import Pipeline
from tests.acceptance.journal import Journal
from tests.builders import event, message, schedule
from tests.documents import event_document
from tests.integration.actions.receiver import says
from tests.integration.conftest import NOON
from tests.processes import PATIENCE_SECONDS, wait_until

SECOND = timedelta(seconds=1)
RECEIVER = "http://127.0.0.1:9"


class World:
    """A store in which events fail and succeed, as workers of several processes record it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.tending = CauseTending(store)
        self.worker = self.new_worker()

    def new_worker(self) -> CauseCounts:
        return CauseCounts(self.store.causes)

    def ended(
        self,
        schedule_id: str,
        at: datetime,
        state: State = State.RETRYING,
        *,
        status: int = 500,
        told: bool = True,
        due: datetime | None = None,
        again: str | None = None,
        tags: Sequence[str] = (),
    ) -> str:
        """An event's attempt ended; `told`: its worker has lived to note it."""
        if again is None:
            made = event(due or at, schedule_id, origin=RECEIVER)
            self.store.events.insert([made], at, "made")
        event_id = again or made.id
        token, [claimed] = self.store.claims.claim(
            [event_id], until=at + 9 * SECOND, now=at, lease_seconds=600, worker="w"
        )
        failed = state is not State.COMPLETED
        record = OutcomeRecord(
            *(event_id, token, state, "said", at + SECOND if state is State.RETRYING else None),
            {"number": claimed.attempt + 1, "status_code": status, "error": None, "started_at": at},
            at,
            event=claimed,
            origin=RECEIVER,
            cause=failing_key(event_id, RECEIVER, status, None) if failed else None,
            tags=tags,
        )
        assert self.store.outcomes.record([record]) == []
        if told:
            self.worker.note([record])
        run = RunResult(schedule_id, claimed.run_time, state, event_id, at)
        self.store.last_runs.write([run])
        return event_id

    def tend(self, now: datetime, times: int = 1) -> None:
        for _ in range(times):
            self.tending.tend_page(now)

    @property
    def causes(self) -> list[Cause]:
        rows = self.store.mongo.collection("causes").find({}).sort("since", 1)
        return [cause_store.from_document(row) for row in rows]

    @property
    def only(self) -> Cause:
        [found] = self.causes
        return found


@pytest.fixture
def world(store: Store) -> World:
    made = World(store)
    for each in ("s1", "s2", "s3"):
        store.schedules.insert(schedule(NOON - SECOND, each, tags=("team:a",)))
    return made


def test_failures_of_one_receiver_are_one_cause_that_names_whom_it_touches(world: World) -> None:
    world.ended("s1", NOON, tags=("team:a",))
    world.ended("s2", NOON + SECOND, State.ERROR, tags=("team:a", "customer:x"))
    world.worker.write()
    world.ended("s3", NOON + 2 * SECOND)
    world.worker.write()
    cause = world.only
    assert (cause.since, cause.last) == (NOON, NOON + 2 * SECOND)
    assert (cause.failed, cause.gave_up, cause.key.failure) == (3, 1, "status 500")
    assert cause.schedules.names == ("s1", "s2", "s3")
    assert cause.tags.names == ("team:a", "customer:x")
    assert cause.tenants.names == ("default",)
    assert cause.state is CauseState.OPEN
    counts = world.store.cause_marks.counts([cause.key.id], most=100)[cause.key.id]
    assert (counts.waiting, counts.dead, counts.next_try) == (2, 1, NOON + SECOND)
    # What fails in another way is another one.
    world.ended("s1", NOON + 3 * SECOND, status=503)
    world.worker.write()
    assert [each.key.failure for each in world.causes] == ["status 500", "status 503"]


def test_it_is_over_when_its_schedules_have_succeeded_and_the_next_failure_is_another(world: World) -> None:
    first = world.ended("s1", NOON)
    second = world.ended("s2", NOON)
    world.worker.write()
    world.ended("s1", NOON + 2 * SECOND, State.COMPLETED, again=first)
    world.tend(NOON + 2 * SECOND)
    assert [each.schedule_id for each in world.only.failing] == ["s2"]
    world.ended("s2", NOON + 3 * SECOND, State.COMPLETED, again=second)
    world.tend(NOON + 4 * SECOND)
    assert (world.only.state, world.only.over_at) == (CauseState.OVER, NOON + 4 * SECOND)
    # The mark is gone with the success.
    assert "cause" not in (event_document(world.store, first) or {})
    world.ended("s1", NOON + 9 * SECOND)
    world.worker.write()
    assert [each.state for each in world.causes] == [CauseState.OVER, CauseState.OPEN]
    # One that is told late belongs to the one that is over.
    world.store.causes.touch([Tally(world.causes[0].key, NOON, NOON + SECOND)])
    assert len(world.causes) == 2


def test_a_page_of_causes_that_go_on_failing_keeps_back_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler_app.usecases.duties.causes.CAUSES_A_PAGE", 1)
    # Causes are read in the order of their keys.
    lasting, passing = sorted((500, 503), key=lambda status: failing_key("", RECEIVER, status, None).id)
    world.ended("s1", NOON, status=lasting)
    other = world.ended("s2", NOON, status=passing)
    world.worker.write()
    world.ended("s2", NOON + 2 * SECOND, State.COMPLETED, again=other)
    world.tend(NOON + 3 * SECOND, times=3)
    over = {cause.key.failure: cause.over_at is not None for cause in world.causes}
    assert over == {f"status {lasting}": False, f"status {passing}": True}


def test_a_receiver_of_which_one_path_fails_does_not_open_and_close(world: World) -> None:
    """/a succeeds each second, /b fails each minute: one cause, which is never over."""
    for minute in range(12):
        at = NOON + timedelta(minutes=minute)
        world.ended("s2", at, State.ERROR)
        world.worker.write()
        world.ended("s1", at + SECOND, State.COMPLETED)
        world.worker.write()
        world.tend(at + 2 * SECOND)
    assert world.only.is_living
    assert world.only.failed == 12


def test_it_is_over_after_five_minutes_of_successes(world: World) -> None:
    world.ended("s2", NOON, State.ERROR)
    world.worker.write()
    world.ended("s1", NOON + SECOND, State.COMPLETED)
    world.worker.write()
    assert world.only.answering_since == NOON + SECOND
    world.tend(NOON + ANSWERING)
    assert world.only.is_living
    world.tend(NOON + ANSWERING + SECOND)
    assert not world.only.is_living
    assert world.only.has_dead_letters


def test_what_a_killed_worker_could_not_tell_of_is_found_by_its_events(world: World) -> None:
    world.ended("s1", NOON, told=False)
    world.ended("s2", NOON, State.ERROR, told=False)
    world.tend(NOON + SECOND)
    # A worker that lives tells of it within this time.
    assert world.causes == []
    world.tend(NOON + 3 * SECOND)
    assert (world.only.since, world.only.gave_up, world.only.schedules.count) == (NOON, 1, 2)
    # Looked at again, it is the same.
    world.tend(NOON + 9 * SECOND, times=3)
    assert (world.only.gave_up, world.only.schedules.count) == (1, 2)


def test_dead_letters_of_an_older_release_and_of_recovery_get_a_cause(world: World, store: Store) -> None:
    dead = world.ended("s1", NOON, State.ERROR, told=False)
    store.mongo.collection("events").update_one({"_id": dead}, {"$unset": {"cause": ""}})
    world.tend(NOON + SECOND)
    assert (world.only.key.failure, world.only.gave_up) == ("status 500", 1)
    document = event_document(store, dead)
    assert document is not None
    assert document["cause"] == world.only.key.id


def test_marks_of_a_cause_that_is_over_open_none_again(world: World) -> None:
    world.ended("s1", NOON)
    world.worker.write()
    store = world.store
    store.causes.change(world.only.id, lambda cause: cause.over(NOON + SECOND))
    world.tend(NOON + 2 * SECOND, times=3)
    assert len(world.causes) == 1


def test_dead_letters_that_were_sent_or_dismissed_are_left_no_more(world: World) -> None:
    first = world.ended("s1", NOON, State.ERROR)
    second = world.ended("s2", NOON, State.ERROR)
    world.worker.write()
    world.store.causes.change(world.only.id, lambda cause: cause.over(NOON + SECOND))
    world.store.events.redrive([first], NOON + 2 * SECOND, "again")
    world.tend(NOON + 3 * SECOND)
    assert world.only.has_dead_letters
    world.store.events.dismiss([second], NOON + 4 * SECOND, "no")
    world.tend(NOON + 5 * SECOND)
    assert not world.only.has_dead_letters


def test_a_deleted_schedule_fails_no_more_and_messages_are_over_with_a_success(world: World) -> None:
    store = world.store
    world.ended("s1", NOON, State.ERROR)
    world.worker.write()
    store.schedules.delete("s1", NOON + SECOND)
    world.tend(NOON + 2 * SECOND)
    assert not world.only.is_living
    made = message(NOON, "m1", url=f"{RECEIVER}/")
    tally = Tally(failing_key(made.id, RECEIVER, 502, None), NOON, NOON)
    tally.add(made.id, "", NOON, "no", is_first=True)
    [alone] = store.causes.touch([tally])
    store.causes.answered({alone.id: NOON + SECOND})
    world.tend(NOON + 2 * SECOND)
    assert not any(each.is_living for each in world.causes)


def test_five_hundred_schedules_of_a_receiver_are_one_cause_that_counts_them(world: World) -> None:
    tally = Tally(failing_key("s1-1-x", RECEIVER, 500, None), NOON, NOON)
    for number in range(500):
        tally.add(f"e{number}", f"n{number}", NOON, "no", is_first=True)
    world.store.causes.touch([tally])
    assert (world.only.schedules.count, len(world.only.schedules.names)) == (500, MAX_NAMED)


def test_two_processes_count_all_failures_of_a_cause(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reads the cause while the other writes it."""
    store, other = world.store, world.new_worker()
    world.ended("s1", NOON)
    world.worker.write()
    replaced = store.causes._replaced
    interfered: list[int] = []

    def late(changed: Sequence[Cause]) -> list[Cause]:
        if not interfered:
            interfered.append(1)
            other.write()
        return replaced(changed)

    world.worker, first = other, world.worker
    world.ended("s2", NOON + SECOND)
    world.worker = first
    world.ended("s3", NOON + SECOND)
    monkeypatch.setattr(store.causes, "_replaced", late)
    first.write()
    assert (world.only.failed, world.only.schedules.count) == (3, 3)


def test_a_cause_that_two_processes_open_is_opened_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = world.store, world.new_worker()
    inserted = store.causes._inserted
    interfered: list[int] = []

    def late(fresh: Sequence[Cause]) -> set[str]:
        if not interfered:
            interfered.append(1)
            other.write()
        return inserted(fresh)

    world.worker, first = other, world.worker
    world.ended("s2", NOON + SECOND)
    world.worker = first
    world.ended("s1", NOON)
    monkeypatch.setattr(store.causes, "_inserted", late)
    first.write()
    assert (world.only.failed, world.only.since) == (2, NOON)


def test_what_cannot_be_written_is_kept_and_written_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(tallies: Any) -> None:
        raise AutoReconnect("away")

    world.ended("s1", NOON)
    with monkeypatch.context() as patch:
        patch.setattr(world.store.causes, "touch", away)
        with pytest.raises(AutoReconnect):
            world.worker.write()
    world.ended("s2", NOON + SECOND)
    world.worker.write()
    assert world.only.failed == 2


def test_no_more_causes_wait_or_are_open_than_their_bounds(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cause_counts, "MAX_TALLIES", 2)
    for status in (500, 501, 502):
        world.ended("s1", NOON + (status - 500) * SECOND, status=status)
    assert len(world.worker) == 2
    monkeypatch.setattr(cause_store, "MAX_LIVING", 1)
    world.worker.write()
    assert len(world.causes) == 1


def test_a_tenant_leaves_room_for_the_causes_of_the_next_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cause_store, "MAX_LIVING", 8)

    def opened(tenant: str, count: int) -> int:
        keys = [CauseKey(tenant, CauseKind.FINISHED, f"s{number}") for number in range(count)]
        return len(store.causes.touch([found(key, NOON, NOON, "said") for key in keys]))

    assert opened("default", 9) == 4
    assert opened("acme", 9) == 2
    assert opened("other", 9) == 1
    assert opened("default", 9) == 0


def test_nothing_is_written_or_read_for_events_while_all_is_well(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.worker.write()
    asked: list[str] = []
    for name in ("touch", "answered", "unanswered", "write"):
        monkeypatch.setattr(world.store.causes, name, lambda *_, name=name: asked.append(name))
    for number in range(5):
        world.ended("s1", NOON + number * SECOND, State.COMPLETED)
        world.worker.write()
    assert (asked, len(world.worker)) == ([], 0)


def test_a_hundred_thousand_failures_cost_as_many_writes_as_ten(world: World) -> None:
    written = 0
    touch = world.store.causes._replaced

    def counted(changed: Sequence[Cause]) -> list[Cause]:
        nonlocal written
        written += len(changed)
        return touch(changed)

    world.store.causes._replaced = counted  # type: ignore[method-assign]
    for _ in range(3):
        made = event(NOON, "s1", origin=RECEIVER)
        record = OutcomeRecord(
            *(made.id, "t", State.RETRYING, "said", NOON + SECOND, {"number": 1, "status_code": 500}, NOON),
            event=made,
            origin=RECEIVER,
            cause=failing_key(made.id, RECEIVER, 500, None),
        )
        world.worker.note([record] * 30_000)
        world.worker.write()
    assert (world.only.failed, written) == (90_000, 2)


@pytest.fixture
def journal() -> Iterator[Journal]:
    with closing(Journal()) as made:
        yield made


def test_a_worker_opens_a_cause_and_a_beat_ends_it(
    store: Store, pipeline: Pipeline, journal: Journal
) -> None:
    now = clock.now()
    url = journal.script("/hook", says("500 Internal Server Error"), says())
    store.schedules.insert(schedule(now - 10 * SECOND, "s1", url=url, tags=("team:a",)))
    made = event(now, "s1")
    store.events.insert([made], now, "made")

    def causes() -> list[Cause]:
        return [cause_store.from_document(row) for row in store.mongo.collection("causes").find({})]

    pipeline.delivery.deliver([made.id])
    wait_until(lambda: bool(causes()), "the cause to be opened")
    [cause] = causes()
    assert cause.key.subject == journal.url("").rstrip("/")
    assert (cause.tags.names, cause.event_id) == (("team:a",), made.id)
    document = event_document(store, made.id)
    assert document is not None
    assert (document["state"], document["cause"]) == ("retrying", cause.key.id)
    store.mongo.collection("events").update_one({"_id": made.id}, {"$set": {"due_at": now}})
    pipeline.delivery.deliver([made.id])
    assert pipeline.wait_until_empty(PATIENCE_SECONDS)
    tending = CauseTending(store)

    def over() -> bool:
        tending.tend_page(clock.now())
        return causes()[0].state is CauseState.OVER

    wait_until(over, "the cause to be over")
