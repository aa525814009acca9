"""`scheduler reseal`: encrypts all stored secrets with the newest key."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from scheduler_app.cli.errors import CannotStart
from scheduler_app.config import InvalidSetting, Settings, load_settings
from scheduler_app.domain.errors import InvalidField

if TYPE_CHECKING:
    from scheduler_app.store.schedules.resealing import Resealed

PROGRESS_SECONDS = 1.0


@click.command()
@click.option(
    "--config",
    help="A configuration file.  [default: that of `scheduler up` in ./data, ./config.yaml,"
    " ./config/config.yaml]",
)
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
    """Returns the number of schedules, messages and destinations whose secrets could not be read."""
    # Imported here, so that other commands do not wait for it.
    from scheduler_app.store import STORE_FAULTS, Store
    from scheduler_app.store.events.message_resealing import MessageResealing
    from scheduler_app.store.schedules.resealing import Resealing

    store = Store(settings)
    try:
        schedules = Resealing(store.mongo, store.secret_box)
        left = _told("schedules", schedules.run(), schedules.count())
        left += _told("messages", MessageResealing(store.mongo, store.secret_box).run())
        destinations, unreadable = store.destinations.reseal()
        for destination_id, reason in unreadable.items():
            click.echo(f"destination {destination_id}: {reason}", err=True)
        click.echo(
            f"{destinations} destinations encrypted with the newest key, {len(unreadable)} could not be read"
        )
        return left + len(unreadable)
    except STORE_FAULTS as error:
        raise click.ClickException(
            f"MongoDB does not answer ({str(error)[:300]}); run it again: what was done so far is kept"
        ) from None
    finally:
        store.close()


def _told(things: str, pages: "Iterator[Resealed]", total: int | None = None) -> int:
    """Prints the progress of a run, and its result; returns the number of those that could not be read."""
    reported_at, left = time.monotonic(), 0
    seen = sealed = wiped = 0
    for done in pages:
        seen, sealed, wiped = done.seen, done.sealed, done.wiped
        for each, reason in done.left:
            left += 1
            click.echo(f"{each}: {reason}", err=True)
        if time.monotonic() - reported_at > PROGRESS_SECONDS:
            reported_at = time.monotonic()
            of_all = f" of {max(total, seen)}" if total is not None else ""
            click.echo(f"{seen}{of_all} {things}", err=True)
    click.echo(
        f"{seen} {things}: {sealed} encrypted with the newest key, {wiped} deleted and wiped,"
        f" {seen - sealed - wiped - left} needed no change, {left} could not be read"
    )
    return left
