"""What the reports of processes come to."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.health import Check, Status
from scheduler_app.health.processes import check_fleet
from scheduler_app.store.processes import ProcessRecord

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def node(role: str, **facts: Any) -> ProcessRecord:
    """As a process reported 2 s ago."""
    fresh = {"last_tick_at": NOON} if role == "beat" else {}
    given = {"id": f"{role}-host-1", "role": role, "host": "host", "seen_at": NOON, "age_seconds": 2.0}
    return ProcessRecord(**{**given, **fresh, **facts})


def checks(*nodes: ProcessRecord) -> dict[str, Check]:
    return {check.name: check for check in check_fleet(nodes)}


def test_one_beat_and_one_worker_are_enough() -> None:
    assert [check.status for check in check_fleet([node("beat"), node("worker")])] == [Status.OK] * 3


@pytest.mark.parametrize("missing", ["beat", "worker"])
def test_a_role_that_nobody_plays_is_wrong(missing: str) -> None:
    found = checks(*(node(role) for role in ("beat", "worker", "api") if role != missing))
    assert [name for name, check in found.items() if not check.ok] == [missing]


def test_a_beat_that_reports_but_no_longer_ticks_counts_as_none() -> None:
    stuck = node("beat", last_tick_at=NOON - timedelta(seconds=120))
    found = checks(stuck, node("worker"))["beat"]
    assert (found.status, found.facts["alive"]) == (Status.WRONG, 0)
    assert "no tick has ended for 122 s" in found.found
    assert checks(stuck, node("beat"), node("worker"))["beat"].ok


def test_a_beat_that_has_just_started_has_not_ticked_yet_and_counts() -> None:
    assert checks(node("beat", last_tick_at=None))["beat"].ok


def test_a_worker_that_does_not_consume_counts_as_none() -> None:
    found = checks(node("beat"), node("worker", consuming=False))["worker"]
    assert found.status is Status.WRONG
    assert "not consuming" in found.found


@pytest.mark.parametrize(("offset", "said"), [(5.0, "5.0 s behind mongod"), (-5.0, "5.0 s ahead of mongod")])
def test_a_clock_that_is_off_is_named_with_its_host_and_its_side(offset: float, said: str) -> None:
    found = checks(node("beat"), node("worker", name="w1@host", clock_offset_seconds=offset))["clocks"]
    assert found.status is Status.WRONG
    assert found.found == f"worker w1@host on host is {said}"


@pytest.mark.parametrize(("jump", "said"), [(60.0, "60.0 s ahead of"), (-60.0, "60.0 s behind")])
def test_a_jump_of_mongods_clock_is_told_as_its_own(jump: float, said: str) -> None:
    seen_at = NOON + timedelta(seconds=jump + 2)
    beat = node("beat", clock_jump_seconds=jump, seen_at=seen_at)
    found = checks(beat, node("worker", name="w1@host", clock_jump_seconds=jump), node("api"))
    assert found["clocks"].status is Status.WRONG
    assert said in found["clocks"].found
    assert "2 of 3 processes" in found["clocks"].found
    assert found["beat"].ok


def test_a_beat_whose_ticks_stopped_is_told_from_a_jump() -> None:
    jump = 120.0
    ticking = node("beat", clock_jump_seconds=jump, seen_at=NOON + timedelta(seconds=jump))
    stuck = node("beat", clock_jump_seconds=jump, seen_at=NOON + timedelta(seconds=jump + 100))
    assert checks(ticking)["beat"].ok
    assert not checks(stuck)["beat"].ok


def test_an_offset_of_less_than_a_second_is_no_news() -> None:
    assert checks(node("worker", clock_offset_seconds=0.9))["clocks"].ok


def test_of_a_hundred_processes_a_few_are_named() -> None:
    many = [node("worker", name=f"w{number}") for number in range(100)]
    assert checks(*many)["worker"].found == "100 alive: w0, w1, w2, w3, w4 and 95 more"
