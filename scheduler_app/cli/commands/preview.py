"""`scheduler preview`: the occurrences of a trigger, and what may surprise about them."""

from typing import Any

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.field_options import field_options, flag, given_fields
from scheduler_app.cli.output import say, show_json, table
from scheduler_app.client import TRIGGERS, Scheduler, TriggerFields


@click.command()
@click.argument("rrule", required=False)
@field_options(TriggerFields, without=("rrule",))
@click.option("--after", help="The first instant that counts.  [default: now]")
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True, help="Show at most so many.")
@json_option
@with_client
def preview(
    scheduler: Scheduler, rrule: str | None, after: str | None, limit: int, as_json: bool, **options: Any
) -> None:
    """Show when RRULE, or another trigger, would run, without saving anything."""
    fields = given_fields(options)
    if (rrule is not None) + sum(name in fields for name in TRIGGERS) != 1:
        others = ", ".join(flag(name) for name in TRIGGERS if name != "rrule")
        raise click.UsageError(f"give RRULE, or one of {others}")
    found = scheduler.preview(rrule, after=after, limit=limit, **fields)
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
