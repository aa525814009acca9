"""`scheduler backfill`: past occurrences of a schedule are made up for."""

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.command_group import CommandGroup
from scheduler_app.cli.output import say, show_json
from scheduler_app.client import Backfill, Scheduler


@click.group(cls=CommandGroup)
def backfill() -> None:
    """Past occurrences of a schedule, made up for."""


@backfill.command("start")
@click.argument("schedule_id")
@click.option("--from", "after", required=True, help="The first instant that is looked at.")
@click.option("--to", "until", help="The last one.  [default: now]")
@click.option("--rate", type=float, help="Callbacks a second at most.  [default: 10]")
@click.option("--overlap", type=click.Choice(["allow", "queue"]), help="Beside each other, or one by one.")
@click.option("--all", "every_one", is_flag=True, help="Also those that were made already.")
@click.option("--dry-run", is_flag=True, help="Only tell what it would do.")
@json_option
@with_client
def start_backfill(
    scheduler: Scheduler,
    schedule_id: str,
    after: str,
    until: str | None,
    rate: float | None,
    overlap: str | None,
    every_one: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make events for the past occurrences of SCHEDULE_ID that are missing."""
    found = scheduler.backfill(
        schedule_id,
        after=after,
        until=until,
        rate_per_second=rate,
        overlap=overlap,
        only_missing=False if every_one else None,
        dry_run=dry_run,
    )
    _show(found, as_json)


@backfill.command("show")
@click.argument("schedule_id")
@json_option
@with_client
def show_backfill(scheduler: Scheduler, schedule_id: str, as_json: bool) -> None:
    """Show how far the newest backfill of SCHEDULE_ID has come."""
    _show(scheduler.get_backfill(schedule_id), as_json)


@backfill.command("cancel")
@click.argument("schedule_id")
@json_option
@with_client
def cancel_backfill(scheduler: Scheduler, schedule_id: str, as_json: bool) -> None:
    """Cancel the backfill of SCHEDULE_ID; what waits of it is withdrawn."""
    _show(scheduler.cancel_backfill(schedule_id), as_json)


def _show(found: Backfill, as_json: bool) -> None:
    if as_json:
        show_json(found)
        return
    say(f"{found.state}{', only tried' if found.dry_run else ''}: {found['from']} to {found['to']}")
    say(f"  {found.occurrences} occurrences, {found.left_out} of them left out, {found.made} made")
    say(f"  {found.waiting} wait, {found.completed} completed, {found.failed} failed")
    if found.seconds_left is not None:
        say(f"  the rest takes {found.seconds_left} s at {found.rate_per_second:g} a second")
    if found.reason:
        say(f"  {found.reason}")
