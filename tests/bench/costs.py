"""What a run costs: CPU, memory and round trips, of each kind of process and for each event."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import psutil
import requests
from pymongo import monitoring
from redis import Redis

from scheduler_app.store import Store
from tests.bench.report import Row

#: Of the processes' own metrics, what tells of work done in vain.
COUNTED = {
    "claims_lost": 'scheduler_claims_total{result="lost"}',
    "recovered": "scheduler_recovered_total",
    "messages": "scheduler_messages_published_total",
}


class _OwnCommands(monitoring.CommandListener):
    """Counts what the benchmark itself asks of MongoDB, to be left out."""

    count = 0

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.count += 1

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Counted when it started."""

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Counted when it started."""


_own = _OwnCommands()
monitoring.register(_own)


@dataclass(frozen=True)
class _Reading:
    cpu_s: dict[str, float]
    mongod: dict[str, int]
    redis: int
    counted: dict[str, float]


@dataclass
class Costs:
    """Reads counters before and after; `processes` are pids by name, `metrics` their Prometheus ports."""

    store: Store
    redis_url: str
    processes: Mapping[str, int]
    metrics: Mapping[str, int]
    before: _Reading | None = field(default=None, init=False)

    def start(self) -> None:
        self.before = self._read()

    def since_start(self, events: int) -> Row:
        """What was used since `start`, the benchmark's own questions left out, for so many events."""
        before, now = self.before, self._read()
        assert before is not None
        cpu = {name: round(now.cpu_s[name] - used, 3) for name, used in before.cpu_s.items()}
        kinds: dict[str, float] = defaultdict(float)
        for name, seconds in cpu.items():
            kinds[name.rstrip("0123456789")] += seconds
        mongod = {key: (now.mongod[key] - count) / events for key, count in before.mongod.items()}
        redis = (now.redis - before.redis) / events
        return {
            "cpu_s": cpu,
            "cpu_us_per_event": {kind: round(seconds / events * 1e6) for kind, seconds in kinds.items()},
            "round_trips_per_event": {
                "mongod": round(mongod["requests"], 3),
                "redis": round(redis, 3),
                "all": round(mongod["requests"] + redis, 3),
            },
            "documents_per_event": {key: round(mongod[key], 2) for key in ("written", "returned", "scanned")},
            **{name: round(count - before.counted[name]) for name, count in now.counted.items()},
            "memory_mib": self.memory(),
        }

    def memory(self) -> dict[str, int]:
        """Resident memory of each process and what it started, MiB."""
        return {
            name: round(sum(each.memory_info().rss for each in family(pid)) / 2**20)
            for name, pid in self.processes.items()
        }

    def _read(self) -> _Reading:
        own = _own.count
        status = self.store.mongo.client.admin.command("serverStatus")
        with Redis.from_url(self.redis_url) as redis:
            commands = redis.info("stats")["total_commands_processed"]
        metrics = status["metrics"]
        return _Reading(
            cpu_s={name: sum(map(cpu_seconds, family(pid))) for name, pid in self.processes.items()},
            mongod={
                "requests": status["network"]["numRequests"] - own,
                "written": metrics["document"]["inserted"] + metrics["document"]["updated"],
                "returned": metrics["document"]["returned"],
                "scanned": metrics["queryExecutor"]["scannedObjects"],
            },
            redis=commands,
            counted=self._counted(),
        )

    def _counted(self) -> dict[str, float]:
        pages = [
            requests.get(f"http://127.0.0.1:{port}/metrics", timeout=20).text
            for port in self.metrics.values()
        ]
        return {
            name: sum(
                float(number)
                for page in pages
                for number in re.findall(rf"^{re.escape(metric)}(?:{{.*}})? (\S+)$", page, re.MULTILINE)
            )
            for name, metric in COUNTED.items()
        }


def family(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
