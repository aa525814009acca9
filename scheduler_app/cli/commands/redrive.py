"""`scheduler redrive`: dead letters by their ids, or all that match a filter."""

from functools import partial
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
@click.option("--dry-run", is_flag=True, help="Only count them.")
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    metavar="A_SECOND",
    help="Send as many in a second, instead of all at once: 5, or 0.5 for one in two seconds.",
)
@yes_option
@json_option
@with_client
def redrive(
    scheduler: Scheduler,
    ids: tuple[str, ...],
    dry_run: bool,
    rate: float | None,
    as_json: bool,
    yes: bool,
    **filters: Any,
) -> None:
    """Send dead letters again, by their ids or all that match.

    Dead letters are events that ended in error. A dead letter that is sent again gets the full number of
    attempts.
    """
    many = any_chosen(filters)
    if ids and (many or filters["timezone"]):
        raise click.UsageError("give ids of events, or options that choose many, not both")
    if ids and (dry_run or rate is not None):
        raise click.UsageError("--dry-run and --rate are for options that choose many, not for ids")
    if ids:
        for_each(ids, scheduler.redrive, as_json, lambda event: say(f"redriven {event['_id']}"))
    elif many:
        letters = ("dead letter", "dead letters")
        redrive_many = partial(scheduler.redrive_many, rate=rate)
        edit_many("redrive", "redriven", redrive_many, filters, as_json, yes, letters, dry_run=dry_run)
    else:
        raise click.UsageError(
            "give an event's id, or --schedule, --tag, --origin, --status-code, --error, --from, --to,"
            " or --all"
        )
