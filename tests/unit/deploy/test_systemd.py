"""deploy/systemd by systemd itself where it is installed, and against the code that it runs."""

import ipaddress
import re
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from scheduler_app.config import load_settings, names
from scheduler_app.worker.process import LAST_WORDS_SECONDS
from tests.unit.deploy.commands import ROOT, check_command

FOLDER = ROOT / "deploy" / "systemd"
SERVICES = sorted(FOLDER.glob("*.service"))
BIN = "/opt/scheduler/.venv/bin"
#: What each unit asks for and systemd has had since version 247, of Debian 11.
HARDENING = {
    "CapabilityBoundingSet": "",
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "User": "scheduler",
}


def unit(path: Path) -> dict[str, list[str]]:
    """The values of each key, whatever their section."""
    found = defaultdict(list)
    for line in path.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith(("#", ";")):
            found[name].append(value.replace("%%", "%"))
    return found


def one(path: Path, name: str) -> str:
    (value,) = unit(path)[name]
    return value


def environment() -> dict[str, str]:
    lines = (FOLDER / "scheduler.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


every_service = pytest.mark.parametrize("path", SERVICES, ids=lambda path: str(path.stem))


def test_every_part_has_a_unit() -> None:
    assert [path.stem for path in SERVICES] == [
        "scheduler-api",
        "scheduler-beat@",
        "scheduler-commands@",
        "scheduler-flower",
        "scheduler-witness",
        "scheduler-worker@",
    ]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@every_service
def test_systemd_has_nothing_to_say(path: Path, tmp_path: Path) -> None:
    for source in (*SERVICES, FOLDER / "scheduler.target"):
        # It looks whether the programs are there.
        text = source.read_text().replace(BIN, str(Path(sys.executable).parent))
        (tmp_path / source.name).write_text(text)
    name = path.name.replace("@.", "@1.")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / name], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def command(path: Path, instance: str = "1") -> list[str]:
    """What a unit runs; the shell that computes a port is still before it."""
    return [word.replace("$$", "$").replace("%i", instance) for word in shlex.split(one(path, "ExecStart"))]


@every_service
def test_commands_are_understood(path: Path) -> None:
    words = command(path)
    program, *arguments = words[3:] if words[0] == "/bin/sh" else words
    assert program.startswith(BIN)
    check_command([program, *arguments])


@every_service
def test_it_is_confined_and_started_again(path: Path) -> None:
    found = unit(path)
    assert {name: found[name][0] for name in HARDENING} == HARDENING
    assert found["Restart"] == ["always"]
    assert found["StartLimitIntervalSec"] == ["0"]
    assert found["EnvironmentFile"] == ["/etc/scheduler/scheduler.env"]


def test_every_setting_exists_and_all_of_them_are_accepted() -> None:
    assert set(environment()) - {"FLOWER_BASIC_AUTH"} <= set(names())
    load_settings(environ=environment())


def test_each_of_many_on_one_host_has_a_port_of_its_own() -> None:
    ports = []
    for path in SERVICES:
        if "@" not in path.stem:
            continue
        for number in range(1, 100):
            shell, option, script, *_ = command(path, str(number))
            done = subprocess.run(
                [shell, option, script, "/usr/bin/printenv", "METRICS_PORT"], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            ports.append(int(done.stdout))
    assert len(ports) == len(set(ports)) == 3 * 99
    assert max(ports) <= 65_535


@every_service
def test_each_part_has_only_the_secrets_that_it_needs(path: Path) -> None:
    kept = set(environment()) - set(one(path, "UnsetEnvironment").split())
    needed = {
        "scheduler-api": {"API_KEYS", "MONGO_URI", "SECRETS_KEY", "SMTP_URL"},
        "scheduler-beat@": {"MONGO_URI", "SECRETS_KEY"},
        "scheduler-worker@": {"MONGO_URI", "SECRETS_KEY", "SMTP_URL"},
        "scheduler-commands@": {"MONGO_URI", "SECRETS_KEY"},
        "scheduler-flower": {"FLOWER_BASIC_AUTH"},
        "scheduler-witness": {"MONGO_URI", "SECRETS_KEY", "SMTP_URL", "WITNESS_PING_URL"},
    }
    open_to_all = {"ALLOWED_COMMANDS", "RETENTION_DAYS", "LOG_FORMAT", "PUBLIC_URL", "TRUSTED_PROXIES"}
    broker = set() if path.stem == "scheduler-witness" else {"BROKER_URL"}
    assert kept - open_to_all == broker | needed[path.stem]


@every_service
def test_a_part_reaches_this_host_and_only_what_sends_reaches_the_world_and_nothing_private(
    path: Path,
) -> None:
    assert one(path, "IPAddressAllow") == "localhost"
    denied = one(path, "IPAddressDeny").split()
    if path.stem not in ("scheduler-worker@", "scheduler-commands@", "scheduler-witness"):
        assert denied == ["any"]
        return
    for address in ("10.1.2.3", "169.254.169.254", "172.31.0.1", "192.168.1.1", "100.100.100.200", "fd00::1"):
        assert any(ipaddress.ip_address(address) in ipaddress.ip_network(network) for network in denied), (
            address
        )


@every_service
def test_each_part_has_a_limit_of_memory(path: Path) -> None:
    assert re.fullmatch(r"\d+M", one(path, "MemoryMax"))


def test_without_a_key_neither_the_api_nor_flower_starts_nor_a_worker_that_no_command_is_allowed_to() -> None:
    for name, key in (
        ("scheduler-api", "API_KEYS"),
        ("scheduler-flower", "FLOWER_BASIC_AUTH"),
        ("scheduler-commands@", "ALLOWED_COMMANDS"),
    ):
        command = one(FOLDER / f"{name}.service", "ExecStartPre").replace("$$", "$")
        for value, status in (("", 1), ("something", 0)):
            done = subprocess.run(shlex.split(command), env={"PATH": "/usr/bin:/bin", key: value})
            assert done.returncode == status
        assert environment()[key] == ""


@pytest.mark.parametrize("kind", ["worker", "commands"])
def test_a_worker_may_finish_before_it_is_killed_and_may_lower_the_priority_of_commands(kind: str) -> None:
    path = FOLDER / f"scheduler-{kind}@.service"
    stop = float(one(path, "TimeoutStopSec"))
    assert stop > load_settings(environ=environment()).worker_soft_shutdown_seconds + LAST_WORDS_SECONDS
    # The last filter counts: @resources, which is denied before it, has the call of os.nice.
    assert unit(path)["SystemCallFilter"][-1] == "setpriority"


def test_commands_run_on_workers_of_their_own() -> None:
    words = command(FOLDER / "scheduler-commands@.service")
    assert words[words.index("--queues") + 1] == "commands"
    assert "--queues" not in command(FOLDER / "scheduler-worker@.service")


def test_the_commands_that_install_take_nothing_but_what_is_locked() -> None:
    text = (FOLDER / "scheduler.target").read_text().replace("\\\n#", "")
    commands = [line.lstrip("# ").split() for line in text.splitlines() if "pip install" in line]
    assert commands
    for command in commands:
        files = [command[at + 1] for at, word in enumerate(command) if word == "-r"]
        assert all((ROOT / file).is_file() for file in files)
        # The project itself has no hash, so nothing but it may be fetched or built with.
        own = {"--no-deps", "--no-build-isolation", "."} <= set(command)
        assert own or (files and {"--require-hashes", "--only-binary"} <= set(command)), command
