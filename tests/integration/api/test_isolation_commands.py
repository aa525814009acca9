"""What another tenant has costs the same as what does not exist: the same commands to MongoDB, one by one. So
the time of an answer cannot tell the one from the other."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from pymongo import monitoring
from werkzeug.test import TestResponse

from scheduler_app.api import known_keys
from scheduler_app.config import Settings
from scheduler_app.store import Store
from tests.integration.api.conftest import start, stop
from tests.integration.api.test_isolation import (
    NOBODY,
    OWNER,
    ROOT,
    STRANGER,
    THEIRS,
    Attack,
    World,
    attack_paths,
    client,
    key_of,
    make_world,
    operations,
    same,
    specification,
)
from tests.lent_clients import LentClients, StartedCommands

__all__ = ["client", "specification"]

#: Of a connection or a session, and no part of what is asked.
_OF_SESSIONS = ("lsid", "$clusterTime", "txnNumber", "maxTimeMS", "autocommit", "startTransaction")


class CommandLog(StartedCommands):
    """The commands of the thread that made it."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._commands: list[str] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if threading.get_ident() == self._thread:
            asked = {name: part for name, part in event.command.items() if name not in _OF_SESSIONS}
            self._commands.append(repr(asked))

    def taken(self) -> list[str]:
        found, self._commands = self._commands, []
        return found


class CommandsCompared(Attack):
    """Asks by both names, and compares the commands where both answers are 404."""

    def __init__(self, client: FlaskClient, headers: Mapping[str, str], log: CommandLog) -> None:
        super().__init__(client, headers)
        self._log = log

    def both(
        self,
        what: str,
        ask: Callable[[str], TestResponse],
        pairs: Iterable[tuple[str, str]],
        names: Iterable[str] = (),
    ) -> None:
        for pair in pairs:
            if {ask(name).status_code for name in pair} != {404}:
                continue
            asked = (*pair, THEIRS, NOBODY, *names)
            commands = []
            for name in pair:
                self._log.taken()
                ask(name)
                commands.append([same(each, asked) for each in self._log.taken()])
            self.tried += 1
            if commands[0] != commands[1]:
                self.found.append(f"{what} with {pair}: {commands[0]} and {commands[1]}")


@pytest.fixture
def log(lent_clients: LentClients) -> CommandLog:
    return lent_clients.heard_by(CommandLog())


@pytest.fixture
def app(log: CommandLog, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flask]:
    # Keys and tenants are read again after a while, for whichever request comes then.
    monkeypatch.setattr(known_keys, "monotonic", lambda: 1_000.0)
    made = start(replace(settings, tasks_api=True, allowed_commands=("echo *",), api_keys=(ROOT,)))
    yield made
    stop(made)


def test_what_is_another_tenant_s_is_asked_for_by_the_same_commands_as_what_does_not_exist(
    client: FlaskClient,
    log: CommandLog,
    store: Store,
    specification: dict[str, Any],
) -> None:
    world: World = make_world(client, store, key_of(client, OWNER))
    attack = CommandsCompared(client, {"X-API-Key": key_of(client, STRANGER)}, log)
    attack_paths(attack, operations(specification), world)
    assert not attack.found, "\n\n".join(attack.found[:20])
    assert attack.tried > 80
