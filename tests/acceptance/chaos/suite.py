"""One fault after the other on one cluster: load, break, heal, wait for quiet, audit."""

import re
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.acceptance.chaos.audit import Seen, audit
from tests.acceptance.chaos.cluster import Cluster
from tests.acceptance.chaos.faults import Fault
from tests.acceptance.chaos.findings import Findings
from tests.acceptance.chaos.load import Load, Target

BEFORE_THE_STRIKE_SECONDS = 3.0
QUIET_SECONDS = 75
#: Every rule has a COUNT, or a last edit that ends it.
LONG_AFTER = timedelta(hours=1)


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    fault: str
    seed: int
    findings: Findings
    late_seconds: float
    """How long after the fault was healed the lag was normal again; 0 when it was normal before that."""
    seconds: float


def run(
    cluster: Cluster,
    fault: Fault,
    seed: int,
    window: int | None = None,
    *,
    quiet_seconds: float = QUIET_SECONDS,
) -> Row:
    """What is not there `quiet_seconds` after the load has ended is lost. Raises AssertionError when the
    servers themselves do not come back."""
    began = time.monotonic()
    if fault.prepare:
        fault.prepare(cluster)
    load = Load(cluster, fault.name, seed, window or fault.window, bursts=1 + (window or 0) // 30)
    load.start()
    _sleep_until(load.begins.timestamp() + BEFORE_THE_STRIKE_SECONDS)
    fault.strike(cluster, load)
    healed_at = time.time()
    cluster.mongo.wait_for_all()
    load.finish()
    findings = settle(cluster, load, quiet_seconds)
    if fault.restore:
        fault.restore(cluster)
    late = max(0.0, findings.last_late_at - healed_at)
    return Row(fault.name, seed, findings, round(late, 1), round(time.monotonic() - began, 1))


def settle(cluster: Target, load: Load, quiet_seconds: float) -> Findings:
    """Audits until nothing is missing and nothing lives any more, or for too long; then what is not there is
    lost, and what lives is stuck."""
    ids = [owed.schedule_id for owed in load.owed]
    mine: set[str] = set(ids)
    seen: list[Seen] = []
    deadline = time.monotonic() + quiet_seconds
    while True:
        # Before the look at the receiver: what is finished by now, that one has seen.
        events = cluster.read(lambda database: list(database["events"].find({"schedule_id": {"$in": ids}})))
        seen += [each for each in cluster.seen() if _schedule_of(each[1]) in mine]
        findings = audit(load.owed, load.ends + LONG_AFTER, events, seen, cluster.harmed, load.silences)
        if not (findings.lost or findings.stuck) or time.monotonic() > deadline:
            break
        time.sleep(1)
    cluster.note_exits()
    findings.exited, cluster.exited, cluster.harmed = cluster.exited, [], set()
    return findings


def _schedule_of(key: str) -> str:
    """The schedule's id, of which an event's id is made: `<schedule>-<revision>-<instant>`."""
    return re.sub(r"-\d+-\d{8}T\d{6,9}Z$", "", key)


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.time()))


def summary(rows: list[Row]) -> dict[str, Any]:
    """The whole run as one JSON object."""
    return {
        "runs": len(rows),
        "occurrences": sum(row.findings.occurrences for row in rows),
        "requests": sum(row.findings.requests for row in rows),
        "broken": [f"{row.fault} {row.seed}" for row in rows if row.findings.broken],
        "permitted": sum(len(row.findings.permitted) for row in rows),
        "seconds": round(sum(row.seconds for row in rows)),
    }
