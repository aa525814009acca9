"""Prometheus and the board: no alarm while all is well, those that can be provoked, every query answered."""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import requests
import yaml

from tests.containers.deployment import PROJECT, ROOT, Deployment, until
from tests.containers.engine import Engine, StepFailed
from tests.containers.held import hold, let_go
from tests.containers.lane import Lane
from tests.containers.traffic import Traffic, counted, main_process, traffic

FOLDER = ROOT / "deploy" / "prometheus"
BOARD = ROOT / "deploy" / "grafana" / "board.json"
_NAME, _IMAGE = "rrule-scheduler-prometheus", "standin/prometheus"
_PORT = 9090
#: At most, beside the time that an alarm's own rule waits: what its expression asks for (of ticks 90 s),
#: scrapes, evaluations, and what it looks back over.
GRACE_SECONDS = 240


def rules(lane: Lane) -> list[str]:
    """promtool checks the rules and Prometheus' configuration, and runs the rules' own tests."""
    folder = lane.engine.share / "rules"
    lane.engine.run("rm", "-rf", str(folder))
    lane.engine.run("mkdir", "-p", str(folder))
    for file in FOLDER.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    lane.engine.run("promtool", "check", "config", "--syntax-only", "prometheus.yml", cwd=folder)
    checked = lane.engine.run("promtool", "check", "rules", "rules.yml", cwd=folder)
    lane.engine.run("promtool", "test", "rules", "rules_test.yml", cwd=folder)
    version = lane.engine.run("promtool", "--version").stdout.splitlines()[0]
    found = re.search(r"(\d+) rules found", checked.stdout + checked.stderr)
    return [f"{found[1] if found else 'no'} rules, {version}"]


class Prometheus:
    """Debian's Prometheus with the files of `deploy/prometheus`, on the project's network `data`."""

    def __init__(self, engine: Engine, deployment: Deployment) -> None:
        self._engine = engine
        folder = engine.share / "prometheus"
        folder.mkdir(exist_ok=True)
        for name in ("prometheus.yml", "rules.yml"):
            (folder / name).write_bytes((FOLDER / name).read_bytes())
        key = folder / "scheduler-api-key"
        key.write_text(deployment.settings()["API_KEYS"])
        engine.run("docker", "rm", "-f", _NAME, check=False)
        engine.run(
            "docker", "run", "-d", "--name", _NAME, f"--network={PROJECT}_data",
            "-v", f"{folder}:/etc/prometheus:ro", _IMAGE,
            "prometheus", "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/tmp/data",
        )  # fmt: skip
        (told,) = json.loads(engine.run("docker", "inspect", _NAME).stdout)
        address = told["NetworkSettings"]["Networks"][f"{PROJECT}_data"]["IPAddress"]
        self._url = f"http://{address}:{_PORT}/api/v1"

    def ask(self, path: str, **arguments: Any) -> Any:
        return requests.get(f"{self._url}/{path}", params=arguments, timeout=10).json()

    def is_ready(self) -> bool:
        try:
            targets = self.ask("targets")["data"]["activeTargets"]
        except requests.RequestException:
            return False
        return len(targets) >= 5 and all(target["health"] == "up" for target in targets)

    def alarms(self) -> dict[str, str]:
        """The state of each alarm that is pending or firing."""
        return {each["labels"]["alertname"]: each["state"] for each in self.ask("alerts")["data"]["alerts"]}

    def wait_for(self, alarm: str, state: str | None, seconds: float) -> None:
        until(lambda: self.alarms().get(alarm) == state, f"{alarm} to be {state}", seconds)

    def remove(self) -> None:
        self._engine.run("docker", "rm", "-f", _NAME, check=False)


@contextmanager
def _watched(lane: Lane) -> Iterator[tuple[Deployment, Prometheus]]:
    deployment = lane.running()
    if lane.engine.run("docker", "image", "inspect", _IMAGE, check=False).returncode:
        with lane.engine.internet():
            lane.stand_in("prometheus", _IMAGE)
    prometheus = Prometheus(lane.engine, deployment)
    try:
        until(prometheus.is_ready, "Prometheus to reach every process")
        yield deployment, prometheus
    finally:
        prometheus.remove()


def board(lane: Lane) -> list[str]:
    """Every query of the Grafana board is asked of Prometheus while callbacks are made, and answered."""
    with _watched(lane) as (deployment, prometheus), traffic(deployment) as target:
        said = counted(target, f"board-{int(time.time())}", 5, 60, lambda: None)
        until(prometheus.is_ready, "Prometheus to reach every process")
        panels = [panel for panel in json.loads(BOARD.read_text())["panels"] if panel["type"] != "row"]
        queries = [
            each["expr"].replace("$__rate_interval", "5m") for panel in panels for each in panel["targets"]
        ]
        empty = []
        for query in queries:
            answer = prometheus.ask("query", query=query)
            if answer["status"] != "success":
                raise StepFailed(f"{query}: {answer}")
            if not answer["data"]["result"]:
                empty.append(query)
        return [
            f"{len(queries)} queries answered, {len(queries) - len(empty)} of them with data; {said}",
            *(f"without data, because nothing of the kind happened: `{query}`" for query in empty),
        ]


def alarms(lane: Lane) -> list[str]:
    """No alarm is pending when all is well; those that can be provoked fire, and end."""
    with _watched(lane) as (deployment, prometheus), traffic(deployment) as target:
        counted(target, f"quiet-{int(time.time())}", 5, 60, lambda: None)
        noisy = prometheus.alarms()
        if noisy:
            raise StepFailed(f"all is well, and yet: {noisy}")
        lines = ["two minutes of callbacks: no alarm is pending"]
        for together in _provocations(deployment, target):
            began = time.monotonic()
            for _, provoke, _ in together:
                provoke()
            for alarm, _, _ in together:
                prometheus.wait_for(alarm, "firing", _holds(alarm) + GRACE_SECONDS)
                lines.append(f"{alarm} fires after {time.monotonic() - began:.0f} s")
            for _, _, heal in together:
                heal()
            for alarm, _, _ in together:
                if not _looks_back(alarm):
                    prometheus.wait_for(alarm, None, GRACE_SECONDS)
        every = {rule["alert"] for group in _groups() for rule in group["rules"]}
        provoked = {line.split()[0] for line in lines[1:]}
        lines.append(f"{len(provoked)} of {len(every)}; `rules` tries all of them on made-up series")
        return lines


def _provocations(
    deployment: Deployment, target: Traffic
) -> list[list[tuple[str, Callable[[], Any], Callable[[], Any]]]]:
    """The name of an alarm, what makes it fire and what ends it; those in one list go together."""

    def create(name: str, path: str, **fields: Any) -> Callable[[], Any]:
        body = {
            "id": name,
            "name": name,
            "callback_url": target.callback_url(path),
            "rrule": "FREQ=SECONDLY",
            "max_retries": 0,
            **fields,
        }
        return lambda: deployment.ask("POST", "/api/v1/schedules", body, expect=201)

    def delete(name: str) -> Callable[[], Any]:
        return lambda: deployment.ask("DELETE", f"/api/v1/schedules/{name}")

    def stopped(service: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
        return (
            lambda: deployment.compose("stop", service),
            lambda: (deployment.compose("up", "--wait"), until(deployment.answers, "the API")),
        )

    held: list[int] = []

    def hold_a_tick() -> None:
        """Of one beat; its thread that answers Prometheus goes on."""
        (container, *_) = deployment.containers("beat")
        held.append(main_process(container["State"]["Pid"]))
        hold(held[0])

    return [
        [
            (
                "SchedulerKillSwitchOn",
                # The emergency command, as the manual has it.
                lambda: deployment.execute("api", "scheduler", "kill-switch", "on", "--all"),
                lambda: deployment.execute("api", "scheduler", "kill-switch", "off", "--all"),
            )
        ],
        [("SchedulerNoBeat", *stopped("beat")), ("SchedulerNoWorker", *stopped("worker"))],
        [("SchedulerBrokerUnreachable", *stopped("redis"))],
        [("SchedulerMongoDBUnreachable", *stopped("mongo"))],
        [("SchedulerApiMissing", *stopped("api"))],
        [("SchedulerTicksOld", hold_a_tick, lambda: let_go(held.pop()))],
        [
            ("SchedulerEventsGivenUp", create("dead", "/fail/99"), delete("dead")),
            ("SchedulerQueueUnserved", create("unserved", "/ok", queue="nobody"), delete("unserved")),
        ],
        # Alone: an origin that answers other requests does not hang.
        [("SchedulerOriginHangs", create("hangs", "/hang/9", timeout_seconds=200), delete("hangs"))],
    ]


def _groups() -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = yaml.safe_load((FOLDER / "rules.yml").read_text())["groups"]
    return groups


def _rule(alarm: str) -> dict[str, Any]:
    return next(rule for group in _groups() for rule in group["rules"] if rule.get("alert") == alarm)


def _holds(alarm: str) -> float:
    """How long its condition must hold."""
    found = re.fullmatch(r"(\d+)([smh])", str(_rule(alarm).get("for", "0s")))
    assert found is not None
    return int(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]


def _looks_back(alarm: str) -> bool:
    """Whether it goes on for a quarter of an hour by its own rule."""
    return "[15m]" in _rule(alarm)["expr"]


STEPS = (rules, board, alarms)
