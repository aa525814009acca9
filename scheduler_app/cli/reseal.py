"""`scheduler reseal`: stored secrets are encrypted anew with the newest key."""

import time

import click

from scheduler_app.cli.failure import CannotStart
from scheduler_app.config import InvalidSetting, Settings, load_settings
from scheduler_app.domain.errors import InvalidField

PROGRESS_SECONDS = 1.0


@click.command()
@click.option("--config", help="A configuration file.  [default: ./config.yaml, ./config/config.yaml]")
def reseal(config: str | None) -> None:
    """Encrypt all stored secrets with the newest SECRETS_KEY.

    After SECRETS_KEY was set for the first time, or has a new key in front: run this with the environment of
    the other processes, once all of them have the new key, and then take the old key away. Secrets of deleted
    schedules are removed. It may run beside everything else, and be ended and begun again. Ends with 1 when
    some secrets could not be read.
    """
    try:
        settings = load_settings(config)
        if not settings.secrets_key:
            raise CannotStart(
                "SECRETS_KEY is not set: set it for every process, a Fernet key, and run this again"
                " (openssl rand -base64 32 | tr '+/' '-_' makes one)"
            )
        left = _reseal(settings)
    except (InvalidSetting, InvalidField) as error:
        raise CannotStart(str(error)) from None
    if left:
        raise click.exceptions.Exit(1)


def _reseal(settings: Settings) -> int:
    """Returns how many schedules could not be read."""
    # Only here: other commands need not wait for it.
    from scheduler_app.store import STORE_FAULTS, Store
    from scheduler_app.store.schedules.resealing import Resealed, Resealing

    store = Store(settings)
    try:
        resealing = Resealing(store.mongo, store.secret_box)
        total, told_at, done, left = resealing.count(), time.monotonic(), Resealed(), 0
        for done in resealing.run():
            for schedule_id, reason in done.left:
                left += 1
                click.echo(f"{schedule_id}: {reason}", err=True)
            if time.monotonic() - told_at > PROGRESS_SECONDS:
                told_at = time.monotonic()
                click.echo(f"{done.seen} of {max(total, done.seen)} schedules", err=True)
    except STORE_FAULTS as error:
        raise click.ClickException(
            f"MongoDB does not answer ({str(error)[:300]}); run it again: what is done stays done"
        ) from None
    finally:
        store.close()
    click.echo(
        f"{done.seen} schedules: {done.sealed} sealed anew, {done.wiped} deleted ones wiped,"
        f" {done.seen - done.sealed - done.wiped - left} needed nothing, {left} could not be read"
    )
    return left
