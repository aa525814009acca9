"""`scheduler up`: everything on this machine, in the foreground."""

import sys
from contextlib import ExitStack
from pathlib import Path

import click

from scheduler_app.cli.addresses import api_url
from scheduler_app.cli.backing import Backing, backing, is_all_named
from scheduler_app.cli.data_directory import data_directory
from scheduler_app.cli.environment import DEFAULTS, defaults, environment
from scheduler_app.cli.failure import CannotStart
from scheduler_app.cli.greeting import greeting
from scheduler_app.cli.parts import (
    api_part,
    beat_part,
    flower_part,
    server_part,
    with_metrics_port,
    worker_part,
)
from scheduler_app.cli.preflight import check_port
from scheduler_app.cli.running import NAME, written_down
from scheduler_app.cli.supervisor import Console, Part, Supervisor
from scheduler_app.config import InvalidSetting, Settings, is_redis, load_settings
from scheduler_app.embedded import NoBinary, free_port, is_free

_FLOWER_PORT = 5555


@click.command()
@click.option("--port", help="The API's port.  [API_PORT; default: 8080]")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("data"),
    show_default=True,
    help="Where the embedded MongoDB and Redis keep their data between runs.",
)
@click.option("--config", help="A configuration file.  [default: ./config.yaml, ./config/config.yaml]")
@click.option("--log-level", help="debug, info, warning, error or critical.  [LOG_LEVEL; default: info]")
@click.option("--worker-count", help="How many workers.  [WORKER_COUNT; default: one a core]")
def up(
    port: str | None, data_dir: Path, config: str | None, log_level: str | None, worker_count: str | None
) -> None:
    """Run everything here, in the foreground, until Ctrl-C.

    MongoDB, Redis, the API, beat, the workers and Flower. MONGO_URI, and REDIS_HOST or BROKER_URL, in the
    environment or in the configuration file take the place of the embedded MongoDB and Redis.
    """
    flags = {"API_PORT": port, "LOG_LEVEL": log_level, "WORKER_COUNT": worker_count}
    overrides = {name: value for name, value in flags.items() if value is not None}
    try:
        settings = load_settings(config, overrides)
        settings = load_settings(config, defaults(settings) | overrides)
    except InvalidSetting as error:
        raise CannotStart(str(error)) from None
    sys.exit(_run(settings, data_dir))


def _run(settings: Settings, folder: Path) -> int:
    """Until it is ended; the exit status. Raises `CannotStart`."""
    check_port("API_PORT", settings.api_host, settings.api_port, "choose another with --port")
    with ExitStack() as held:
        if not is_all_named(settings):
            held.enter_context(data_directory(folder))
        behind = backing(settings, folder)
        if behind.environment:
            held.enter_context(
                written_down(folder, {**behind.environment, "MONGO_DATABASE": settings.mongo_database})
            )
        flower_port = _FLOWER_PORT if is_free(_FLOWER_PORT) else free_port()
        parts = _parts(settings, behind, folder, flower_port)
        console = Console([part.name for part in parts])
        if settings.callback_allowed_networks == DEFAULTS["CALLBACK_ALLOWED_NETWORKS"]:
            console.say(f"callbacks may reach this machine (loopback): {settings.callback_allowed_networks}")
        ready = greeting(_addresses(settings, behind, folder, flower_port), settings)
        return Supervisor(parts, console, lambda: console.block(ready)).run()


def _parts(settings: Settings, behind: Backing, folder: Path, flower_port: int) -> list[Part]:
    shared = environment(settings, behind.environment)
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
        flower_part(flower_port, shared),
    ]


def _addresses(settings: Settings, behind: Backing, folder: Path, flower_port: int) -> dict[str, str]:
    addresses = {
        "API": api_url(settings),
        "Swagger UI": f"{api_url(settings)}/swagger-ui",
        "Flower": f"http://127.0.0.1:{flower_port}",
        "MongoDB": f"{behind.mongo} (database {settings.mongo_database})",
        "Redis" if is_redis(behind.broker) else "Broker": behind.broker,
    }
    if behind.servers:
        addresses |= {"Data": str(folder.resolve()), "Doctor": f"scheduler doctor --config {folder / NAME}"}
    return addresses
