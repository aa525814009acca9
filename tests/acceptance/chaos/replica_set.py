"""Three mongod as a replica set; any of them can be killed, stopped and started again."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from scheduler_app.embedded import Mongod, free_port
from tests.processes import wait_until

NAME = "rs0"
MEMBERS = 3
#: Short, so that a failover takes seconds; MongoDB's default is 10 s.
ELECTION_TIMEOUT_MS = 2_000
STEPPED_DOWN_SECONDS = 20


class Member(Mongod):
    """One mongod of several: configured from outside, and ready as soon as it answers."""

    def ready(self) -> bool:
        return self.ask("ping") is not None

    def ask(self, command: str, *, wait_ms: int = 1_000) -> dict[str, Any] | None:
        """Its answer to an admin command; None when it gives none."""
        try:
            with MongoClient[dict[str, Any]](
                "127.0.0.1",
                self.port,
                directConnection=True,
                serverSelectionTimeoutMS=wait_ms,
                socketTimeoutMS=5_000,
            ) as client:
                return client.admin.command(command)
        except PyMongoError:
            return None

    @property
    def is_primary(self) -> bool:
        answer = self.ask("hello") if self.pid else None
        return bool(answer and answer.get("isWritablePrimary"))

    def step_down(self) -> None:
        """Gives its office up, in order: for some seconds another member is primary."""
        with MongoClient[dict[str, Any]]("127.0.0.1", self.port, directConnection=True) as client:
            client.admin.command("replSetStepDown", STEPPED_DOWN_SECONDS)

    def pause(self) -> None:
        os.kill(self._pid(), signal.SIGSTOP)

    def unpause(self) -> None:
        os.kill(self._pid(), signal.SIGCONT)

    def died(self) -> bool:
        """Whether its process ended without being told to; then it can be started again."""
        if self._process is None or self._process.poll() is None:
            return False
        self._process = None
        return True

    def _pid(self) -> int:
        assert self.pid is not None
        return self.pid


class ReplicaSet:
    """`folder(number)` gives each member its directory. To be used from the main thread."""

    def __init__(self, folder: Callable[[int], Path]) -> None:
        self.members = [Member(folder(number), free_port()) for number in range(MEMBERS)]
        self.uri = "mongodb://{}/?replicaSet={}".format(
            ",".join(f"127.0.0.1:{member.port}" for member in self.members), NAME
        )

    def start(self) -> None:
        for member in self.members:
            member.start()
        config = {
            "_id": NAME,
            "members": [
                {"_id": number, "host": f"127.0.0.1:{member.port}"}
                for number, member in enumerate(self.members)
            ],
            "settings": {"electionTimeoutMillis": ELECTION_TIMEOUT_MS, "heartbeatIntervalMillis": 500},
        }
        with MongoClient[dict[str, Any]]("127.0.0.1", self.members[0].port, directConnection=True) as client:
            client.admin.command("replSetInitiate", config)
        self.wait_for_primary()

    def primary(self) -> Member:
        """The one that is primary now, waited for."""
        self.wait_for_primary()
        return next(member for member in self.members if member.is_primary)

    def secondaries(self) -> list[Member]:
        primary = self.primary()
        return [member for member in self.members if member is not primary]

    def wait_for_primary(self) -> None:
        wait_until(lambda: any(member.is_primary for member in self.members), "a primary")

    def wait_for_all(self) -> None:
        """Until each member is up to date enough to vote and to serve.

        One whose disk was full may end when there is room again already: it is started anew.
        """
        states: dict[int, str] = {}

        def settled() -> bool:
            for member in self.members:
                if member.died():
                    member.start()
                said = member.ask("hello") or {}
                serves = said.get("isWritablePrimary") or said.get("secondary")
                states[member.port] = "serves" if serves else str(said or "no answer")
            return set(states.values()) == {"serves"}

        try:
            wait_until(settled, "all members")
        except AssertionError as error:
            raise AssertionError(f"{error}: {states}") from None

    def close(self) -> None:
        for member in self.members:
            member.kill()
