"""Redis behind Sentinel: its master dies, and callbacks go on through the one that takes its place."""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests
from redis import Redis as Client
from redis.exceptions import RedisError

from scheduler_app.embedded import Redis, Server, find_redis_server
from tests.acceptance.journal import Journal
from tests.acceptance.limited_receiver import LimitedReceiver, excess
from tests.acceptance.stack import Stack
from tests.acceptance.test_delivery import instant
from tests.processes import Program, wait_until

MASTER = "callbacks-master"
EACH = 40
SHIPPED = Path(__file__).parents[3] / "deploy" / "sentinel.conf"


class Replica(Redis):
    def __init__(self, directory: Path, master: Redis) -> None:
        super().__init__(directory)
        self._master = master

    def command(self) -> list[str]:
        return [*super().command(), "--replicaof", "127.0.0.1", str(self._master.port)]


class Sentinel(Server):
    """Of the configuration that we ship; here one decides alone, and soon."""

    name = "sentinel"

    def __init__(self, directory: Path, master: Redis) -> None:
        super().__init__(directory)
        self._master = master

    @property
    def url(self) -> str:
        return f"sentinel://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        text = SHIPPED.read_text()
        for shipped, here in (
            ("port 26379", f"port {self.port}"),
            ("dir /tmp", f"dir {self.directory}"),
            ("redis-1 6379 2", f"127.0.0.1 {self._master.port} 1"),
            ("mymaster 5000", "mymaster 1000"),
            ("mymaster 30000", "mymaster 5000"),
            ("mymaster", MASTER),
        ):
            assert shipped in text
            text = text.replace(shipped, here)
        configuration = self.directory / "sentinel.conf"
        configuration.write_text(text)
        return [str(find_redis_server()), str(configuration), "--sentinel"]

    def ready(self) -> bool:
        """Whether it knows the master's replica: before that there is nobody to promote."""
        with Client(port=self.port, socket_timeout=2, socket_connect_timeout=2) as client:
            try:
                return len(client.sentinel_slaves(MASTER)) == 1
            except RedisError:
                return False

    def error_line(self, line: str) -> str | None:
        return line.strip() if "error" in line.lower() else None

    def master_port(self) -> int:
        with Client(port=self.port) as client:
            return int(client.sentinel_get_master_addr_by_name(MASTER)[1])


@dataclass
class Guarded:
    master: Redis
    replica: Replica
    sentinel: Sentinel


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    with tempfile.TemporaryDirectory(prefix="sentinel-") as name:
        folder = Path(name)
        with (
            Redis(folder / "master") as master,
            Replica(folder / "replica", master) as replica,
            Sentinel(folder / "sentinel", master) as sentinel,
        ):
            yield Guarded(master, replica, sentinel)


@pytest.mark.chaos
@pytest.mark.timeout(240)
def test_callbacks_go_on_when_sentinel_promotes_the_replica_of_a_dead_master(
    make_stack: Callable[..., Stack],
    journal: Journal,
    guarded: Guarded,
    run: Callable[..., Program],
) -> None:
    # The first of the sentinels is one that does not answer.
    urls = f"sentinel://127.0.0.1:1;{guarded.sentinel.url}"
    stack = make_stack(BROKER_URL=urls, BROKER_SENTINEL_MASTER=MASTER)
    processes = [stack.api(), stack.beat(), stack.worker()]
    made = stack.create(journal.url("/each"), rrule=f"FREQ=SECONDLY;COUNT={EACH}")
    wait_until(lambda: len(journal.calls["/each"]) >= 3, "some calls")
    assert journal.calls["/each"][2].at - instant(journal.calls["/each"][2].run_time) < 0.5
    assert requests.get(f"{stack.url}/readyz").status_code == 200
    killed_at = time.time()
    guarded.master.kill()
    wait_until(lambda: guarded.sentinel.master_port() == guarded.replica.port, "the promotion")
    promoted_at = time.time()
    wait_until(lambda: _is_punctual(journal, promoted_at), "a punctual call")
    print(
        f"promoted {promoted_at - killed_at:.1f} s after the kill,"
        f" punctual again {time.time() - promoted_at:.1f} s later"
    )
    ready = requests.get(f"{stack.url}/readyz")
    assert ready.status_code == 200, ready.text
    doctor = run(sys.executable, "-m", "scheduler_app.cli", "doctor", **stack.environment)
    assert doctor.wait() == 0, doctor.output
    assert f"127.0.0.1:{guarded.sentinel.port}" in doctor.output
    stack.finished(made, EACH)
    came = Counter(call.run_time for call in journal.calls["/each"])
    assert len(came) == EACH
    assert max(came.values()) == 1
    assert [process.poll() for process in processes] == [None, None, None]


@pytest.mark.chaos
@pytest.mark.timeout(240)
def test_the_limits_of_a_destination_hold_when_sentinel_promotes_a_replica(
    make_stack: Callable[..., Stack], guarded: Guarded
) -> None:
    rate, burst, concurrency, count = 50, 10, 5, 500
    stack = make_stack(BROKER_URL=guarded.sentinel.url, BROKER_SENTINEL_MASTER=MASTER)
    stack.all()
    stack.worker("second")
    with closing(LimitedReceiver()) as receiver:
        limits = {"rate_per_second": rate, "burst": burst, "concurrency": concurrency}
        put = requests.put(f"{stack.url}/api/destinations/d", json={"url": receiver.url} | limits)
        assert put.status_code == 201, put.text
        at = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
        items = [{"id": f"m{number}", "destination": "d", "scheduled_at": at} for number in range(count)]
        stack.post("/messages/bulk", {"messages": items}, status=200)
        wait_until(lambda: len(receiver.keys) >= count // 4, "a part of the messages")
        guarded.master.kill()
        wait_until(lambda: guarded.sentinel.master_port() == guarded.replica.port, "the promotion")
        wait_until(lambda: len(receiver.keys) == count, "all messages")
        assert max(receiver.keys.values()) == 1
        # What the replica had not heard of yet starts over: one burst more.
        assert excess(receiver.arrivals, 2 * burst, rate) <= 0
        assert receiver.most_open <= concurrency


def _is_punctual(journal: Journal, since: float) -> bool:
    last = journal.calls["/each"][-1]
    return instant(last.run_time) > since and last.at - instant(last.run_time) < 0.5
