"""mongod as a replica set of one: retryable writes and majority writes need a replica set."""

import hashlib
import json
import os
from pathlib import Path

from scheduler_app.embedded.binaries import find_mongod
from scheduler_app.embedded.server import LOOPBACK, Server, listens, write_private

REPLICA_SET = "rs0"
USER = "scheduler"
#: How much of the cache may hold changes that are not written out yet. By default writing out begins at 5 %.
#: An event, which changes four times within seconds, would then be compressed and written out each time
#: (630 µs of CPU per event instead of 480).
_EVICTION = ",".join(
    (
        "eviction_dirty_target=60",
        "eviction_dirty_trigger=80",
        "eviction_updates_target=50",
        "eviction_updates_trigger=80",
    )
)


class Mongod(Server):
    """The primary, and only member, of its replica set.

    The `password` belongs to the user `scheduler`, who may do everything. `ready()` creates that user, or
    sets its new password, and authenticates for this as a member of the set, by the key file. So data
    without users needs no migration, and there is no moment at which a stranger could create the first user.
    """

    name = "mongod"

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
        memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
        return [
            str(find_mongod()),
            *(["--keyFile", str(self._key_file)] if self._password else []),
            *("--dbpath", str(self.directory)),
            *("--bind_ip", LOOPBACK),
            *("--port", str(self.port)),
            *("--replSet", REPLICA_SET),
            *("--oplogSize", "256"),
            *("--wiredTigerCacheSizeGB", f"{min(4.0, max(0.25, memory_gb / 6)):.2f}"),
            *("--wiredTigerEngineConfigString", _EVICTION),
            "--nounixsocket",
            "--quiet",
            *("--setParameter", "diagnosticDataCollectionEnabled=false"),
            # By default mongod keeps each document's earlier versions for five minutes, for snapshot reads,
            # which are not used here: they fill the cache, and each checkpoint writes them to the disk.
            *("--setParameter", "minSnapshotHistoryWindowInSeconds=0"),
            # Where no beat ends the transaction of a process that was killed, it locks what it has written,
            # by default for a minute.
            *("--setParameter", "transactionLifetimeLimitSeconds=10"),
            # By default a primary waits 15 s at SIGTERM for clients to find the next primary; there is none.
            *("--setParameter", "shutdownTimeoutMillisForSignaledShutdown=0"),
            # By default anybody on this machine may create the first user.
            *("--setParameter", "enableLocalhostAuthBypass=false"),
        ]

    def ready(self) -> bool:
        """Whether it is primary under its current address; configures the replica set where necessary."""
        # mongod starts while pymongo loads.
        from scheduler_app.embedded.mongod_setup import MongodSetup

        if not listens(self.port):
            return False
        with MongodSetup(self.port, self._password, self._member_key()) as setup:
            return setup.advance(REPLICA_SET, USER, self._works_here)

    def error_line(self, line: str) -> str | None:
        """Returns the sentence of an error or fatal line of mongod's JSON log."""
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            return line.strip() or None  # written before the log is set up, or by the dynamic loader
        # COMMAND: a client's request failed, and the client reports that itself.
        if entry.get("s") not in ("E", "F") or entry.get("c") == "COMMAND":
            return None
        attributes = json.dumps(entry["attr"]) if "attr" in entry else ""
        return f"{entry.get('msg', '')} {attributes}".strip()

    def _member_key(self) -> str:
        """The key by which members authenticate to each other; the password cannot be derived from it."""
        return hashlib.sha256(f"key file {self._password}".encode()).hexdigest()
