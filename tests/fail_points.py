"""A mongod that can be told to take its time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pymongo import MongoClient

from scheduler_app.embedded import Mongod


class MongodWithFailPoints(Mongod):
    """mongod with its commands for tests."""

    def command(self) -> list[str]:
        return [*super().command(), "--setParameter", "enableTestCommands=1"]

    def delay(self, command: str, namespace: str, seconds: float) -> None:
        """The next one to that collection takes so long."""
        data = {
            "failCommands": [command],
            "namespace": namespace,
            "blockConnection": True,
            "blockTimeMS": int(seconds * 1000),
        }
        self._set("failCommand", {"times": 1}, data=data)

    def refuse(self, command: str, code: int) -> None:
        """The next one of a process of ours fails with this error."""
        data = {"failCommands": [command], "errorCode": code, "appName": "rrule-scheduler"}
        self._set("failCommand", {"times": 1}, data=data)

    @contextmanager
    def refusing(self, command: str, namespace: str) -> Iterator[None]:
        """Meanwhile each one to that collection fails, as in a mongod that is just being stopped."""
        data = {"failCommands": [command], "namespace": namespace, "errorCode": 11600}
        self._set("failCommand", "alwaysOn", data=data)
        try:
            yield
        finally:
            self._set("failCommand", "off")

    def hold_index_builds(self) -> None:
        """Each build of an index stops after its beginning until `release_index_builds`."""
        self._set("hangAfterStartingIndexBuild", "alwaysOn")

    def release_index_builds(self) -> None:
        self._set("hangAfterStartingIndexBuild", "off")

    def _set(self, fail_point: str, mode: str | dict[str, int], **options: Any) -> None:
        with MongoClient[dict[str, Any]](self.uri) as client:
            client.admin.command("configureFailPoint", fail_point, mode=mode, **options)
