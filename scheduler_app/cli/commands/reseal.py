"""`scheduler reseal`: encrypts all stored secrets with the newest key."""

import time

import click

from scheduler_app.cli.errors import CannotStart
from scheduler_app.config import InvalidSetting, Settings, load_settings
from scheduler_app.domain.errors import InvalidField

PROGRESS_SECONDS = 1.0


@click.command()
@click.option("--config", help="A configuration file.  [default: ./config.yaml, ./config/config.yaml]")
def reseal(config: str | None) -> None:
    """Encrypt all stored secrets with the newest SECRETS_KEY.

    Needed after SECRETS_KEY was set for the first time, or got a new key in front. Restart all processes with
    the new SECRETS_KEY, run this with the same one, and then remove the old key. Secrets of deleted schedules
    are removed. The command may run beside everything else, and may be stopped and run again. The exit status
    is 1 when some secrets could not be read.
    """
    try:
        settings = load_settings(config)
        if not settings.secrets_key:
            raise CannotStart(
                "SECRETS_KEY is not set: set it to a Fernet key for every process, and run this again"
                " (openssl rand -base64 32 | tr '+/' '-_' makes one)"
            )
        left = _reseal(settings)
    except (InvalidSetting, InvalidField) as error:
        raise CannotStart(str(error)) from None
    if left:
        raise click.exceptions.Exit(1)


def _reseal(settings: Settings) -> int:
    """Returns the number of schedules and destinations whose secrets could not be read."""
    # Imported here, so that other commands do not wait for it.
    from scheduler_app.store import STORE_FAULTS, Store
    from scheduler_app.store.schedules.resealing import Resealed, Resealing

    store = Store(settings)
    try:
        resealing = Resealing(store.mongo, store.secret_box)
        total, reported_at, done, left = resealing.count(), time.monotonic(), Resealed(), 0
        for done in resealing.run():
            for schedule_id, reason in done.left:
                left += 1
                click.echo(f"{schedule_id}: {reason}", err=True)
            if time.monotonic() - reported_at > PROGRESS_SECONDS:
                reported_at = time.monotonic()
                click.echo(f"{done.seen} of {max(total, done.seen)} schedules", err=True)
        destinations, unreadable = store.destinations.reseal()
        for destination_id, reason in unreadable.items():
            click.echo(f"destination {destination_id}: {reason}", err=True)
    except STORE_FAULTS as error:
        raise click.ClickException(
            f"MongoDB does not answer ({str(error)[:300]}); run it again: what was done so far is kept"
        ) from None
    finally:
        store.close()
    click.echo(
        f"{done.seen} schedules: {done.sealed} encrypted with the newest key, {done.wiped} deleted and wiped,"
        f" {done.seen - done.sealed - done.wiped - left} needed no change, {left} could not be read"
    )
    click.echo(
        f"{destinations} destinations encrypted with the newest key, {len(unreadable)} could not be read"
    )
    return left + len(unreadable)
