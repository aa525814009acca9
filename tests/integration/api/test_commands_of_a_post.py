"""What one POST of a schedule asks of MongoDB: what was just written is not read back."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient
from pymongo import monitoring

from scheduler_app.api import known_keys
from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.usecases import quotas
from tests.integration.api.conftest import ToldTime, start, stop
from tests.lent_clients import LentClients, StartedCommands


class Listener(StartedCommands):
    """Keeps the name and the collection of each command while it listens."""

    def __init__(self) -> None:
        self.commands: list[tuple[str, Any]] | None = None

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if self.commands is not None:
            self.commands.append((event.command_name, event.command[event.command_name]))


@pytest.fixture(scope="module")
def listener(lent_clients: LentClients) -> Listener:
    return lent_clients.heard_by(Listener())


@pytest.fixture
def heard(listener: Listener, settings: Settings) -> Iterator[FlaskClient]:
    """The API over a connection that is listened to."""
    app = start(settings)
    with app.test_client() as client:
        yield client
    listener.commands = None
    stop(app)


def _asked(
    listener: Listener, client: FlaskClient, given: dict[str, Any], headers: dict[str, str] | None = None
) -> list[tuple[str, Any]]:
    """The commands of one POST, which follows a first one that made all connections."""
    body = {"name": "call", "callback_url": "http://a.test/"} | given
    assert client.post("/api/v1/schedules", json=body, headers=headers).status_code == 201
    listener.commands = []
    assert client.post("/api/v1/schedules", json=body, headers=headers).status_code == 201
    commands, listener.commands = listener.commands, None
    return commands


def test_a_schedule_beyond_the_timeframe_is_one_write(
    listener: Listener, heard: FlaskClient, time: ToldTime
) -> None:
    run_at = (time.at + timedelta(days=1)).isoformat()
    assert _asked(listener, heard, {"run_at": run_at}) == [("insert", "schedules")]


def test_a_schedule_within_the_timeframe_is_claimed_expanded_and_released(
    listener: Listener, heard: FlaskClient, time: ToldTime
) -> None:
    run_at = (time.at + timedelta(seconds=40)).isoformat()
    assert _asked(listener, heard, {"run_at": run_at}) == [
        ("insert", "schedules"),
        ("update", "schedules"),
        ("insert", "events"),
        ("update", "schedules"),
    ]


def test_a_schedule_that_is_due_is_also_dispatched(listener: Listener, heard: FlaskClient) -> None:
    asked = _asked(listener, heard, {"delay_seconds": 1})
    assert asked[:4] == [
        ("insert", "schedules"),
        ("update", "schedules"),
        ("insert", "events"),
        ("update", "schedules"),
    ]
    assert not any(command == ("find", "schedules") for command in asked)


@pytest.mark.parametrize("limits", [{}, {"schedules": 5}])
def test_a_tenant_without_limits_pays_for_none(
    listener: Listener, heard: FlaskClient, limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_keys, "monotonic", lambda: 1_000.0)
    monkeypatch.setattr(quotas, "SCHEDULES_BOUND_SECONDS", 3_600)
    put = heard.put("/api/v1/tenants/acme", json={"limits": limits})
    assert put.status_code == 201
    run_at = (clock.now() + timedelta(days=1)).isoformat()
    asked = _asked(listener, heard, {"run_at": run_at}, {"Scheduler-Tenant": "acme"})
    noted, finished = ([("findAndModify", "quotas")], [("update", "quotas")]) if limits else ([], [])
    assert asked == [*noted, ("insert", "schedules"), *finished]
