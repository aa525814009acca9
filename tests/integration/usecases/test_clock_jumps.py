"""A jump of mongod's clock ends no lease before its time, and stops nobody."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.clock import Clock
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.usecases.duties.housekeeping import Recovery
from tests.builders import event
from tests.documents import event_document
from tests.processes import wait_until

JUMP = timedelta(hours=1)
LEASE_SECONDS = 1_500.0
#: How long a dead worker's lease is over: a measurement of a clock may take some of these.
OVER_SECONDS = 600.0


@pytest.fixture
def clock_before_a_jump(store: Store) -> Callable[[timedelta], Clock]:
    """The clock of a process that measured mongod's before that jumped: now it is ahead by so much."""

    def made(jump: timedelta) -> Clock:
        clock = Clock(wall=lambda: datetime.now(UTC) - jump)
        clock.synchronize(lambda: store.mongo.server_time() - jump)
        return clock

    return made


def claim(store: Store, name: str, lease_seconds: float) -> str:
    """An event that a worker has, under a lease that ends in so many seconds by mongod's clock."""
    now = datetime.now(UTC)
    made = event(now, name)
    store.events.insert([made], now, "made")
    store.claims.claim([made.id], until=now, now=now, lease_seconds=lease_seconds, worker="w1")
    return made.id


def state(store: Store, event_id: str) -> str:
    found = event_document(store, event_id)
    assert found is not None
    return str(found["state"])


def test_a_lease_from_before_the_jump_is_not_ended_and_a_dead_one_is(
    store: Store, clock_before_a_jump: Callable[[timedelta], Clock]
) -> None:
    clock = clock_before_a_jump(JUMP)
    alive = claim(store, "alive", LEASE_SECONDS - JUMP.total_seconds())
    dead = claim(store, "dead", -OVER_SECONDS - JUMP.total_seconds())
    for _ in range(2):
        store.synchronize(clock)
        Recovery(store, clock).recover_workers(clock.now())
    assert (state(store, alive), state(store, dead)) == (State.RUNNING, State.RETRYING)
    assert clock.jump_seconds == pytest.approx(JUMP.total_seconds(), abs=OVER_SECONDS)


def test_a_jump_that_the_process_has_not_measured_yet_is_noticed_before_a_lease_is_ended(
    store: Store, clock_before_a_jump: Callable[[timedelta], Clock]
) -> None:
    alive = claim(store, "alive", LEASE_SECONDS - JUMP.total_seconds())
    assert Recovery(store, clock_before_a_jump(JUMP)).recover_workers(datetime.now(UTC)).total == 0
    assert state(store, alive) == State.RUNNING


def test_after_a_jump_back_nothing_ends_early(
    store: Store, clock_before_a_jump: Callable[[timedelta], Clock]
) -> None:
    clock = clock_before_a_jump(-JUMP)
    alive = claim(store, "alive", LEASE_SECONDS + JUMP.total_seconds())
    dead = claim(store, "dead", -OVER_SECONDS)
    Recovery(store, clock).recover_workers(clock.now())
    assert (state(store, alive), state(store, dead)) == (State.RUNNING, State.RETRYING)


def test_without_a_jump_a_lease_ends_when_it_is_over(store: Store) -> None:
    clock = Clock()
    store.synchronize(clock)
    dead, alive = claim(store, "dead", -0.1), claim(store, "alive", LEASE_SECONDS)
    # A measurement that takes longer than a second looks like a jump.
    wait_until(lambda: Recovery(store, clock).recover_workers(clock.now()).workers == 1, "its end")
    assert (state(store, dead), state(store, alive)) == (State.RETRYING, State.RUNNING)
