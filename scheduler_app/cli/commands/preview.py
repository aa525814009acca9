"""`scheduler preview`: the occurrences of a rule, and what may surprise about them."""

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.output import say, show_json, table
from scheduler_app.client import Scheduler


@click.command()
@click.argument("rrule")
@click.option("--timezone", help="[default: UTC]")
@click.option("--after", help="The first instant that counts.  [default: now]")
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True, help="Show at most so many.")
@json_option
@with_client
def preview(
    scheduler: Scheduler, rrule: str, timezone: str | None, after: str | None, limit: int, as_json: bool
) -> None:
    """Show when RRULE would run, without saving anything."""
    found = scheduler.preview(rrule, timezone=timezone, after=after, limit=limit)
    if as_json:
        show_json(found)
        return
    table(
        ["UTC", "local"],
        [[one["run_time"], one["local"]] for one in found["occurrences"]],
        unbroken=("UTC", "local"),
    )
    for warning in found.get("warnings", []):
        say(f"Note: {warning}", err=True)
