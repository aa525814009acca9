"""systemd's units on a server of their own, their upgrade, and a second machine that joins."""

import re
import secrets
import time
from contextlib import ExitStack
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from cryptography.fernet import Fernet

from tests.containers.deployment import ROOT, blocks_of_step, copy_of_tree, until
from tests.containers.engine import Engine, StepFailed
from tests.containers.lane import Lane
from tests.containers.machine import NETWORK, Machine, prepare_machines

_FIRST, _SECOND = "rrule-scheduler-machine", "rrule-scheduler-machine-2"
_DATABASES = ("mongo-1", "redis-1")
_UNITS = (
    "scheduler-api",
    "scheduler-beat@1",
    "scheduler-beat@2",
    "scheduler-worker@1",
    "scheduler-worker@2",
    "scheduler-witness",
    "scheduler-flower",
    "scheduler-commands@1",
)
_COMMAND_NICENESS = 10
#: The longest TimeoutStopSec of the units.
_STOP_SECONDS = 45
_RECEIVER = "http://127.0.0.1:9000/"
_SETTINGS = "/etc/scheduler/scheduler.env"
_PERIOD = timedelta(seconds=2)


def units(lane: Lane) -> list[str]:
    """The systemd units, word for word: calls, commands, a killed worker, an upgrade, a second machine."""
    engine = lane.engine
    prepare_machines(lane)
    source = copy_of_tree(engine.share / "source")
    with ExitStack() as stack:
        stack.callback(engine.run, "docker", "network", "rm", NETWORK, check=False)
        first = Machine(engine, _FIRST, source, *_DATABASES)
        stack.callback(first.remove)
        second = Machine(engine, _SECOND, source)
        stack.callback(second.remove)
        try:
            key = _start(lane, first)
            ask_doctor, join, restart = blocks_of_step("docs/production.md", "units")
            return [
                *_run(first, key),
                *_upgraded(lane, first, key, restart),
                *_restored(first, key),
                *_joined(lane, first, second, key, join, ask_doctor),
                *_ended(first),
            ]
        except StepFailed as error:
            raise StepFailed(f"{error}\n{first.said()}\n{second.said()}") from None


def _lines() -> list[str]:
    """The commands at the head of scheduler.target, one each."""
    comment = (ROOT / "deploy" / "systemd" / "scheduler.target").read_text()
    commands = "\n".join(re.findall(r"^#   (.*)$", comment, re.MULTILINE))
    return commands.replace("\\\n", "").splitlines()


def _install(lane: Lane, machine: Machine) -> None:
    with lane.engine.internet():
        machine.run("\n".join(line for line in _lines() if not line.startswith("systemctl enable")))


def _start(lane: Lane, machine: Machine) -> str:
    """Databases, a receiver and all units; a key of the API."""
    _install(lane, machine)
    password, key = secrets.token_hex(24), secrets.token_hex(24)
    machine.run(
        "install -d -m 700 -o mongodb /etc/mongodb; openssl rand -base64 756 > /etc/mongodb/keyfile;"
        " chmod 400 /etc/mongodb/keyfile; chown mongodb /etc/mongodb/keyfile;"
        f" printf 'dir /var/lib/redis\\nrequirepass {password}\\n' | cat deploy/redis.conf - >"
        " /etc/redis/redis.conf;"
        " systemctl start mongod redis-server"
    )
    _receive(machine)
    _make_users(lane.engine, password)
    settings = {
        "MONGO_URI": f"mongodb://scheduler:{password}@mongo-1:27017/?replicaSet=rs0&authSource=admin",
        "BROKER_URL": f"redis://:{password}@redis-1:6379/0",
        "API_KEYS": key,
        "SECRETS_KEY": Fernet.generate_key().decode(),
        "FLOWER_BASIC_AUTH": f"scheduler:{password}",
        "ALLOWED_COMMANDS": "/usr/bin/nice",
    }
    for name, value in settings.items():
        machine.run(f"sed -i 's|^{name}=.*|{name}={value.replace('&', chr(92) + '&')}|' {_SETTINGS}")
    machine.run(f"echo CALLBACK_ALLOWED_NETWORKS=127.0.0.0/8 >> {_SETTINGS}")
    machine.run("\n".join(line for line in _lines() if line.startswith("systemctl enable")))
    machine.run("systemctl enable --now scheduler-commands@1")
    _until_active(machine, "all units to be active")
    until(lambda: "Booting worker" in machine.run("journalctl -u scheduler-api --no-pager"), "the API")
    return key


def _receive(machine: Machine) -> None:
    machine.run("systemd-run -q --unit=receiver python3 -u -m http.server 9000 --bind 127.0.0.1")


def _run(machine: Machine, key: str) -> list[str]:
    """Callbacks and commands, and a worker that is killed."""
    every = {"rrule": f"FREQ=SECONDLY;INTERVAL={_PERIOD.seconds}"}
    call = {"id": "call", "name": "call", "callback_url": _RECEIVER}
    job = {"id": "job", "name": "job", "action": {"type": "command", "command": ["/usr/bin/nice"]}}
    for schedule in (call, job):
        machine.ask("POST", "/api/v1/schedules", key, schedule | every)
    until(lambda: _completed(machine, key, "call"), "a callback")
    (command, *_) = until(lambda: _completed(machine, key, "job"), "a command")
    # COMMAND_NICENESS is added to the worker's own, which this lane may have been given.
    worker = int(machine.run("ps -o ni= -p $(systemctl show -p MainPID --value scheduler-commands@1)"))
    told = command["attempts"][0]["output"]
    if int(told) != min(19, worker + _COMMAND_NICENESS):
        raise StepFailed(f"the command ran at niceness {told}, its worker at {worker}")
    machine.run("kill -9 $(systemctl show -p MainPID --value scheduler-worker@1)")
    _until_active(machine, "the killed worker to be back")
    restarts = machine.run("systemctl show -p NRestarts --value scheduler-worker@1")
    version = machine.run("systemctl --version | head -n 1")
    return [
        f"{len(_UNITS)} units active on {version}",
        f"callbacks completed, and commands at niceness {told.strip()} of a worker at {worker}",
        f"a killed worker was restarted ({restarts})",
    ]


def _upgraded(lane: Lane, machine: Machine, key: str, restart: str) -> list[str]:
    """A second environment beside the first, and each unit into it."""
    lines = _lines()
    begins = next(number for number, line in enumerate(lines) if line.startswith("new="))
    ends = next(number for number, line in enumerate(lines) if line.startswith("ln "))
    before = machine.run("readlink /opt/scheduler/.venv")
    with lane.engine.internet():
        machine.run("\n".join(lines[begins : ends + 1]))
    now = machine.run("readlink /opt/scheduler/.venv")
    if before == now or set(_environments(machine)) != {before}:
        raise StepFailed(f"from {before} to {now}, and these run: {_environments(machine)}")
    since = _clock(machine)
    machine.run("systemctl restart scheduler-commands@1")
    machine.run(restart)
    _until_active(machine, "the upgraded units")
    if set(_environments(machine)) != {now}:
        raise StepFailed(f"these did not begin anew in {now}: {_environments(machine)}")
    last = _clock(machine)
    # Whatever fell due before `last` has ended when a later one has.
    until(
        lambda: any(_instant(event) > last + 5 * _PERIOD for event in _completed(machine, key, "call")),
        "a callback after the upgrade",
    )
    answer = machine.ask("GET", "/api/v1/schedules/call/events/history?limit=200", key)
    events = sorted((each for each in answer["events"] if since < _instant(each) < last), key=_instant)
    if not events or any(event["state"] != "completed" or len(event["attempts"]) != 1 for event in events):
        raise StepFailed(f"during the upgrade: {[(e['_id'], e['state']) for e in events]}")
    if missing := [
        event["_id"] for event, after in pairwise(events) if _instant(after) != _instant(event) + _PERIOD
    ]:
        raise StepFailed(f"nothing follows these: {missing}")
    return [f"an upgrade beside the running release, unit by unit: {len(events)} callbacks, each sent once"]


def _restored(machine: Machine, key: str) -> list[str]:
    """A backup of mongod's files, and what was there at its time after a restore."""
    take, restore = blocks_of_step("docs/operations.md", "units")
    began = time.monotonic()
    machine.run(take)
    seconds = time.monotonic() - began
    size = int(machine.run("stat -c %s mongo.tar.gz"))
    draft = {"name": "late", "id": "late", "rrule": "FREQ=YEARLY", "callback_url": _RECEIVER}
    until(lambda: machine.ask("POST", "/api/v1/schedules", key, draft).get("id") == "late", "the API")
    machine.run(restore)
    at = _clock(machine)
    _until_active(machine, "all units after the restore")
    until(
        lambda: any(_instant(event) > at for event in _completed(machine, key, "call")),
        "a callback after the restore",
    )
    there = {each["id"] for each in machine.ask("GET", "/api/v1/schedules", key)["schedules"]}
    if there != {"call", "job"}:
        raise StepFailed(f"these schedules were restored: {there}")
    return [f"a backup of mongod's files ({seconds:.1f} s, {size / 1e6:.1f} MB), restored: callbacks go on"]


def _joined(lane: Lane, first: Machine, second: Machine, key: str, join: str, ask_doctor: str) -> list[str]:
    """Workers on the second machine, with the first one's settings; then it is taken away again."""
    _install(lane, second)
    copied = f"docker cp {first.name}:{_SETTINGS} - | docker cp - {second.name}:/etc/scheduler/"
    lane.engine.shell(copied, lane.engine.share)
    if (mode := second.run(f"stat -c %a {_SETTINGS}")) != "600":
        raise StepFailed(f"{_SETTINGS} was copied with mode {mode}")
    _receive(second)
    second.run(join)
    names = [f"worker{number}@{machine.run('hostname')}" for machine in (first, second) for number in (1, 2)]
    doctors = [_doctor(machine, ask_doctor, names) for machine in (first, second)]
    first.run("systemctl stop scheduler-worker@1 scheduler-worker@2")
    theirs = until(
        lambda: [
            event for event in _completed(first, key, "call") if event["attempts"][-1]["worker"] in names[2:]
        ],
        "a callback by the second machine",
    )
    second.run("systemctl disable --now scheduler.target scheduler-worker@1 scheduler-worker@2")
    first.run("systemctl start scheduler-worker@1 scheduler-worker@2")
    until(
        lambda: [
            event
            for event in _completed(first, key, "call")
            if _instant(event) > _instant(theirs[0]) and event["attempts"][-1]["worker"] in names[:2]
        ],
        "a callback by the first machine",
    )
    return [f"a second machine's workers joined and left; doctor, here and there: {' '.join(doctors)}"]


def _doctor(machine: Machine, ask: str, names: list[str]) -> str:
    """The last line of what doctor says, as soon as it lists these workers."""

    def lists_all() -> str:
        said = machine.run(ask)
        return said.splitlines()[-1] if all(name in said for name in names) else ""

    return until(lists_all, f"doctor to list {names}")


def _ended(machine: Machine) -> list[str]:
    began = time.monotonic()
    # systemctl waits for the target alone.
    machine.run("systemctl stop scheduler.target")
    until(lambda: not machine.run("pgrep -u scheduler -a || true"), "the end of all processes", _STOP_SECONDS)
    seconds = time.monotonic() - began
    results = set(machine.run(f"systemctl show -p Result --value {' '.join(_UNITS)}").split())
    return [f"all ended in {seconds:.0f} s: {', '.join(results)}"]


def _completed(machine: Machine, key: str, name: str) -> list[dict[str, Any]]:
    """The last events of a schedule that completed, the latest first."""
    history = machine.ask("GET", f"/api/v1/schedules/{name}/events/history?limit=5", key)
    # An API without its MongoDB answers by a 503.
    return [event for event in history.get("events", []) if event["state"] == "completed"]


def _instant(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(event["run_time"])


def _clock(machine: Machine) -> datetime:
    return datetime.fromisoformat(machine.run("date -u +%Y-%m-%dT%H:%M:%S+00:00"))


def _environments(machine: Machine) -> list[str]:
    """Of each unit's process, the environment whose Python it runs."""
    shown = "tr '\\0' '\\n' < /proc/$(systemctl show -p MainPID --value {})/cmdline | head -n 1"
    return [machine.run(shown.format(unit)).partition("/bin/")[0] for unit in _UNITS]


def _make_users(engine: Engine, password: str) -> None:
    """The replica set and its users, by the commands of deploy/mongod.conf, from its own host."""
    comment = "\n".join(re.findall(r"^#   (.*)$", (ROOT / "deploy/mongod.conf").read_text(), re.MULTILINE))
    initiate, *users = re.findall(r"^mongosh [^']*'[^']*'", comment, re.MULTILINE)
    # One machine instead of three.
    initiate = re.sub(
        r"members: \[.*?\]", 'members: [{_id: 0, host: "mongo-1:27017"}]', initiate, flags=re.DOTALL
    )
    run = ("docker", "run", "--rm", f"--network=container:{_FIRST}")
    shell = ("mongo:7.0", "bash", "-euc")
    until(lambda: engine.run(*run, *shell, initiate, check=False).returncode == 0, "mongod")
    elected = "until mongosh --quiet --eval 'quit(db.hello().isWritablePrimary ? 0 : 1)'; do sleep 0.2; done"
    engine.run(*run, *shell, elected)
    for command in users:
        # The password that it logs in with, where it does, and the new user's.
        answers = [password] * (2 if "--username" in command else 1)
        said = engine.type_into(r"Enter password(?:: |\r\n)", answers, *run, "-it", *shell, command)
        if "ok:" not in said:
            raise StepFailed(f"{command}: {said}")


def _until_active(machine: Machine, what: str) -> None:
    asked = f"systemctl is-active {' '.join(_UNITS)}"
    until(lambda: machine.run(asked, check=False).split().count("active") == len(_UNITS), what)


STEPS = (units,)
