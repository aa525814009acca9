"""How often living events are counted for those who watch."""

from datetime import datetime

import pytest

from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events import events
from tests.builders import event


def test_few_events_are_counted_each_time_and_many_for_a_hundredth_of_the_time(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def waiting() -> int:
        counts = store.events.living_by_state()
        assert sum(counts.values()) == counts[State.READY_QUEUE]
        return counts[State.READY_QUEUE]

    at = 100.0
    monkeypatch.setattr(events, "monotonic", lambda: at)
    store.events.insert([event(now, "s1")], now, "made")
    assert waiting() == 1
    store.events.insert([event(now, "s2")], now, "made")
    assert waiting() == 2

    monkeypatch.setattr(events, "QUICKLY_COUNTED", 2)
    ticks = iter([100.0, 100.5])  # a count begins, and ends where it is timed
    monkeypatch.setattr(events, "monotonic", lambda: next(ticks, at))
    assert waiting() == 2
    ticks = iter([100.0, 100.5])
    store.events.insert([event(now, "s3")], now, "made")
    assert waiting() == 3
    store.events.insert([event(now, "s4")], now, "made")
    at = 149.9
    assert waiting() == 3, "it took half a second, and is kept for fifty"
    at = 150.5
    assert waiting() == 4
