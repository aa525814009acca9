"""Beats, workers and APIs that are killed and stopped."""

import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.acceptance.chaos.cluster import Cluster
from tests.acceptance.chaos.faults.registry import fault
from tests.acceptance.chaos.load import Load
from tests.processes import wait_until

#: Longer than the leases of expansion (30 s) and of delivery (25 s).
BEYOND_A_LEASE = 33.0


@fault("none")
def none(cluster: Cluster, load: Load) -> None:
    """nothing is broken"""


@fault("beat-killed")
def beat_killed(cluster: Cluster, load: Load) -> None:
    """kill -9 of a beat"""
    cluster.kill("beat1")
    time.sleep(3)
    cluster.restart("beat1")


@fault("beats-killed-at-a-tick", window=75)
def beats_killed_at_a_tick(cluster: Cluster, load: Load) -> None:
    """kill -9 of both beats between inserting a page of events and moving its schedules on"""
    wait_until(lambda: _caught_half_done(cluster, load), "a page half done")
    cluster.kill("beat1", "beat2")
    cluster.launch("beat1")
    cluster.restart("beat2")
    cluster.wait_for("beat1")


def _caught_half_done(cluster: Cluster, load: Load) -> bool:
    """Stops both beats to look, and leaves them so when it is the moment. What they have asked of MongoDB
    is done meanwhile: a beat that waits for its insert is caught before it can move the cursor."""
    # Those that nobody edits: else it could be an API that expands what was just edited.
    claimed = {
        "_id": {"$regex": f"^{load.name}-"},
        "owner": {"$exists": True},
        "next_run_at": {"$exists": True},
    }
    if cluster.database["schedules"].find_one(claimed, {"_id": 1}) is None:
        return False
    for name in ("beat1", "beat2"):
        cluster.pause(name)
    time.sleep(0.05)
    if _events_are_ahead_of_a_cursor(cluster, claimed):
        return True
    for name in ("beat1", "beat2"):
        cluster.unpause(name)
    return False


def _events_are_ahead_of_a_cursor(cluster: Cluster, claimed: dict[str, Any]) -> bool:
    """Whether a claimed schedule has an event at or after the occurrence that it says is to come."""
    return any(
        cluster.database["events"].find_one(
            {
                "schedule_id": row["_id"],
                "revision": row["revision"],
                "run_time": {"$gte": row["next_run_at"]},
            },
            {"_id": 1},
        )
        for row in cluster.database["schedules"].find(claimed).limit(3)
    )


@fault("worker-killed")
def worker_killed(cluster: Cluster, load: Load) -> None:
    """kill -9 of a worker"""
    cluster.kill("worker1")
    time.sleep(2)
    cluster.restart("worker1")


@fault("worker-killed-in-flight")
def worker_killed_in_flight(cluster: Cluster, load: Load) -> None:
    """kill -9 of a worker with a batch of 50 requests in flight"""
    wait_until(lambda: _busiest(cluster)[1] >= 50, "50 in flight")
    name, _ = _busiest(cluster)
    cluster.kill(name)
    cluster.restart(name)


def _busiest(cluster: Cluster) -> tuple[str, int]:
    """The worker with the most requests in flight, and how many."""
    # A batch may be claimed before its time: what is due for a while and still running is in flight.
    sent = {"state": "running", "due_at": {"$lt": datetime.now(UTC) - timedelta(seconds=0.3)}}
    running = cluster.database["events"].find(sent, {"status": 1})
    claims = Counter(event["status"][-1]["message"].removeprefix("Claimed by ") for event in running)
    worker, requests = max(claims.items(), key=lambda each: each[1], default=("", 0))
    return worker.partition("@")[0], requests


@fault("api-killed")
def api_killed(cluster: Cluster, load: Load) -> None:
    """kill -9 of one API, then of the other, while schedules are created and edited"""
    adding = load.add_later()
    for name in ("api1", "api2"):
        time.sleep(1)
        cluster.kill(name)
        cluster.restart(name)
    adding.result()


@fault("beat-stopped", window=40)
def beat_stopped(cluster: Cluster, load: Load) -> None:
    """SIGSTOP of a beat for longer than its lease, then SIGCONT"""
    _pause(cluster, "beat1")


@fault("worker-stopped", window=40)
def worker_stopped(cluster: Cluster, load: Load) -> None:
    """SIGSTOP of a worker with requests in flight for longer than its lease, then SIGCONT"""
    wait_until(lambda: _busiest(cluster)[1] >= 30, "30 in flight")
    _pause(cluster, _busiest(cluster)[0])


def _pause(cluster: Cluster, name: str) -> None:
    cluster.pause(name)
    time.sleep(BEYOND_A_LEASE)
    cluster.unpause(name)
