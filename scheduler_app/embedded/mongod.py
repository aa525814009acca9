"""mongod as a replica set of one, which retryable writes and change streams need."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from scheduler_app.embedded.binaries import find_mongod
from scheduler_app.embedded.ports import LOOPBACK, listens
from scheduler_app.embedded.server import Server, write_private

REPLICA_SET = "rs0"
USER = "scheduler"
_USER_NOT_FOUND = 11
_AUTHENTICATION_FAILED = 18
_NOT_YET_INITIALIZED = 94
#: Of the cache, what may wait to be written out. By default that begins at 5 %: an event, which is written
#: four times within seconds, is then compressed and written out each time (630 µs of CPU an event; now 480).
_EVICTION = ",".join(
    (
        "eviction_dirty_target=60",
        "eviction_dirty_trigger=80",
        "eviction_updates_target=50",
        "eviction_updates_trigger=80",
    )
)


class Mongod(Server):
    """A primary of its own. `cache_gb` bounds WiredTiger's cache: ≥ 0.25, by default a sixth of the memory
    and at most 4.

    A `password` is that of the user `scheduler`, who may do everything. `ready()` makes that user, or gives
    it the new password, as the member that the key file lets in: data without users needs no migration, and
    there is no moment at which a stranger could make the first user.
    """

    name = "mongod"

    def __init__(
        self,
        directory: Path,
        port: int | None = None,
        *,
        password: str | None = None,
        cache_gb: float | None = None,
    ) -> None:
        super().__init__(directory, port, password=password)
        self._cache_gb = cache_gb or min(4.0, max(0.25, _memory_gb() / 6))

    @property
    def uri(self) -> str:
        login, source = (f"{USER}:{self._password}@", "&authSource=admin") if self._password else ("", "")
        return f"mongodb://{login}{self._address}/?replicaSet={REPLICA_SET}{source}"

    @property
    def _address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def _key_file(self) -> Path:
        return self.directory / "keyfile"

    def prepare(self) -> None:
        super().prepare()
        if self._password:
            write_private(self._key_file, self._member_key())

    def command(self) -> list[str]:
        return [
            str(find_mongod()),
            *(["--keyFile", str(self._key_file)] if self._password else []),
            *("--dbpath", str(self.directory)),
            *("--bind_ip", LOOPBACK),
            *("--port", str(self.port)),
            *("--replSet", REPLICA_SET),
            *("--oplogSize", "256"),
            *("--wiredTigerCacheSizeGB", f"{self._cache_gb:.2f}"),
            *("--wiredTigerEngineConfigString", _EVICTION),
            "--nounixsocket",
            "--quiet",
            *("--setParameter", "diagnosticDataCollectionEnabled=false"),
            # By default what an event was is kept for five minutes after each of its transitions, for reads
            # of the past that nobody makes: it fills the cache, and each checkpoint writes it to the disk.
            *("--setParameter", "minSnapshotHistoryWindowInSeconds=0"),
            # By default a primary waits 15 s at SIGTERM for its clients to find the next one; there is none.
            *("--setParameter", "shutdownTimeoutMillisForSignaledShutdown=0"),
            # By default whoever comes from this machine may make the first user.
            *("--setParameter", "enableLocalhostAuthBypass=false"),
        ]

    def ready(self) -> bool:
        """Whether it is primary under its present address; configures the replica set if it has to be."""
        if not listens(self.port):
            return False
        # A client each time: one that saw a closed port would ask again only after half a second.
        client = self._client(username="__system", password=self._member_key(), authSource="local")
        try:
            options = client.admin.command("getCmdLineOpts")["parsed"]
            if not self._is_ours(options.get("storage", {}).get("dbPath", "")):
                return False
            if client.admin.command("hello").get("isWritablePrimary"):
                return self._password is None or self._lets_our_user_in(client)
            self._configure(client)
        except PyMongoError:
            return False  # starting up, or between two states: the next call sees
        finally:
            client.close()
        return False

    def complaint(self, line: str) -> str | None:
        """The sentence of an error or fatal line of mongod's JSON."""
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            return line.strip() or None  # from before its log is set up, or from the loader
        # COMMAND: a client's request failed, and the client says so itself.
        if entry.get("s") not in ("E", "F") or entry.get("c") == "COMMAND":
            return None
        attributes = json.dumps(entry["attr"]) if "attr" in entry else ""
        return f"{entry.get('msg', '')} {attributes}".strip()

    def _member_key(self) -> str:
        """By what members of the set know each other; nobody learns the password from it."""
        return hashlib.sha256(f"key file {self._password}".encode()).hexdigest()

    def _client(self, **login: Any) -> "MongoClient[dict[str, Any]]":
        return MongoClient(
            LOOPBACK,
            self.port,
            directConnection=True,
            serverSelectionTimeoutMS=2000,
            socketTimeoutMS=5000,
            **(login if self._password else {}),
        )

    def _lets_our_user_in(self, member: "MongoClient[dict[str, Any]]") -> bool:
        """Whether the user's password is the present one; gives it to the user if it is not."""
        with self._client(username=USER, password=str(self._password), authSource="admin") as client:
            try:
                client.admin.command("ping")
            except OperationFailure as error:
                if error.code != _AUTHENTICATION_FAILED:
                    raise
            else:
                return True
        try:
            member.admin.command("updateUser", USER, pwd=self._password, roles=["root"])
        except OperationFailure as error:
            if error.code != _USER_NOT_FOUND:
                raise
            member.admin.command("createUser", USER, pwd=self._password, roles=["root"])
        return False

    def _configure(self, client: "MongoClient[dict[str, Any]]") -> None:
        try:
            config = client.admin.command("replSetGetConfig")["config"]
        except OperationFailure as error:
            if error.code != _NOT_YET_INITIALIZED:
                raise
            members = [{"_id": 0, "host": self._address}]
            client.admin.command("replSetInitiate", {"_id": REPLICA_SET, "members": members})
            return
        if [member["host"] for member in config["members"]] == [self._address]:
            return
        # The data was last served on another port. A member that does not find itself in its own
        # configuration stands outside the set, and only a forced one takes it back in.
        config["members"] = [{**config["members"][0], "host": self._address}]
        config["version"] += 1
        client.admin.command("replSetReconfig", config, force=True)


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
