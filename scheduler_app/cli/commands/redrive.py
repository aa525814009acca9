"""`scheduler redrive`: dead letters by their ids, or all that match a filter."""

from typing import Any

import click

from scheduler_app.cli.bulk_edit import edit_many, yes_option
from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.event_filters import any_chosen, event_filters
from scheduler_app.cli.output import say
from scheduler_app.cli.several import for_each, ids_argument
from scheduler_app.client import Scheduler


@click.command()
@ids_argument("EVENT_ID", required=False)
@event_filters
@click.option("--all", "all_", is_flag=True, help="Every dead letter there is.")
@yes_option
@json_option
@with_client
def redrive(scheduler: Scheduler, ids: tuple[str, ...], as_json: bool, yes: bool, **filters: Any) -> None:
    """Send dead letters again, by their ids or all that match.

    Dead letters are events that ended in error. A dead letter that is sent again gets the full number of
    attempts.
    """
    many = any_chosen(filters)
    if ids and (many or filters["timezone"]):
        raise click.UsageError("give ids of events, or options that choose many, not both")
    if ids:
        for_each(ids, scheduler.redrive, as_json, lambda event: say(f"redriven {event['_id']}"))
    elif many:
        letters = ("dead letter", "dead letters")
        edit_many("redrive", "redriven", scheduler.redrive_many, filters, as_json, yes, letters)
    else:
        raise click.UsageError(
            "give an event's id, or --schedule, --tag, --origin, --status-code, --error, --from, --to,"
            " or --all"
        )
