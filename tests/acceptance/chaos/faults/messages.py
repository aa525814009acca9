"""Messages, their notifications and destinations with limits, while something breaks. The receiver is one of
their own, beside the load's: what comes to it is counted here."""

import secrets
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.acceptance.chaos.cluster import Cluster
from tests.acceptance.chaos.faults.registry import fault
from tests.acceptance.chaos.load import Load
from tests.acceptance.chaos.people import People
from tests.acceptance.limited_receiver import LimitedReceiver, excess
from tests.processes import wait_until

MESSAGES = 400
RATE, BURST, CONCURRENCY = 50, 10, 5
#: What is not there after that is lost.
PATIENCE_SECONDS = 90


@fault("messages-orphaned", window=24)
def messages_orphaned(cluster: Cluster, load: Load) -> None:
    """kill -9 of a worker and a beat while messages are sent and told of"""
    with closing(LimitedReceiver()) as receiver:
        name = _destination(cluster, receiver)
        ids = _schedule(cluster, {"destination": name, "on_success": name})
        wait_until(lambda: len(receiver.keys) >= MESSAGES // 2, "half of the messages")
        cluster.kill("worker1", "beat1")
        cluster.launch("beat1")
        cluster.restart("worker1")
        cluster.wait_for("beat1")
        told = {f"msg_{each}-on-success" for each in ids}
        wait_until(lambda: receiver.keys.keys() >= ids | told, "all messages")
        _check_repeated(cluster, receiver)
        _check_stored(cluster, ids | told)
        wait_until(lambda: not _owing(cluster), "the last marks to go")


@fault("limits-forgotten", window=24)
def limits_forgotten(cluster: Cluster, load: Load) -> None:
    """kill -9 of Redis while messages wait for a destination's limits: one burst more at most"""
    with closing(LimitedReceiver()) as receiver:
        limits = {"rate_per_second": RATE, "burst": BURST, "concurrency": CONCURRENCY}
        name = _destination(cluster, receiver, **limits)
        ids = _schedule(cluster, {"destination": name})
        wait_until(lambda: len(receiver.keys) >= MESSAGES // 4, "a part of the messages")
        cluster.redis.kill()
        cluster.redis.start()
        wait_until(lambda: receiver.keys.keys() >= ids, "all messages")
        _check_repeated(cluster, receiver)
        _check_stored(cluster, ids)
        over = excess(receiver.arrivals, 2 * BURST, RATE)
        assert over <= 0, f"{over:.1f} requests more than two bursts"
        assert receiver.most_open <= CONCURRENCY, f"{receiver.most_open} requests at once"


def _destination(cluster: Cluster, receiver: LimitedReceiver, **limits: Any) -> str:
    name = f"chaos-{secrets.token_hex(4)}"
    body = {"url": receiver.url, "retry_backoff_seconds": 1, "retry_backoff_max_seconds": 2} | limits
    answer = People(list(cluster.api_ports.values())).ask("PUT", f"/destinations/{name}", body)
    assert answer.ok, answer.text
    return name


def _schedule(cluster: Cluster, fields: dict[str, Any]) -> set[str]:
    """Messages that are due at one instant; returns the ids of their events."""
    at = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
    prefix = secrets.token_hex(4)
    items = [{"id": f"{prefix}-{number}", "scheduled_at": at, **fields} for number in range(MESSAGES)]
    answer = People(list(cluster.api_ports.values())).post("/messages/bulk", {"messages": items})
    assert answer.json()["refused"] == 0, answer.text
    return {f"msg_{each['id']}" for each in items}


def _check_repeated(cluster: Cluster, receiver: LimitedReceiver) -> None:
    """A second request is permitted only after a claim whose worker did not say what became of the first."""
    twice = [key for key, count in receiver.keys.items() if count > 1]
    which = {"_id": {"$in": twice}}
    for row in cluster.read(lambda database: list(database["events"].find(which, {"status": 1}))):
        said = " ".join(line["message"] for line in row["status"])
        assert "Recovered" in said or "Given back" in said, f"{row['_id']} was sent twice: {said}"


def _check_stored(cluster: Cluster, ids: set[str]) -> None:
    which = {"_id": {"$in": sorted(ids)}, "state": "completed"}

    def recorded() -> bool:
        return cluster.read(lambda database: database["events"].count_documents(which)) == len(ids)

    wait_until(recorded, "a record of each message")


def _owing(cluster: Cluster) -> int:
    """Events whose notification is still to be made."""
    which = {"notify": {"$exists": True}}
    return cluster.read(lambda database: database["events"].count_documents(which))
