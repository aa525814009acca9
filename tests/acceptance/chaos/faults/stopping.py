"""Kill switches and blackouts that hold while processes and Redis are killed."""

import time
from datetime import UTC, datetime, timedelta

from tests.acceptance.chaos.cluster import Cluster
from tests.acceptance.chaos.faults.registry import fault
from tests.acceptance.chaos.load import TAGS, Load
from tests.acceptance.chaos.people import People
from tests.acceptance.chaos.silences import Silence

#: How long a kill switch stays on after everything is back.
STILL_ON = 4.0
#: A blackout holds so long after the answer.
KNOWN_SECONDS = 2.0
AHEAD = timedelta(seconds=4)
WINDOW_SECONDS = 12


@fault("kill-switch", window=30)
def kill_switch(cluster: Cluster, load: Load) -> None:
    """everything is stopped by the kill switch; a worker, a beat and Redis are killed; let go on again"""
    people = People(list(cluster.api_ports.values()))
    answer = people.ask("PUT", "/kill-switch", {"all": True})
    answered_at = time.time()
    assert answer.ok, answer.text
    _kill_some(cluster)
    time.sleep(STILL_ON)
    until = time.time()
    answer = people.ask("DELETE", "/kill-switch?all=true")
    # A first try that had no answer has done it.
    assert answer.ok or answer.status_code == 404, answer.text
    load.silences.append(Silence(answered_at, until))


@fault("blackout", window=34)
def blackout(cluster: Cluster, load: Load) -> None:
    """one blackout skips and one postpones; a worker, a beat and Redis are killed meanwhile"""
    people = People(list(cluster.api_ports.values()))
    begins = datetime.now(UTC).replace(microsecond=0) + AHEAD
    for tag, policy in zip(TAGS, ("skip", "postpone"), strict=True):
        fields = {"run_at": begins.isoformat(), "duration_seconds": WINDOW_SECONDS}
        answer = people.ask("PUT", f"/blackouts/{load.name}-{tag}", fields | {"tag": tag, "policy": policy})
        assert answer.ok, answer.text
        since = max(begins.timestamp(), time.time() + KNOWN_SECONDS)
        load.silences.append(Silence(since, begins.timestamp() + WINDOW_SECONDS, tag, skips=policy == "skip"))
    time.sleep(max(0.0, begins.timestamp() - time.time()))
    _kill_some(cluster)
    time.sleep(max(0.0, begins.timestamp() + WINDOW_SECONDS - time.time()))


def _kill_some(cluster: Cluster) -> None:
    """All at once; each comes back."""
    cluster.redis.kill()
    cluster.kill("worker1", "beat1")
    cluster.redis.start()
    cluster.launch("beat1")
    cluster.restart("worker1")
    cluster.wait_for("beat1")
