"""`scheduler preview`: when will it really run?"""

import click

from scheduler_app.cli.remote import as_json, remote
from scheduler_app.cli.show import say, show_json, table
from scheduler_app.client import Scheduler


@click.command()
@click.argument("rrule")
@click.option("--timezone", help="[default: UTC]")
@click.option("--after", help="From this instant on.  [default: now]")
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True, help="How many at most.")
@as_json
@remote
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
        whole=("UTC", "local"),
    )
    for warning in found.get("warnings", []):
        say(f"Note: {warning}", err=True)
