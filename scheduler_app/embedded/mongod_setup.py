"""Makes a running mongod the primary of its replica set, with one user."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from scheduler_app.embedded.server import LOOPBACK

_USER_NOT_FOUND = 11
_AUTHENTICATION_FAILED = 18
_NOT_YET_INITIALIZED = 94


class MongodSetup(AbstractContextManager["MongodSetup"]):
    """A connection as a member of the set, for one step.

    A new one for each: a client that has met a closed port retries only after half a second.
    """

    def __init__(self, port: int, password: str | None, member_key: str) -> None:
        """`password` is the one that the user shall have; None for a mongod without users."""
        self._port = port
        self._password = password
        self._member = self._client("__system", member_key, "local")

    def __exit__(self, *_: object) -> None:
        self._member.close()

    def advance(self, replica_set: str, user: str, works_in: Callable[[str], bool]) -> bool:
        """Takes the next step, and returns whether none is left. `works_in` says whether a data folder is the
        right one: on a taken port another mongod would answer."""
        try:
            options = self._member.admin.command("getCmdLineOpts")["parsed"]
            if not works_in(options.get("storage", {}).get("dbPath", "")):
                return False
            if self._member.admin.command("hello").get("isWritablePrimary"):
                return self._password is None or self._password_is_set(user)
            self._configure(replica_set)
        except PyMongoError:
            return False  # starting up, or between two states: the next call asks again
        return False

    def _client(self, user: str, password: str | None, source: str) -> "MongoClient[dict[str, Any]]":
        login: dict[str, Any] = {"username": user, "password": password, "authSource": source}
        return MongoClient(
            LOOPBACK,
            self._port,
            directConnection=True,
            serverSelectionTimeoutMS=2000,
            socketTimeoutMS=5000,
            **(login if self._password else {}),
        )

    def _password_is_set(self, user: str) -> bool:
        """Whether the user has the current password; sets it if not."""
        with self._client(user, self._password, "admin") as client:
            try:
                client.admin.command("ping")
            except OperationFailure as error:
                if error.code != _AUTHENTICATION_FAILED:
                    raise
            else:
                return True
        try:
            self._member.admin.command("updateUser", user, pwd=self._password, roles=["root"])
        except OperationFailure as error:
            if error.code != _USER_NOT_FOUND:
                raise
            self._member.admin.command("createUser", user, pwd=self._password, roles=["root"])
        return False

    def _configure(self, replica_set: str) -> None:
        address = f"{LOOPBACK}:{self._port}"
        try:
            config = self._member.admin.command("replSetGetConfig")["config"]
        except OperationFailure as error:
            if error.code != _NOT_YET_INITIALIZED:
                raise
            members = [{"_id": 0, "host": address}]
            self._member.admin.command("replSetInitiate", {"_id": replica_set, "members": members})
            return
        if [member["host"] for member in config["members"]] == [address]:
            return
        # The data was last served on another port. A member that is not in its own configuration is outside
        # the set, and only a forced reconfiguration brings it back.
        config["members"] = [{**config["members"][0], "host": address}]
        config["version"] += 1
        self._member.admin.command("replSetReconfig", config, force=True)
