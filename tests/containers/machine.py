"""A server of the manual's: a Debian with systemd in a privileged container, and this repository's files."""

import json
from pathlib import Path
from typing import Any

from tests.containers.deployment import until
from tests.containers.engine import Engine
from tests.containers.images import DEBIAN_WITH_SYSTEMD
from tests.containers.lane import Lane

#: The network of the manual's example, in which a second machine reaches the first one's databases.
NETWORK, ADDRESSES = "rrule-scheduler-machines", "10.0.0.0/24"


def prepare_machines(lane: Lane) -> None:
    """Makes the image and the network of the machines; what an earlier run left is removed."""
    lane.images()
    if lane.engine.run("docker", "image", "inspect", DEBIAN_WITH_SYSTEMD, check=False).returncode:
        with lane.engine.internet():
            lane.stand_in("systemd", DEBIAN_WITH_SYSTEMD)
    lane.engine.run("docker", "network", "rm", NETWORK, check=False)
    lane.engine.run("docker", "network", "create", "--subnet", ADDRESSES, NETWORK)


class Machine:
    """A running machine with the repository's files in /source.

    Others in the network find it by `name` and its other `names`, and it finds itself by these at its own
    loopback address.
    """

    def __init__(self, engine: Engine, name: str, source: Path, *names: str) -> None:
        self.name = name
        self._engine = engine
        called = [f"--network-alias={each}" for each in names]
        itself = [f"--add-host={each}:127.0.0.1" for each in names]
        self.remove()
        engine.run(
            "docker", "run", "-d", "--name", name, f"--network={NETWORK}", *called, *itself, "--privileged",
            "--cgroupns=host", "--tmpfs", "/run", "--tmpfs", "/run/lock", "--volume", f"{source}:/source",
            DEBIAN_WITH_SYSTEMD,
        )  # fmt: skip
        until(
            lambda: self.run("systemctl is-system-running", check=False) in ("running", "degraded"), "systemd"
        )

    def run(self, commands: str, *, check: bool = True) -> str:
        done = self._engine.run(
            "docker", "exec", "-w", "/source", self.name, "bash", "-euc", commands, check=check
        )
        return done.stdout.strip()

    def ask(self, method: str, path: str, key: str, body: Any = None) -> Any:
        """The answer of its own API."""
        data = f"-d '{json.dumps(body)}'" if body is not None else ""
        return json.loads(
            self.run(
                f"curl -s -X {method} 'http://127.0.0.1:8080{path}' -H 'Authorization: Bearer {key}'"
                f" -H 'Content-Type: application/json' {data}"
            )
        )

    def said(self) -> str:
        """What systemd knows of our units, for somebody who reads a failure."""
        return self.run(
            "systemctl --no-pager list-units 'scheduler*'; journalctl -n 40 --no-pager -u 'scheduler*'",
            check=False,
        )

    def remove(self) -> None:
        self._engine.run("docker", "rm", "--force", "--volumes", self.name, check=False)
