"""The heartbeat of a process goes on, whatever its callbacks raise."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

import scheduler_app.usecases.heartbeat
from scheduler_app.clock import Clock
from scheduler_app.store import Store
from scheduler_app.usecases.heartbeat import Presence
from tests.processes import wait_until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_app.usecases.heartbeat, "REPORT_SECONDS", 0.02)


@pytest.fixture
def start(store: Store) -> Iterator[Callable[..., Presence]]:
    made: list[Presence] = []

    def start_(**callbacks: Any) -> Presence:
        made.append(Presence(store, Clock(), "worker", **callbacks))
        made[-1].start()
        return made[-1]

    yield start_
    for presence in made:
        presence.stop()
        presence.join()


def failures(step: str) -> float:
    return REGISTRY.get_sample_value("scheduler_heartbeat_failures_total", {"step": step}) or 0.0


def test_facts_that_raise_are_left_out_and_told_of_once(start: Callable[..., Presence], store: Store) -> None:
    before = failures("facts")

    def raises() -> dict[str, Any]:
        raise LookupError("a mistake")

    with capture_logs() as lines:
        presence = start(facts=raises)
        wait_until(lambda: failures("facts") >= before + 5, "several turns")
    assert presence.is_alive()
    assert [line["step"] for line in lines if line["event"] == "heartbeat.failed"] == ["facts"]
    # Both count for some seconds, which may have passed since the last turn.
    wait_until(lambda: [each.role for each in store.processes.alive()] == ["worker"], "a fresh report")
    wait_until(lambda: presence.trouble() is None, "a fresh turn")


def test_an_on_offset_that_raises_keeps_neither_the_clock_nor_the_report(
    start: Callable[..., Presence], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Clock, "stale", lambda self: True)
    before, heard = failures("on_offset"), []

    def raises(offset: float) -> None:
        heard.append(offset)
        raise ConnectionError("the broker is away")

    presence = start(on_offset=raises)
    wait_until(lambda: len(heard) >= 3, "it to be called again")
    assert failures("on_offset") >= before + 2
    wait_until(lambda: bool(store.processes.alive()), "the report")
    assert presence.is_alive()
    wait_until(lambda: presence.trouble() is None, "a fresh turn")


def test_a_report_that_fails_by_a_mistake_of_ours_becomes_trouble(
    start: Callable[..., Presence], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_app.usecases.heartbeat, "TURN_SECONDS", 0.2)
    presence = start(facts=lambda: {"unencodable": object()})
    before = failures("report")
    wait_until(lambda: failures("report") >= before + 3, "several turns")
    wait_until(lambda: presence.trouble() is not None, "the trouble to show")
    assert presence.is_alive()
