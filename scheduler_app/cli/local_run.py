"""A run of everything on this machine, from the first look at its ports to its end."""

import os
from contextlib import ExitStack
from pathlib import Path

from scheduler_app.broker.backends import backend_of
from scheduler_app.cli.addresses import api_url
from scheduler_app.cli.backing import Backing, backing
from scheduler_app.cli.data_directory import data_directory, temporary_directory
from scheduler_app.cli.environment import DEFAULTS, environment
from scheduler_app.cli.failure import CannotStart
from scheduler_app.cli.generated_secrets import FLOWER_PASSWORD, FLOWER_USER, flower_password
from scheduler_app.cli.greeting import greeting, program
from scheduler_app.cli.parts import (
    api_part,
    beat_part,
    flower_part,
    server_part,
    with_metrics_port,
    worker_part,
)
from scheduler_app.cli.ports import HeldPorts
from scheduler_app.cli.running import NAME, written_down
from scheduler_app.cli.supervisor import Console, Part, Supervisor
from scheduler_app.config import Settings
from scheduler_app.embedded import NoBinary


def run(settings: Settings, folder: Path) -> int:
    """Until it is ended; the exit status. Raises `CannotStart`."""
    # Whatever the parts write is for this user alone: data, logs, secrets.
    os.umask(0o077)
    with ExitStack() as held:
        ports = held.enter_context(HeldPorts())
        ports.hold("API_PORT", settings.api_host, settings.api_port, "choose another with --port")
        ports.metrics(settings)
        flower_port = ports.flower(settings)
        held.enter_context(data_directory(folder))
        behind = backing(settings, folder)
        login = os.environ.get("FLOWER_BASIC_AUTH") or f"{FLOWER_USER}:{flower_password(folder)}"
        parts = _parts(settings, behind, folder, flower_port, login)
        held.enter_context(written_down(folder, _facts(settings, behind, flower_port)))
        console = Console([part.name for part in parts])
        if settings.callback_allowed_networks == DEFAULTS["CALLBACK_ALLOWED_NETWORKS"]:
            console.say(f"callbacks may reach this machine (loopback): {settings.callback_allowed_networks}")
        ready = greeting(_addresses(settings, behind, folder, flower_port), settings)
        return Supervisor(parts, console, lambda: console.block(ready)).run()


def _facts(settings: Settings, behind: Backing, flower_port: int) -> dict[str, str]:
    """What other commands must know to find this run: `doctor` all of it, the remote ones the API."""
    return {
        **behind.environment,
        "MONGO_DATABASE": settings.mongo_database,
        "API_HOST": settings.api_host,
        "API_PORT": str(settings.api_port),
        "FLOWER_PORT": str(flower_port),
    }


def _parts(settings: Settings, behind: Backing, folder: Path, flower_port: int, login: str) -> list[Part]:
    shared = environment(settings, behind.environment) | {
        # What a kill -9 leaves behind, such as the API's counters, is removed by the next run.
        "TMPDIR": str(temporary_directory(folder).resolve())
    }
    try:
        servers = [server_part(server, folder, shared) for server in behind.servers]
    except NoBinary as error:
        raise CannotStart(str(error)) from None
    workers = [
        worker_part(number, settings, with_metrics_port(settings, shared, number))
        for number in range(1, settings.worker_processes + 1)
    ]
    return [
        *servers,
        api_part(settings, shared),
        beat_part(shared),
        *workers,
        flower_part(flower_port, login, shared),
    ]


def _addresses(settings: Settings, behind: Backing, folder: Path, flower_port: int) -> dict[str, str]:
    folder = folder.resolve()
    own_login = "" if os.environ.get("FLOWER_BASIC_AUTH") else f" (user {FLOWER_USER}, password: see Secrets)"
    return {
        "API": api_url(settings),
        "Swagger UI": f"{api_url(settings)}/swagger-ui",
        "Flower": f"http://127.0.0.1:{flower_port}{own_login}",
        "MongoDB": f"{behind.mongo} (database {settings.mongo_database})",
        backend_of(behind.broker).title: behind.broker,
        "Data": str(folder),
        "Secrets": f"{folder / FLOWER_PASSWORD}; those of MongoDB and Redis are in {folder / NAME}",
        "Commands": f"{program()} list --url {api_url(settings)}",
        "Doctor": f"{program()} doctor --config {folder / NAME}",
    }
