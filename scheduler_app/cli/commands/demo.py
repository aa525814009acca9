"""`scheduler demo`: fills an empty deployment with schedules and a week of history, to look at the pages."""

from pathlib import Path

import click

from scheduler_app.cli.errors import CannotStart


@click.command()
@click.option("--config", help="A configuration file.  [default: that of `scheduler up` in --data-dir]")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("data"),
    show_default=True,
    help="Where the `scheduler up` that is to be filled keeps its data.",
)
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
    from scheduler_app.cli.demo.filling import Api, fill
    from scheduler_app.cli.demo.waiting import running_settings
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
