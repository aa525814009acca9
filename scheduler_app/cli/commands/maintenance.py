"""`scheduler doctor` and `reseal`: checks everything that callbacks need, and names the remedies; encrypts
all stored secrets with the newest key.
"""

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from scheduler_app.cli.click_extensions import CannotStart
from scheduler_app.cli.output import show_json, table
from scheduler_app.config import InvalidSetting, Settings, load_settings
from scheduler_app.domain.errors import InvalidField
from scheduler_app.health import Check, Status

if TYPE_CHECKING:
    from scheduler_app.store.resealing import ResealProgress

_STATUS_MARKS = {
    Status.OK: "[green]✓[/]",
    Status.NOTE: "[yellow]![/]",
    Status.UNKNOWN: "[dim]?[/]",
    Status.WRONG: "[bold red]✗[/]",
}


#: The checks of what people or receivers stop; no other note means that something is not sent.
STOPPING = ("kill switches", "destinations")


_config_option = click.option(
    "--config",
    help="A configuration file.  [default: that of `scheduler up` in ./data, ./config.yaml,"
    " ./config/config.yaml]",
)


@click.command()
@_config_option
@click.option("--json", "as_json", is_flag=True, help="The checks as JSON, for programs.")
@click.option(
    "--flower-url",
    envvar="FLOWER_URL",
    help="Flower's address.  [FLOWER_URL; default: FLOWER_PORT of this machine]",
)
def doctor(config: str | None, as_json: bool, flower_url: str | None) -> None:
    """Check everything that callbacks need, and say what to do.

    This looks at the MongoDB, broker and Flower that the settings name, at the beats and workers that use
    them, and at clocks and keys. The exit status is 1 when something is wrong.
    """
    try:
        settings = load_settings(config)
        # Imported here: it imports Celery, for which the other commands need not wait.
        from scheduler_app.cli.diagnosis import diagnose

        flower = flower_url or f"http://127.0.0.1:{settings.flower_port}"
        checks = diagnose(settings, flower.rstrip("/"))
    except (InvalidSetting, InvalidField) as error:
        raise CannotStart(str(error)) from None
    wrong = [check for check in checks if check.status is Status.WRONG]
    if as_json:
        show_json({"ok": not wrong, "checks": [_check_as_json(check) for check in checks]})
    else:
        table([], [_check_row(check) for check in checks])
        click.echo(_conclusion(checks, wrong))
    sys.exit(1 if wrong else 0)


def _conclusion(checks: list[Check], wrong: list[Check]) -> str:
    if wrong:
        return f"Wrong: {', '.join(check.name for check in wrong)}."
    stopping = [check.name for check in checks if check.name in STOPPING and check.status is not Status.OK]
    return f"Everything is there, but see: {', '.join(stopping)}." if stopping else "Everything is there."


def _check_row(check: Check) -> list[str]:
    remedy = f"\n→ {check.remedy}" if check.remedy else ""
    return [_STATUS_MARKS[check.status], check.name, check.found + remedy]


def _check_as_json(check: Check) -> dict[str, object]:
    shown = {"name": check.name, "status": check.status.value, "found": check.found}
    return {**shown, "remedy": check.remedy or None, **check.facts}


PROGRESS_SECONDS = 1.0


@click.command()
@_config_option
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
    """Returns the number of schedules, messages, destinations and notifications whose secrets could not be
    read."""
    # Imported here, so that other commands do not wait for it.
    from scheduler_app.store import STORE_FAULTS, Store
    from scheduler_app.store.resealing import MessageResealing, ScheduleResealing

    store = Store(settings)
    try:
        schedules = ScheduleResealing(store.mongo, store.secret_box)
        unread = _report_progress("schedules", schedules.run(), schedules.count())
        unread += _report_progress("messages", MessageResealing(store.mongo, store.secret_box).run())
        destinations, unreadable = store.destinations.reseal()
        for destination_id, reason in unreadable.items():
            click.echo(f"destination {destination_id}: {reason}", err=True)
        click.echo(
            f"{destinations} destinations encrypted with the newest key, {len(unreadable)} could not be read"
        )
        notifications, corrupt = store.notification_rules.reseal()
        for rule_id, reason in corrupt.items():
            click.echo(f"notification {rule_id}: {reason}", err=True)
        click.echo(
            f"{notifications} notifications encrypted with the newest key, {len(corrupt)} could not be read"
        )
        return unread + len(unreadable) + len(corrupt)
    except STORE_FAULTS as error:
        raise click.ClickException(
            f"MongoDB does not answer ({str(error)[:300]}); run it again: what was done so far is kept"
        ) from None
    finally:
        store.close()


def _report_progress(things: str, pages: "Iterator[ResealProgress]", total: int | None = None) -> int:
    """Prints the progress of a run, and its result; returns the number of those that could not be read."""
    reported_at, unreadable = time.monotonic(), 0
    seen = sealed = wiped = 0
    for done in pages:
        seen, sealed, wiped = done.seen, done.sealed, done.wiped
        for each, reason in done.unreadable:
            unreadable += 1
            click.echo(f"{each}: {reason}", err=True)
        if time.monotonic() - reported_at > PROGRESS_SECONDS:
            reported_at = time.monotonic()
            of_all = f" of {max(total, seen)}" if total is not None else ""
            click.echo(f"{seen}{of_all} {things}", err=True)
    click.echo(
        f"{seen} {things}: {sealed} encrypted with the newest key, {wiped} deleted and wiped,"
        f" {seen - sealed - wiped - unreadable} needed no change, {unreadable} could not be read"
    )
    return unreadable
