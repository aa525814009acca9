"""`scheduler redrive`: one dead letter, or all that match a filter."""

from typing import Any

import click

from scheduler_app.cli.bulk_edit import edit_many, yes_option
from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.output import say, show_json
from scheduler_app.client import Scheduler


@click.command()
@click.argument("event_id", required=False)
@click.option("--schedule", "schedule_id", help="Only dead letters of this schedule.")
@click.option("--tag", help="Only those of schedules with this tag.")
@click.option("--origin", help="Only those sent to this origin: https://example.com.")
@click.option(
    "--status-code",
    help="Only those whose last answer was one of these: 503, 5xx, or 503,429.",
)
@click.option("--error", help="Only those whose last error contains this text.")
@click.option("--from", "after", help="Only those with a run time at or after this instant.")
@click.option("--to", "before", help="Only those with a run time before this instant.")
@click.option("--timezone", help="The time zone of a --from or --to without an offset.")
@click.option("--all", "all_", is_flag=True, help="Every dead letter there is.")
@yes_option
@json_option
@with_client
def redrive(scheduler: Scheduler, event_id: str | None, as_json: bool, yes: bool, **filters: Any) -> None:
    """Send a dead letter again, or all that match.

    Dead letters are events that ended in error. A dead letter that is sent again gets the full number of
    attempts.
    """
    many = any(value for name, value in filters.items() if name != "timezone")
    if event_id is not None and (many or filters["timezone"]):
        raise click.UsageError("give an event's id, or options that choose many, not both")
    if event_id is not None:
        event = scheduler.redrive(event_id)
        if as_json:
            show_json(event)
        else:
            say(f"redriven {event['_id']}")
    elif many:
        letters = ("dead letter", "dead letters")
        edit_many("redrive", "redriven", scheduler.redrive_many, filters, as_json, yes, letters)
    else:
        raise click.UsageError(
            "give an event's id, or --schedule, --tag, --origin, --status-code, --error, --from, --to,"
            " or --all"
        )
