"""Runs everything on this machine, from the first check of the ports to the orderly end, and prints the
addresses and a first command to paste once everything is ready.
"""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from scheduler_app.cli.addresses import api_url
from scheduler_app.cli.click_extensions import CannotStart
from scheduler_app.cli.run_file import FILE_NAME, kept_run_file
from scheduler_app.cli.up.data_directory import (
    FLOWER_PASSWORD,
    FLOWER_USER,
    data_directory,
    flower_password,
    temporary_directory,
)
from scheduler_app.cli.up.preflight import ReservedPorts
from scheduler_app.cli.up.servers import Servers, prepare_servers
from scheduler_app.cli.up.services import (
    UP_DEFAULTS,
    api_service,
    beat_service,
    commands_service,
    flower_service,
    server_service,
    service_environment,
    with_metrics_port,
    witness_service,
    worker_service,
)
from scheduler_app.cli.up.supervisor import Console, Service, Supervisor
from scheduler_app.config import Settings, conceal_secrets, secret_names
from scheduler_app.embedded import NoBinary


def banner(addresses: Mapping[str, str], settings: Settings) -> str:
    """Returns the text, several lines long. `addresses` maps the name of each to where it is."""
    api = api_url(settings)
    width = max(map(len, addresses))
    rows = [f"  {name.ljust(width)}  {address}" for name, address in addresses.items()]
    key = ' -H "Authorization: Bearer $API_KEY"' if settings.needs_key else ""
    schedule = json.dumps(
        {"name": "Every 2 seconds", "rrule": "FREQ=SECONDLY;INTERVAL=2", "callback_url": f"{api}/health"}
    )
    return "\n".join(
        [
            "Everything is ready. Ctrl-C ends it.",
            "",
            *rows,
            "",
            "A schedule that calls back every 2 seconds:",
            "",
            f"  curl {api}/api/v1/schedules{key} -H 'Content-Type: application/json' -d '{schedule}'",
        ]
    )


def program() -> str:
    """Returns how to call `scheduler` from the reader's shell: after `make up` it is rarely on PATH."""
    script = Path(sys.executable).with_name("scheduler")
    on_path = shutil.which("scheduler")
    if on_path is not None and Path(on_path).resolve() == script.resolve():
        return "scheduler"
    if script.is_file():
        return shlex.quote(str(script))
    return f"{shlex.quote(sys.executable)} -m scheduler_app.cli"


def run(settings: Settings, folder: Path, broker: str = "redis") -> int:
    """Runs in the foreground until it is ended, and returns the exit status. `broker` is the one to start
    where none is named. Raises `CannotStart`."""
    # Data, logs and secrets: only this user may read what the services write.
    os.umask(0o077)
    conceal_secrets(settings)
    with ExitStack() as held:
        ports = held.enter_context(ReservedPorts())
        ports.reserve("API_PORT", settings.api_host, settings.api_port, "choose another with --port")
        ports.metrics(settings)
        flower_port = ports.flower(settings)
        held.enter_context(data_directory(folder))
        servers = prepare_servers(settings, folder, broker)
        login = os.environ.get("FLOWER_BASIC_AUTH") or f"{FLOWER_USER}:{flower_password(folder)}"
        services = _services(settings, servers, folder, flower_port, login)
        held.enter_context(kept_run_file(folder, _run_settings(settings, servers, flower_port)))
        console = Console([service.name for service in services])
        if settings.callback_allowed_networks == UP_DEFAULTS["CALLBACK_ALLOWED_NETWORKS"]:
            console.say(f"callbacks may reach this machine (loopback): {settings.callback_allowed_networks}")
        ready = banner(_addresses(settings, servers, folder, flower_port), settings)
        return Supervisor(services, console, lambda: console.block(ready)).run()


def _run_settings(settings: Settings, servers: Servers, flower_port: int) -> dict[str, str]:
    """Returns the settings by which other commands find this run, and judge it as its services do. A process
    that is started beside them needs a port of its own for metrics."""
    given = {name: text for name, text in settings.given.items() if name != "METRICS_PORT"}
    return {
        **given,
        **servers.environment,
        "MONGO_DATABASE": settings.mongo_database,
        "API_HOST": settings.api_host,
        "API_PORT": str(settings.api_port),
        "FLOWER_PORT": str(flower_port),
    }


def _services(
    settings: Settings, servers: Servers, folder: Path, flower_port: int, login: str
) -> list[Service]:
    shared = service_environment(settings, servers.environment) | {
        # The next run removes what a kill -9 leaves behind, such as the API's counters.
        "TMPDIR": str(temporary_directory(folder).resolve())
    }
    try:
        # A server's environment stays readable for other processes of this user; it needs no secret in it.
        harmless = {name: value for name, value in shared.items() if name not in secret_names()}
        embedded = [server_service(server, folder, harmless) for server in servers.embedded]
    except NoBinary as error:
        raise CannotStart(str(error)) from None
    workers = [
        worker_service(number, settings, with_metrics_port(settings, shared, number))
        for number in range(1, settings.worker_processes + 1)
    ]
    if settings.allowed_commands:
        number = settings.worker_processes + 1
        workers.append(commands_service(settings, with_metrics_port(settings, shared, number)))
    return [
        *embedded,
        api_service(settings, shared),
        beat_service(shared),
        witness_service(shared),
        *workers,
        flower_service(flower_port, login, shared),
    ]


def _addresses(settings: Settings, servers: Servers, folder: Path, flower_port: int) -> dict[str, str]:
    folder = folder.resolve()
    own_login = "" if os.environ.get("FLOWER_BASIC_AUTH") else f" (user {FLOWER_USER}, password: see Secrets)"
    return {
        "API": api_url(settings),
        "Page": f"{api_url(settings)}/",
        "Swagger UI": f"{api_url(settings)}/swagger-ui",
        "Flower": f"http://127.0.0.1:{flower_port}{own_login}",
        "MongoDB": f"{servers.mongo} (database {settings.mongo_database})",
        servers.broker_title: servers.broker,
        "Data": str(folder),
        "Secrets": f"{folder / FLOWER_PASSWORD}; those of the servers are in {folder / FILE_NAME}",
        "Commands": f"{program()} list --url {api_url(settings)}",
        "Doctor": f"{program()} doctor --config {folder / FILE_NAME}",
    }
