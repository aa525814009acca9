"""`scheduler up`: runs everything on this machine, in the foreground."""

import sys
from pathlib import Path

import click

from scheduler_app.cli.errors import CannotStart


@click.command()
@click.option("--port", help="The API's port.  [API_PORT; default: 8080]")
@click.option("--flower-port", help="Flower's port.  [FLOWER_PORT; default: 5555, or another if taken]")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("data"),
    show_default=True,
    help="Where the embedded MongoDB and Redis keep their data, and generated keys and passwords are.",
)
@click.option("--config", help="A configuration file.  [default: ./config.yaml, ./config/config.yaml]")
@click.option("--log-level", help="debug, info, warning, error or critical.  [LOG_LEVEL; default: info]")
@click.option(
    "--broker",
    type=click.Choice(["redis", "rabbitmq"]),
    default="redis",
    show_default=True,
    help="The broker to start, unless one is named.",
)
@click.option("--worker-count", help="The number of workers.  [WORKER_COUNT; default: one per core]")
@click.option("--worker-max-retries", help="Of schedules that name none.  [WORKER_MAX_RETRIES; default: 10]")
@click.option(
    "--prequeuer-ticker-seconds",
    help="How often beats look for what to do.  [PREQUEUER_TICKER_INTERVAL_SECONDS; default: 1]",
)
@click.option(
    "--prequeuer-timeframe-minutes",
    help="How far ahead events are made.  [PREQUEUER_EVENT_TIMEFRAME_MINUTES; default: 10]",
)
def up(
    port: str | None,
    flower_port: str | None,
    data_dir: Path,
    config: str | None,
    log_level: str | None,
    broker: str,
    worker_count: str | None,
    worker_max_retries: str | None,
    prequeuer_ticker_seconds: str | None,
    prequeuer_timeframe_minutes: str | None,
) -> None:
    """Run everything here, in the foreground, until Ctrl-C.

    This starts MongoDB, Redis or RabbitMQ, the API, beat, the workers and Flower. To use a MongoDB
    and a broker of your own instead of the embedded ones, set MONGO_URI, and REDIS_HOST or BROKER_URL, in the
    environment or in the configuration file.
    """
    # Imported here: they import the drivers of MongoDB and Redis, for which `--help` need not wait.
    from scheduler_app.cli.up.environment import defaults
    from scheduler_app.cli.up.local_run import run
    from scheduler_app.config import InvalidSetting, load_settings

    flags = {
        "API_PORT": port,
        "FLOWER_PORT": flower_port,
        "LOG_LEVEL": log_level,
        "WORKER_COUNT": worker_count,
        "WORKER_MAX_RETRIES": worker_max_retries,
        "PREQUEUER_TICKER_INTERVAL_SECONDS": prequeuer_ticker_seconds,
        "PREQUEUER_EVENT_TIMEFRAME_MINUTES": prequeuer_timeframe_minutes,
    }
    overrides = {name: value for name, value in flags.items() if value is not None}
    try:
        # Without the file of an earlier run: its servers would be taken for named ones.
        settings = load_settings(config, overrides, run_file=None)
        settings = load_settings(config, defaults(settings) | overrides, run_file=None)
    except InvalidSetting as error:
        raise CannotStart(str(error)) from None
    sys.exit(run(settings, data_dir, broker))
