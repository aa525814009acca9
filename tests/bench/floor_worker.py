"""One process of the floor: batches of events claimed, sent and recorded with pymongo and pycurl, no more.

Ids come in on stdin, a line each; at the end it says, as JSON, when the last one was recorded and what CPU it
took.
"""

import json
import resource
import secrets
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pycurl
from bson.codec_options import CodecOptions
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from scheduler_app.version import __version__

Row = dict[str, Any]
LEASE_MS = 25_000
#: As ours claims full batches.
CLAIMED_AHEAD_SECONDS = 1.0
#: As many requests under way in each thread: more of them cost libcurl more than they bring.
HANDLES = 16
_lock = threading.Lock()


class Client:
    """A few easy handles on one multi handle, which keep their connections."""

    def __init__(self, url: str) -> None:
        self._multi = pycurl.CurlMulti()
        self._free = [self._handle(url) for _ in range(HANDLES)]

    def post(self, ids: Sequence[str]) -> list[Row]:
        """Sends each; returns when it started, how long it took and what came back."""
        waiting = list(ids)
        rows: list[Row] = []
        while waiting or len(rows) < len(ids):
            while waiting and self._free:
                self._start(self._free.pop(), waiting.pop())
            self._multi.perform()
            _, ended, failed = self._multi.info_read()
            if failed:
                raise RuntimeError(f"a request failed: {failed[0][2]}")
            for curl in ended:
                rows.append(self._ended(curl))
            if not ended:
                self._multi.select(1.0)
        return rows

    def _handle(self, url: str) -> pycurl.Curl:
        curl = pycurl.Curl()
        curl.body = []
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.CUSTOMREQUEST, "POST")
        curl.setopt(pycurl.WRITEFUNCTION, curl.body.append)
        return curl

    def _start(self, curl: pycurl.Curl, event_id: str) -> None:
        schedule_id, _, run_time = event_id.split("-")
        curl.event_id, curl.started_at = event_id, datetime.now(UTC)
        curl.setopt(
            pycurl.HTTPHEADER,
            [
                f"User-Agent: RRule-Scheduler/{__version__}",
                f"Idempotency-Key: {event_id}",
                f"webhook-id: {event_id}",
                f"webhook-timestamp: {int(curl.started_at.timestamp())}",
                "X-Scheduler-Attempt: 1",
                f"X-Scheduler-Run-Time: {datetime.fromisoformat(run_time).isoformat()}",
                f"X-Scheduler-Schedule-Id: {schedule_id}",
            ],
        )
        self._multi.add_handle(curl)

    def _ended(self, curl: pycurl.Curl) -> Row:
        self._multi.remove_handle(curl)
        self._free.append(curl)
        took_ms = curl.getinfo(pycurl.TOTAL_TIME) * 1000
        row = {
            "_id": curl.event_id,
            "ended_at": curl.started_at + timedelta(milliseconds=took_ms),
            "attempt": {
                "number": 1,
                "started_at": curl.started_at,
                "duration_ms": took_ms,
                "status_code": curl.getinfo(pycurl.RESPONSE_CODE),
                "error": None,
                "snippet": b"".join(curl.body).decode(),
            },
        }
        curl.body.clear()
        return row


class Deliverer(threading.Thread):
    """Takes batches until there are none."""

    def __init__(self, db: Database[Row], url: str, due: datetime, batches: Iterator[list[str]]) -> None:
        super().__init__()
        self._events = db["events"]
        self._schedules = db.get_collection("schedules", read_concern=ReadConcern("majority"))
        self._client = Client(url)
        self._due = due
        self._batches = batches

    def run(self) -> None:
        # As ours does, it claims ahead of the instant what it can; what is left then follows batch by batch.
        ahead: list[tuple[list[str], str]] = []
        while datetime.now(UTC) < self._due and (claimed := self._next()) is not None:
            ahead.append(claimed)
        time.sleep(max(0.0, (self._due - datetime.now(UTC)).total_seconds()))
        for ids, token in ahead:
            self._record(self._client.post(ids), token)
        while (claimed := self._next()) is not None:
            ids, token = claimed
            self._record(self._client.post(ids), token)

    def _next(self) -> tuple[list[str], str] | None:
        """The next batch, claimed and looked at; None where there is none left."""
        with _lock:
            ids = next(self._batches, None)
        if ids is None:
            return None
        token = secrets.token_hex(8)
        self._claim(ids, token)
        self._check({event_id.split("-")[0] for event_id in ids})
        return ids, token

    def _claim(self, ids: list[str], token: str) -> None:
        line = {"time": datetime.now(UTC), "status": "running", "message": "Claimed by floor@localhost"}
        won = self._events.update_many(
            {
                "_id": {"$in": ids},
                "state": {"$in": ["ready_queue", "retrying", "worker_queue"]},
                "due_at": {"$lte": self._due},
            },
            [
                {
                    "$set": {
                        "state": "running",
                        "owner": token,
                        "lease_until": {"$add": ["$$NOW", LEASE_MS]},
                        "status": {"$concatArrays": ["$status", [{"$literal": line}]]},
                    }
                },
            ],
        )
        if won.modified_count != len(ids):
            raise RuntimeError("a claim was lost, and nobody else is here")

    def _check(self, ids: set[str]) -> None:
        """Claim, then read: an edit that came in between would have withdrawn the event."""
        fields = {"state": 1, "revision": 1, "revised_at": 1}
        if any(row["state"] != "active" for row in self._schedules.find({"_id": {"$in": list(ids)}}, fields)):
            raise RuntimeError("nobody edits these schedules")

    def _record(self, rows: list[Row], token: str) -> None:
        ids = [row.pop("_id") for row in rows]
        for row in rows:
            row["attempt"] |= {
                "lag_ms": (row["attempt"]["started_at"] - self._due).total_seconds() * 1000,
                "worker": "floor@localhost",
                "claim": token,
            }
        place = {"$indexOfArray": [{"$literal": ids}, "$_id"]}
        line = {"time": "$row.ended_at", "status": "completed", "message": "Event successfully processed"}
        recorded = self._events.update_many(
            {"_id": {"$in": ids}, "owner": token},
            [
                {"$set": {"row": {"$arrayElemAt": [{"$literal": rows}, place]}}},
                {
                    "$set": {
                        "state": "completed",
                        "archived_at": "$row.ended_at",
                        "attempt": {"$add": ["$attempt", 1]},
                        "attempts": {"$concatArrays": ["$attempts", ["$row.attempt"]]},
                        "status": {"$concatArrays": ["$status", [line]]},
                    }
                },
                {"$unset": ["row", "due_at", "owner", "lease_until"]},
            ],
        )
        if recorded.modified_count != len(ids):
            raise RuntimeError("an outcome was refused, and nobody else is here")


def main(uri: str, database: str, url: str, due: float, threads: int, size: int) -> None:
    ids = sys.stdin.read().split()
    batches = iter([ids[start : start + size] for start in range(0, len(ids), size)])
    client: MongoClient[Row] = MongoClient(uri)
    db = client.get_database(
        database,
        codec_options=CodecOptions(tz_aware=True, tzinfo=UTC),
        write_concern=WriteConcern("majority", j=True),
    )
    when = datetime.fromtimestamp(due, UTC)
    deliverers = [Deliverer(db, url, when, batches) for _ in range(threads)]
    client.admin.command("ping")
    if time.time() >= due:
        raise RuntimeError("the events were due before this process was ready")
    time.sleep(max(0.0, due - CLAIMED_AHEAD_SECONDS - time.time()))
    for deliverer in deliverers:
        deliverer.start()
    for deliverer in deliverers:
        deliverer.join()
    recorded_at = time.time()
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"recorded_at": recorded_at, "cpu_s": used.ru_utime + used.ru_stime}))


if __name__ == "__main__":
    uri, database, url, due, threads, size = sys.argv[1:]
    main(uri, database, url, float(due), int(threads), int(size))
