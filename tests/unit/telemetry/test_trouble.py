"""What a process says of itself when something in it hangs; `/healthz` answers from it."""

from collections.abc import Callable
from typing import Any

import pytest

import scheduler_app.usecases.heartbeat
from scheduler_app.beat import scheduler as beat_scheduler
from scheduler_app.beat.scheduler import MongoScheduler
from scheduler_app.broker.app import make_app
from scheduler_app.clock import Clock, monotonic
from scheduler_app.config import Settings
from scheduler_app.health.processes import TICK_SECONDS
from scheduler_app.usecases.heartbeat import TURN_SECONDS, Presence


@pytest.fixture
def after(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, float, float], None]:
    """Lets so many seconds have passed for a module since an instant."""

    def pass_(module: Any, since: float, seconds: float) -> None:
        monkeypatch.setattr(module, "monotonic", lambda: since + seconds)

    return pass_


def test_a_process_that_no_longer_reports_says_so(after: Callable[[Any, float, float], None]) -> None:
    store: Any = None  # it is not started, and so asks nothing
    presence = Presence(store, Clock(), "worker")
    assert presence.trouble() is None
    after(scheduler_app.usecases.heartbeat, presence._turned_at, TURN_SECONDS + 1)
    assert presence.trouble() == "the process has not reported for 181 s"


def test_a_beat_that_no_longer_ticks_says_so(after: Callable[[Any, float, float], None]) -> None:
    scheduler = MongoScheduler(app=make_app(Settings()), lazy=True)
    scheduler._ticked_at = monotonic()
    assert scheduler._trouble() is None
    after(beat_scheduler, scheduler._ticked_at, TICK_SECONDS + 1)
    assert scheduler._trouble() == "no tick has ended for 91 s"
