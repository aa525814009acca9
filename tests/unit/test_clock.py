"""The clock follows mongod's, and is never ahead of it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app import clock as module
from scheduler_app.clock import KEPT_SAMPLES, Clock

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


class Local:
    """A local clock that moves when it is told to."""

    def __init__(self) -> None:
        self.time = NOON

    def now(self, tz: object) -> datetime:
        return self.time

    def server(self, offset: timedelta, there: timedelta, back: timedelta) -> Callable[[], datetime]:
        """A mongod whose clock is `offset` ahead, so far away; it answers in whole milliseconds."""

        def answer() -> datetime:
            self.time += there
            said = self.time + offset
            self.time += back
            return said.replace(microsecond=said.microsecond // 1000 * 1000)

        return answer


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> Local:
    made = Local()
    monkeypatch.setattr(module, "datetime", made)
    return made


@pytest.mark.parametrize("there", [0, 1, 20])
@pytest.mark.parametrize("back", [0, 1, 20])
@pytest.mark.parametrize("seconds", [-30.0005, 30.0, 0.25])
def test_it_is_never_ahead_of_the_server_and_behind_by_the_round_trip_at_most(
    local: Local, seconds: float, there: int, back: int
) -> None:
    clock, offset = Clock(), timedelta(seconds=seconds)
    clock.synchronize(local.server(offset, there * MILLISECOND, back * MILLISECOND))
    behind = local.time + offset - clock.now()
    assert timedelta(0) <= behind <= (there + back + 2) * MILLISECOND


def test_on_one_machine_the_offset_is_nought(local: Local) -> None:
    clock = Clock()
    assert clock.synchronize(local.server(timedelta(0), MILLISECOND / 3, MILLISECOND / 3)) == 0


def test_a_slow_answer_does_not_undo_what_a_quick_one_told(local: Local) -> None:
    clock, offset = Clock(), timedelta(seconds=30)
    clock.synchronize(local.server(offset, MILLISECOND, MILLISECOND))
    quick = clock.offset_seconds
    for _ in range(KEPT_SAMPLES - 1):
        clock.synchronize(local.server(offset, 300 * MILLISECOND, 300 * MILLISECOND))
    assert clock.offset_seconds == quick


def test_a_clock_that_was_set_is_followed_at_once(local: Local) -> None:
    clock = Clock()
    clock.synchronize(local.server(timedelta(0), MILLISECOND, MILLISECOND))
    clock.synchronize(local.server(timedelta(seconds=-30), 300 * MILLISECOND, 300 * MILLISECOND))
    assert clock.offset_seconds == pytest.approx(-30, abs=0.7)
