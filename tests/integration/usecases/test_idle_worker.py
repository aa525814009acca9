"""What a worker and an API ask of MongoDB in a minute in which nothing is to be done, as `test_idle_beat`
counts it of a beat."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

import pytest
from pymongo import monitoring

from scheduler_app.clock import Clock
from scheduler_app.config import Settings
from scheduler_app.store import Store
from scheduler_app.usecases import cause_counts, figure_counts
from scheduler_app.usecases.heartbeat import REPORT_SECONDS, Presence
from scheduler_app.worker import Pipeline, lease, rejudging, reports
from tests.executors import executors
from tests.held_clock import Seconds
from tests.lent_clients import LentClients, StartedCommands

MINUTE = 60


class Listener(StartedCommands):
    """Counts commands."""

    def __init__(self) -> None:
        self.commands = Counter[str]()

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.commands[event.command_name] += 1


@pytest.fixture(scope="module")
def listener(lent_clients: LentClients) -> Listener:
    return lent_clients.heard_by(Listener())


@pytest.fixture
def store(settings: Settings, listener: Listener) -> Iterator[Store]:
    made = Store(settings)
    yield made
    made.close()


def test_a_minute_of_a_worker_that_has_no_events(
    store: Store, listener: Listener, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = Seconds()
    for module in (cause_counts, figure_counts, reports):
        monkeypatch.setattr(module, "monotonic", seconds)
    pipeline = Pipeline(
        *(store, executors()), now=lambda: now, worker="w1", horizon_seconds=5, max_events=100
    )
    assert lease.LOOK_SECONDS == rejudging.LOOK_SECONDS == reports.TURN_SECONDS == 1.0
    pipeline.reports._turn()
    listener.commands.clear()
    for _ in range(MINUTE):
        seconds.passed += 1
        pipeline.leases.renew_due(seconds.passed)
        pipeline.rejudging.look()
        pipeline.reports._turn()
    # Every five seconds: which receivers fail, so that their first success is told.
    assert listener.commands == {"find": 12}


def test_a_minute_of_reports_that_a_process_lives(store: Store, listener: Listener) -> None:
    """It is all that an API asks by a clock."""
    seconds = Seconds()
    presence = Presence(store, Clock(elapsed=seconds), "api")
    presence.beat_once()  # makes the indexes, too
    listener.commands.clear()
    for _ in range(MINUTE // round(REPORT_SECONDS)):
        seconds.passed += REPORT_SECONDS + 0.01
        presence.beat_once()
    assert listener.commands == {"update": 12, "hello": 6}
