"""The clock follows mongod's, is never ahead of it, and is moved by no jump."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.clock import KEPT_SAMPLES, LEASES_LAST_SECONDS, RESYNC_SECONDS, Clock

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)
NOUGHT = timedelta(0)


class Host:
    """A host and a mongod whose clocks move when they are told to."""

    def __init__(self) -> None:
        self.passed = NOUGHT
        self.wall_off = NOUGHT
        self.server_off = NOUGHT

    @property
    def true(self) -> datetime:
        return NOON + self.passed

    def wall(self) -> datetime:
        return self.true + self.wall_off

    def elapsed(self) -> float:
        return 1_000.0 + self.passed / SECOND

    def clock(self) -> Clock:
        return Clock(self.wall, self.elapsed)

    def server(self, there: timedelta = MILLISECOND, back: timedelta = MILLISECOND) -> Callable[[], datetime]:
        """A mongod that is so far away; it answers in whole milliseconds."""

        def answer() -> datetime:
            self.passed += there
            said = self.true + self.server_off
            self.passed += back
            return said.replace(microsecond=said.microsecond // 1000 * 1000)

        return answer

    def goes_on(self, clock: Clock, seconds: float = RESYNC_SECONDS) -> None:
        """Time passes, and at its end the clock is measured."""
        self.passed += timedelta(seconds=seconds)
        clock.synchronize(self.server())

    def error(self, clock: Clock) -> float:
        """How far the clock is ahead of true time, seconds."""
        return (clock.now() - self.true) / SECOND


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.mark.parametrize("there", [0, 1, 20])
@pytest.mark.parametrize("back", [0, 1, 20])
@pytest.mark.parametrize("seconds", [-30.0005, 30.0, 0.25])
def test_it_is_never_ahead_of_the_server_and_behind_by_the_round_trip_at_most(
    host: Host, seconds: float, there: int, back: int
) -> None:
    clock, host.server_off = host.clock(), timedelta(seconds=seconds)
    clock.synchronize(host.server(there * MILLISECOND, back * MILLISECOND))
    behind = host.true + host.server_off - clock.now()
    assert NOUGHT <= behind <= (there + back + 2) * MILLISECOND


def test_on_one_machine_the_offset_is_nought(host: Host) -> None:
    clock = host.clock()
    assert clock.synchronize(host.server(MILLISECOND / 3, MILLISECOND / 3)) == 0
    assert clock.now() == host.true.replace(microsecond=host.true.microsecond // 1000 * 1000)


def test_a_slow_answer_does_not_undo_what_a_quick_one_told(host: Host) -> None:
    clock, host.server_off = host.clock(), 30 * SECOND
    clock.synchronize(host.server())
    quick = clock.offset_seconds
    for _ in range(KEPT_SAMPLES - 1):
        clock.synchronize(host.server(300 * MILLISECOND, 300 * MILLISECOND))
    assert clock.offset_seconds == quick


@pytest.mark.parametrize("seconds", [-0.7, 0.7])
def test_a_small_step_is_followed_at_once(host: Host, seconds: float) -> None:
    clock = host.clock()
    host.goes_on(clock)
    host.server_off = timedelta(seconds=seconds)
    host.goes_on(clock)
    assert host.error(clock) == pytest.approx(seconds, abs=0.01)
    assert clock.jump_seconds == 0


@pytest.mark.parametrize("seconds", [-60, -2, 2, 60])
def test_a_jump_of_mongods_clock_moves_nothing_and_is_told_until_it_is_back(host: Host, seconds: int) -> None:
    clock = host.clock()
    host.goes_on(clock)
    host.server_off = seconds * SECOND
    for _ in range(3 * KEPT_SAMPLES):
        host.goes_on(clock)
        assert host.error(clock) == pytest.approx(0, abs=0.01)
        assert clock.jump_seconds == pytest.approx(seconds, abs=0.01)
        assert clock.offset_seconds == pytest.approx(0, abs=0.01)
    host.server_off = NOUGHT
    host.goes_on(clock)
    assert host.error(clock) == pytest.approx(0, abs=0.01)
    assert (clock.jump_seconds, clock.adopted_seconds) == (0, 0)


@pytest.mark.parametrize("seconds", [-60, 60])
def test_a_jump_of_this_hosts_clock_moves_nothing(host: Host, seconds: int) -> None:
    clock = host.clock()
    host.goes_on(clock)
    host.wall_off = seconds * SECOND
    host.passed += SECOND
    assert host.error(clock) == pytest.approx(0, abs=0.01)
    host.goes_on(clock)
    assert host.error(clock) == pytest.approx(0, abs=0.01)
    assert clock.offset_seconds == pytest.approx(-seconds, abs=0.01)


@pytest.mark.parametrize("seconds", [-60, 60])
def test_mongods_clock_is_followed_where_this_hosts_agrees_that_it_was_corrected(
    host: Host, seconds: int
) -> None:
    clock = host.clock()
    host.server_off = seconds * SECOND
    host.goes_on(clock)
    assert host.error(clock) == pytest.approx(seconds, abs=0.01), "without a history it is the reference"
    host.server_off = NOUGHT
    host.goes_on(clock)
    assert host.error(clock) == pytest.approx(0, abs=0.01)
    assert clock.jump_seconds == 0
    assert clock.adopted_seconds == pytest.approx(-seconds, abs=0.01)
    host.goes_on(clock)
    assert clock.adopted_seconds == 0


def test_two_clocks_that_contradict_each_other_and_what_was_held_move_nothing(host: Host) -> None:
    clock = host.clock()
    host.goes_on(clock)
    host.server_off, host.wall_off = 60 * SECOND, -20 * SECOND
    host.goes_on(clock)
    assert host.error(clock) == pytest.approx(0, abs=0.01)
    host.wall_off = 60.5 * SECOND
    host.goes_on(clock)
    assert host.error(clock) == pytest.approx(60, abs=0.01)


def test_drift_while_mongod_could_not_be_asked_is_no_jump(host: Host) -> None:
    clock = host.clock()
    host.goes_on(clock)
    host.server_off = 3 * SECOND
    host.goes_on(clock, 24 * 3600)
    assert clock.jump_seconds == 0
    assert host.error(clock) == pytest.approx(3, abs=0.01)


def over_at(host: Host, clock: Clock) -> float:
    """By how much the clock that leases are ended by is ahead of true time, seconds."""
    return host.server_off / SECOND - clock.jumped_ahead_seconds(host.server())


@pytest.mark.parametrize("noticed", [False, True])
def test_leases_end_as_much_later_as_mongods_clock_has_jumped_ahead(host: Host, noticed: bool) -> None:
    clock = host.clock()
    host.goes_on(clock)
    assert over_at(host, clock) == pytest.approx(0, abs=0.01)
    host.server_off = 60 * SECOND
    if noticed:
        host.goes_on(clock)
    assert over_at(host, clock) == pytest.approx(0, abs=0.01)
    # Leases that were written before the jump are over by now.
    host.goes_on(clock, LEASES_LAST_SECONDS)
    host.goes_on(clock)
    assert over_at(host, clock) == pytest.approx(60, abs=0.01)


def test_leases_written_while_mongods_clock_was_behind_last_when_it_is_put_back(host: Host) -> None:
    clock = host.clock()
    host.goes_on(clock)
    host.server_off = -60 * SECOND
    host.goes_on(clock)
    assert over_at(host, clock) == pytest.approx(-60, abs=0.01)
    host.server_off = NOUGHT
    assert over_at(host, clock) == pytest.approx(-60, abs=0.01)
    host.goes_on(clock, LEASES_LAST_SECONDS)
    host.goes_on(clock)
    assert over_at(host, clock) == pytest.approx(0, abs=0.01)


def test_a_process_that_starts_after_a_jump_takes_its_hosts_word_for_leases(host: Host) -> None:
    host.server_off = 60 * SECOND
    clock = host.clock()
    host.goes_on(clock)
    assert over_at(host, clock) == pytest.approx(0, abs=0.01)


def test_what_is_remembered_of_mongods_clock_is_bounded(host: Host) -> None:
    clock = host.clock()
    for _ in range(5_000):
        host.server_off += MILLISECOND
        host.passed += 200 * MILLISECOND
        clock.jumped_ahead_seconds(host.server())
    assert len(clock._bases) <= LEASES_LAST_SECONDS + 2
