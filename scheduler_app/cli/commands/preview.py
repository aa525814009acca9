"""`scheduler preview`: the occurrences of a trigger, and what may surprise about them."""

from typing import Any

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.field_options import field_options, flag, given_fields
from scheduler_app.cli.output import say, show_json, table
from scheduler_app.client import TRIGGERS, Scheduler, TriggerFields

#: What a table of occurrences shows where it is there, and its titles.
COLUMNS = {
    "run_time": "UTC",
    "local": "local",
    "due_at": "due",
    "earliest": "earliest",
    "latest": "latest",
}


@click.command()
@click.argument("rrule", required=False)
@field_options(TriggerFields, without=("rrule",))
@click.option("--given-at", help="The instant from which delays and intervals count.  [default: now]")
@click.option("--after", help="Show what comes after this instant.  [default: that of --given-at]")
@click.option("--until", help="Show nothing that comes after this instant.  [default: no end]")
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000),
    default=10,
    show_default=True,
    help="The most occurrences to show.",
)
@click.option("--display-timezone", metavar="ZONE", help="The zone of local times.  [default: the trigger's]")
@json_option
@with_client
def preview(
    scheduler: Scheduler,
    rrule: str | None,
    given_at: str | None,
    after: str | None,
    until: str | None,
    limit: int,
    display_timezone: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Show when RRULE, or another trigger, would run, and what it became, without saving anything."""
    fields = given_fields(options)
    if (rrule is not None) + sum(name in fields for name in TRIGGERS) != 1:
        others = ", ".join(flag(name) for name in TRIGGERS if name != "rrule")
        raise click.UsageError(f"give RRULE, or one of {others}")
    found = scheduler.preview(
        rrule,
        at=given_at,
        after=after,
        until=until,
        limit=limit,
        display_timezone=display_timezone,
        **fields,
    )
    if as_json:
        show_json(found)
        return
    say(found["description"])
    for line in found.get("recurrence", "").splitlines():
        say(f"  {line}")
    first = next(iter(found["occurrences"]), {"run_time": "", "local": ""})
    shown = [name for name in COLUMNS if name in first]
    titles = [COLUMNS[name] for name in shown]
    table(titles, [[one[name] for name in shown] for one in found["occurrences"]], unbroken=tuple(titles))
    for warning in found.get("warnings", []):
        say(f"Note: {warning}", err=True)
