"""How long outcomes are gathered, and what a recorder does while its store is away, by a held clock."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pymongo.errors import AutoReconnect

from scheduler_app.clock import monotonic
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.worker import recorder as recording
from scheduler_app.worker.capacity import Capacity, RecordingBacklog
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.recorder import AttemptResult, Recorder, Result, _Gathered

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def result(*, is_awaited: bool = False) -> Result:
    record = OutcomeRecord("e1", "token", State.COMPLETED, "done", None, {"number": 1}, NOON)
    lease = Lease("token", ["e1"], asked_at=0, timeout_seconds=10)
    return AttemptResult(record, lease, is_awaited)


def waits_of(gathered: _Gathered, monkeypatch: pytest.MonkeyPatch, seconds: Sequence[float]) -> list[float]:
    """For how long it sleeps until it gives out what was put at the first of these instants."""
    clock: Iterator[float] = iter(seconds)
    gathered.put([result()], next(clock))
    waits: list[float] = []
    monkeypatch.setattr(recording, "monotonic", lambda: next(clock))
    monkeypatch.setattr(gathered, "_changed", _Awake(waits))
    assert len(gathered.take()) == 1
    assert list(clock) == [], "it looks no further"
    return waits


class _Awake:
    """A condition that wakes at once."""

    def __init__(self, waits: list[float]) -> None:
        self._waits = waits

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def wait(self, seconds: float) -> None:
        self._waits.append(round(seconds, 6))


def test_outcomes_are_gathered_until_their_moment_is_over_however_often_the_thread_wakes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recording, "GATHER_SECONDS", 0.75)
    waits = waits_of(_Gathered(lambda: 2), monkeypatch, [100.0, 100.0, 100.25, 100.75])
    assert waits == [0.75, 0.5]


def test_all_that_a_worker_holds_is_not_waited_with(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waits_of(_Gathered(lambda: 1), monkeypatch, [100.0, 100.0]) == []


class Bench:
    """A recorder whose store never answers, and the pauses that it makes."""

    def __init__(self, ends_after: int) -> None:
        self.tries = 0
        self.pauses: list[float] = []
        self.backlog = RecordingBacklog()
        outcomes = SimpleNamespace(record=self._fails)
        store = SimpleNamespace(outcomes=outcomes, claims=None, expirations=None, overlaps=None)
        capacity = Capacity(10, is_behind=lambda: False)
        self.recorder = Recorder(
            *(cast(Store, store), self.backlog, capacity),
            now=lambda: NOON,
            worker="w1",
            recorded=lambda _: None,
        )
        capacity.reserve(1)
        self._ends_after = ends_after

    def _fails(self, _: Any) -> None:
        self.tries += 1
        assert self.tries <= 10, "it tries for ever"
        raise AutoReconnect("of the test")

    def wait(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        return len(self.pauses) == self._ends_after


def test_the_pauses_between_tries_grow_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(ends_after=8)
    monkeypatch.setattr(bench.recorder, "_ended", SimpleNamespace(wait=bench.wait, set=lambda: None))
    bench.recorder.put([result()])
    bench.recorder.stop()
    bench.recorder.work()
    assert bench.pauses == [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 5.0, 5.0]


def test_a_recorder_that_ends_tries_once_and_waits_for_no_answer() -> None:
    bench = Bench(ends_after=0)
    bench.recorder.put([result()])
    bench.recorder.stop()
    bench.recorder.work()
    assert bench.tries == 1
    assert bench.backlog.count == 0


def test_nothing_is_no_outcome_that_waits() -> None:
    bench = Bench(ends_after=0)
    bench.recorder.put([])
    assert bench.backlog.age(monotonic() + 60) == 0.0
