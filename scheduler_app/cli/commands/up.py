"""`scheduler up` and `demo`: run everything on this machine, in the foreground, and fill it with schedules
and a week of history.
"""

import sys
from pathlib import Path

import click

from scheduler_app.cli.click_extensions import CannotStart, Decorator


def _data_dir_option(help_text: str) -> Decorator:
    kind = click.Path(path_type=Path, file_okay=False)
    return click.option("--data-dir", type=kind, default=Path("data"), show_default=True, help=help_text)


def _setting(option: str, name: str, meaning: str, default: str) -> Decorator:
    """An option that gives a setting, whatever the environment and the configuration file say."""
    return click.option(option, name, help=f"{meaning}  [{name}; default: {default}]")


_TICKER = ("--prequeuer-ticker-seconds", "PREQUEUER_TICKER_INTERVAL_SECONDS")
_TIMEFRAME = ("--prequeuer-timeframe-minutes", "PREQUEUER_EVENT_TIMEFRAME_MINUTES")


@click.command()
@_setting("--port", "API_PORT", "The API's port.", "8080")
@_setting("--flower-port", "FLOWER_PORT", "Flower's port.", "5555, or another if taken")
@_data_dir_option(
    "Where the embedded MongoDB and Redis keep their data, and generated keys and passwords are."
)
@click.option("--config", help="A configuration file.  [default: ./config.yaml, ./config/config.yaml]")
@_setting("--log-level", "LOG_LEVEL", "debug, info, warning, error or critical.", "info")
@click.option(
    "--broker",
    type=click.Choice(["redis", "rabbitmq"]),
    default="redis",
    show_default=True,
    help="The broker to start, unless one is named.",
)
@_setting("--worker-count", "WORKER_COUNT", "The number of workers.", "one per core")
@_setting("--worker-max-retries", "WORKER_MAX_RETRIES", "Of schedules that name none.", "10")
@_setting(*_TICKER, "How often beats look for what to do.", "1")
@_setting(*_TIMEFRAME, "How far ahead events are made.", "10")
def up(data_dir: Path, config: str | None, broker: str, **flags: str | None) -> None:
    """Run everything here, in the foreground, until Ctrl-C.

    This starts MongoDB, Redis or RabbitMQ, the API, beat, the workers and Flower. To use a MongoDB
    and a broker of your own instead of the embedded ones, set MONGO_URI, and REDIS_HOST or BROKER_URL, in the
    environment or in the configuration file.
    """
    # Imported here: they import the drivers of MongoDB and Redis, for which `--help` need not wait.
    from scheduler_app.cli.up.local_run import run
    from scheduler_app.cli.up.services import up_defaults
    from scheduler_app.config import InvalidSetting, load_settings

    overrides = {name: value for name, value in flags.items() if value is not None}
    try:
        # Without the file of an earlier run: its servers would be taken for named ones.
        settings = load_settings(config, overrides, run_file=None)
        settings = load_settings(config, up_defaults(settings) | overrides, run_file=None)
    except InvalidSetting as error:
        raise CannotStart(str(error)) from None
    sys.exit(run(settings, data_dir, broker))


@click.command()
@click.option("--config", help="A configuration file.  [default: that of `scheduler up` in --data-dir]")
@_data_dir_option("Where the `scheduler up` that is to be filled keeps its data.")
@click.option(
    "--days", type=click.IntRange(1, 30), default=7, show_default=True, help="How much history to make up."
)
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed makes the same history.")
@click.option("--wait", type=click.IntRange(0, 600), default=0, help="Seconds to wait for the API to answer.")
def demo(config: str | None, data_dir: Path, days: int, seed: int, wait: int) -> None:
    """Fill an empty deployment with schedules and a week of made-up history.

    The schedules call /echo of the deployment itself. Some fail, so that the pages have something to show.
    """
    # Imported here: they import the drivers of MongoDB, for which `--help` need not wait.
    import requests

    from scheduler_app.cli.addresses import api_url
    from scheduler_app.cli.demo import Api, fill, running_settings
    from scheduler_app.config import InvalidSetting
    from scheduler_app.domain.errors import InvalidField
    from scheduler_app.store import STORE_FAULTS, Store

    try:
        settings = running_settings(config, data_dir, wait)
        store = Store(settings)
    except (InvalidSetting, InvalidField) as error:
        raise CannotStart(str(error)) from None
    session = requests.Session()
    session.trust_env = False  # a proxy of the environment is for other hosts
    if settings.api_keys:
        session.headers["X-API-Key"] = settings.keys[0].key
    try:
        fill(Api(api_url(settings), session), store, days=days, seed=seed, say=click.echo)
    except requests.RequestException as error:
        raise click.ClickException(
            f"the API at {api_url(settings)} does not answer ({type(error).__name__}): start `scheduler up`"
        ) from None
    except STORE_FAULTS as error:
        raise click.ClickException(f"MongoDB does not answer: {type(error).__name__}") from None
    finally:
        session.close()
        store.close()
