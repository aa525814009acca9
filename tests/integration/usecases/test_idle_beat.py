"""What a beat asks of MongoDB while nothing is to be done: each question is paid for in every second of every
installation. A new one belongs into a look that is made anyway, or is asked as rarely as it may be."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from pymongo import monitoring

from scheduler_app.assembly import Assembly, assemble
from scheduler_app.beat import duties, scheduler
from scheduler_app.beat.duties import Duty
from scheduler_app.broker.app import make_app
from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.store import Store
from tests.held_clock import Seconds
from tests.lent_clients import LentClients, StartedCommands

MINUTE = 60


class Listener(StartedCommands):
    """Counts the commands of each duty; those outside of any are the look for work."""

    def __init__(self) -> None:
        self.duty = "look"
        self.commands = Counter[str]()

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.commands[self.duty] += 1

    def counting(self, duty: Duty) -> Duty:
        """The duty, whose commands are counted as its own."""

        def page(now: datetime) -> bool:
            self.duty = duty.name
            try:
                return duty.page(now)
            finally:
                self.duty = "look"

        return replace(duty, page=page)


@pytest.fixture(scope="module")
def listener(lent_clients: LentClients) -> Listener:
    return lent_clients.heard_by(Listener())


@pytest.fixture
def assembly(settings: Settings, listener: Listener) -> Iterator[Assembly]:
    made = assemble(settings, make_app(settings))
    yield made
    made.store.close()


def serve(store: Store) -> None:
    """A beat and a worker, which count as alive for an hour, however long this machine takes for a test."""
    store.mongo.collection("nodes").insert_many(
        {
            "_id": role,
            "role": role,
            "name": role,
            "host": "here",
            "pid": 1,
            "seen_at": clock.now() + timedelta(hours=1),
            "consuming": True,
            "queues": ["callbacks"],
        }
        for role in ("beat", "worker")
    )


def test_a_minute_of_ticks_with_nothing_to_do(
    assembly: Assembly, listener: Listener, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = Seconds()
    for module in (duties, scheduler):
        monkeypatch.setattr(module, "monotonic", seconds)
    serve(assembly.store)
    tick = scheduler.Tick(
        [listener.counting(duty) for duty in duties.duties(assembly)],
        now=lambda: now + timedelta(seconds=seconds.passed),
        stopping=lambda: False,
        unavailable=(),
    )
    tick.run()  # asks what is asked once an hour, too
    listener.commands.clear()
    for _ in range(MINUTE):
        seconds.passed += 1
        tick.run()
    assert listener.commands == {
        # In every tick.
        "look": MINUTE,
        "dispatch": MINUTE,
        # Every 6 seconds three, every 10 ten, of which others are asked once a minute, and every 5 one.
        "causes": 3 * 10,
        "inspect_causes": 63,
        "tell": 12,
        # Once a minute.
        "inspect": 13,
        "rezone": 1,
        "renew_holidays": 1,
        "carry_edits": 1,
        "prune": 1,
        "prune_calendars": 1,
        "drop_indexes": 1,
    }
