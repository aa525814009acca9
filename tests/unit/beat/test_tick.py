"""What a tick makes of its duties: their turns, their periods, and their faults."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from scheduler_app.beat.duties import Duty
from scheduler_app.beat.scheduler import Tick

NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Away(Exception):
    """A server does not answer."""


@pytest.fixture
def done() -> list[str]:
    """The names of the duties of which a page was worked on, in order."""
    return []


@pytest.fixture
def duty(done: list[str]) -> Callable[..., Duty]:
    def make(name: str, pages: int = 1, fault: Exception | None = None, **fields: float | Duty) -> Duty:
        left = pages

        def page(now: datetime) -> bool:
            nonlocal left
            assert now == NOW
            done.append(name)
            if fault is not None:
                raise fault
            left -= 1
            return left > 0

        return Duty(name=name, page=page, while_failing=f"{name} waits", **fields)  # type: ignore[arg-type]

    return make


def tick_of(*duties: Duty, stopping: Callable[[], bool] = lambda: False) -> Tick:
    return Tick(duties, now=lambda: NOW, stopping=stopping, unavailable=(Away,))


def test_a_duty_without_a_turn_works_on_one_page_a_tick(duty: Callable[..., Duty], done: list[str]) -> None:
    tick = tick_of(duty("a", pages=2), duty("b"))
    assert tick.run() is True
    assert done == ["a", "b"]
    assert tick.run() is False


def test_a_duty_with_a_turn_works_on_pages_until_none_is_left(
    duty: Callable[..., Duty], done: list[str]
) -> None:
    assert tick_of(duty("a", pages=3, turn=60.0)).run() is False
    assert done == ["a", "a", "a"]


def test_another_duty_runs_between_the_pages_of_a_large_one(
    duty: Callable[..., Duty], done: list[str]
) -> None:
    small = duty("small")
    tick_of(duty("large", pages=3, turn=60.0, between_pages=small), small).run()
    assert done == ["large", "small", "large", "small", "large", "small"]


def test_a_duty_with_a_period_rests_only_once_nothing_is_left(
    duty: Callable[..., Duty], done: list[str]
) -> None:
    tick = tick_of(duty("a", pages=2, period=60.0))
    for _ in range(4):
        tick.run()
    assert done == ["a", "a"]


@pytest.mark.parametrize("fault", [Away("no server"), ZeroDivisionError("a defect")], ids=["away", "defect"])
def test_a_fault_of_one_duty_leaves_the_others_their_turn_and_is_tried_again(
    duty: Callable[..., Duty], done: list[str], fault: Exception
) -> None:
    tick = tick_of(duty("bad", fault=fault, period=60.0), duty("good"))
    tick.run()
    tick.run()
    assert done == ["bad", "good", "bad", "good"]


def test_a_fault_between_pages_does_not_end_the_duty_that_has_the_pages(
    duty: Callable[..., Duty], done: list[str]
) -> None:
    bad = duty("bad", fault=Away("no server"))
    tick_of(duty("large", pages=2, turn=60.0, between_pages=bad)).run()
    assert done == ["large", "bad", "large"]


def test_an_outage_is_logged_once_with_its_consequence_and_so_is_its_end() -> None:
    away = True

    def page(now: datetime) -> bool:
        if away:
            raise Away("no server")
        return False

    tick = tick_of(Duty(name="expand", page=page, while_failing="no new events are created"))
    with capture_logs() as logs:
        tick.run()
        tick.run()
        away = False
        tick.run()
        tick.run()
    assert [line["event"] for line in logs] == ["expand.unavailable", "expand.back"]
    assert logs[0]["message"].endswith("until then no new events are created")


def test_a_duty_that_is_not_wanted_has_no_turn_until_it_is(
    duty: Callable[..., Duty], done: list[str]
) -> None:
    there: list[str] = []
    wanted = replace(duty("rare"), wanted=lambda now: now == NOW and bool(there))
    tick = tick_of(wanted, duty("each"))
    assert tick.run() is False
    assert done == ["each"]
    there.append("work")
    tick.run()
    assert done == ["each", "rare", "each"]


def test_a_shutdown_is_obeyed_between_two_pages(duty: Callable[..., Duty], done: list[str]) -> None:
    tick = tick_of(duty("a", pages=9, turn=60.0), duty("b"), stopping=lambda: len(done) == 2)
    assert tick.run() is False
    assert done == ["a", "a"]
