"""The services that `scheduler up` runs, and the environment that they get."""

import http.client
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from scheduler_app.cli.addresses import api_host
from scheduler_app.cli.up.supervisor import Service
from scheduler_app.config import CONFIG_VARIABLE, Settings
from scheduler_app.domain.action import COMMANDS
from scheduler_app.embedded import Server

# Tiers: the processes that create work end before the workers, and the servers end last.
_SERVERS, _WORKERS, _DOORS = range(3)

# Seconds from SIGTERM to SIGKILL. With the soft shutdown of 7 they come to 14.75 at most.
_DOOR_GRACE = 3.5
#: For the requests that the API has begun. The rest of its grace is for its own end, on a busy machine.
_API_GRACEFUL_SECONDS = "2"
_WORKER_MARGIN = 2.25
_SERVER_GRACE = 2.0

# `kwargs` shows the event ids of a batch.
_COLUMNS = "name,kwargs,state,received,started,runtime,worker"

_GUNICORN_CONFIG = Path(__file__).parents[1] / "gunicorn_config.py"
_FLOWER_CONFIG = Path(__file__).with_name("flower_config.py")


def server_service(server: Server, folder: Path, environment: Mapping[str, str]) -> Service:
    """An embedded server. It logs to a file in `folder`; the console shows its errors. Raises `NoBinary`."""
    server.prepare()
    return Service(
        name=server.name,
        command=tuple(server.command()),
        environment=environment,
        tier=_SERVERS,
        grace=_SERVER_GRACE,
        ready=server.ready,
        log=folder / f"{server.name}.log",
        error_line=server.error_line,
    )


def api_service(settings: Settings, environment: Mapping[str, str]) -> Service:
    """The API under gunicorn."""
    gunicorn = (
        *_python("gunicorn"),
        "--config",
        str(_GUNICORN_CONFIG),
        "--graceful-timeout",
        _API_GRACEFUL_SECONDS,
    )
    return Service(
        name="api",
        command=(*gunicorn, "scheduler_app.api:create_app()"),
        environment=environment,
        tier=_DOORS,
        grace=_DOOR_GRACE,
        ready=lambda: _is_ok(api_host(settings), settings.api_port, "/readyz"),
    )


def beat_service(environment: Mapping[str, str]) -> Service:
    return Service("beat", _celery("beat"), environment, _DOORS, _DOOR_GRACE)


def witness_service(environment: Mapping[str, str]) -> Service:
    # Without a port for metrics: those of beat and the workers follow each other.
    own = {**environment, "METRICS_PORT": "0"}
    return Service("witness", (*_python("scheduler_app.cli"), "witness"), own, _DOORS, _DOOR_GRACE)


def with_metrics_port(settings: Settings, environment: Mapping[str, str], offset: int) -> dict[str, str]:
    """Returns `environment` with METRICS_PORT moved by `offset`: beat uses the port itself, workers the next
    ones."""
    if not settings.metrics_port:
        return dict(environment)
    return {**environment, "METRICS_PORT": str(settings.metrics_port + offset)}


def worker_service(number: int, settings: Settings, environment: Mapping[str, str]) -> Service:
    """One worker process. After SIGTERM, requests in flight may finish for WORKER_SOFT_SHUTDOWN_SECONDS."""
    return _worker(f"worker{number}", (), settings, environment)


def commands_service(settings: Settings, environment: Mapping[str, str]) -> Service:
    """The worker that runs commands, and nothing else."""
    return _worker("commands", ("-Q", COMMANDS), settings, environment)


def _worker(name: str, queues: Sequence[str], settings: Settings, environment: Mapping[str, str]) -> Service:
    options = ("--pool", "threads", "--concurrency", str(settings.worker_concurrency))
    quiet = ("--without-gossip", "--without-mingle", "--task-events")
    return Service(
        name=name,
        command=_celery("worker", *options, *quiet, *queues, "--hostname", f"{name}@%h"),
        environment=environment,
        tier=_WORKERS,
        grace=settings.worker_soft_shutdown_seconds + _WORKER_MARGIN,
    )


def flower_service(port: int, login: str, environment: Mapping[str, str]) -> Service:
    """Flower, on loopback. It can control the workers, so it asks for the `login` (`user:password`)."""
    return Service(
        name="flower",
        # Flower warns of each worker that is not up yet: the workers' own lines say more.
        command=_celery(
            "flower",
            f"--conf={_FLOWER_CONFIG}",
            "--address=127.0.0.1",
            f"--port={port}",
            "--logging=error",
            f"--tasks-columns={_COLUMNS}",
        ),
        # Not as an option: every user of the machine can see command lines.
        environment={**environment, "FLOWER_BASIC_AUTH": login},
        tier=_DOORS,
        grace=_DOOR_GRACE,
        ready=lambda: _is_ok("127.0.0.1", port, "/healthcheck"),
    )


def _celery(command: str, *arguments: str) -> tuple[str, ...]:
    return (*_python("scheduler_app.cli.up.celery_process"), command, *arguments)


def _python(module: str) -> tuple[str, ...]:
    # As a module of this interpreter: PATH may have another celery or gunicorn, or none. Without -P, Python
    # would look for every module in the user's folder first, which may have an `api.py` or a `redis.py`.
    return (sys.executable, "-P", "-m", module)


def _is_ok(host: str, port: int, path: str) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=0.5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


#: Where the defaults of `scheduler up` differ from those of the settings.
UP_DEFAULTS = {
    # A person who tries it out has the receiver on the same machine.
    "CALLBACK_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
    # Ctrl-C has to end everything within 15 s.
    "WORKER_SOFT_SHUTDOWN_SECONDS": "7",
}


def up_defaults(settings: Settings) -> dict[str, str]:
    """Returns the `UP_DEFAULTS` that nothing overrides. An empty environment variable overrides them, too."""
    # The services write to a pipe, so they cannot see that their lines end up on a terminal.
    values = UP_DEFAULTS | ({"LOG_FORMAT": "text"} if sys.stdout.isatty() else {})
    return {
        name: value for name, value in values.items() if name not in settings.given and name not in os.environ
    }


def service_environment(settings: Settings, extra: Mapping[str, str]) -> dict[str, str]:
    """Returns this process's environment, the text of every setting given (in a file or a flag, too), and
    `extra`. What reads its settings there has the same ones: it reads no file, which may have changed since,
    or is not the one that `--config` names."""
    return {
        **os.environ,
        **settings.given,
        **extra,
        CONFIG_VARIABLE: os.devnull,
        "PYTHONUNBUFFERED": "1",
    }
