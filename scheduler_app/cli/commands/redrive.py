"""`scheduler redrive`: one dead letter, or all that match a filter."""

from typing import Any

import click

from scheduler_app.cli.bulk_edit import edit_many
from scheduler_app.cli.client_options import as_json, remote
from scheduler_app.cli.output import say, show_json
from scheduler_app.client import Scheduler


@click.command()
@click.argument("event_id", required=False)
@click.option("--schedule", "schedule_id", help="All of this schedule.")
@click.option("--tag", help="All of schedules with this tag.")
@click.option("--origin", help="All that were sent there: https://example.com.")
@click.option("--status-code", help="All whose last attempt was answered so: 503, 5xx, or both: 503,429.")
@click.option("--error", help="All whose last error holds this text.")
@click.option("--from", "after", help="All whose run time is this instant or a later one.")
@click.option("--to", "before", help="All whose run time is before this instant.")
@click.option("--timezone", help="The zone of --from and --to where they have no offset.")
@click.option("--all", "all_", is_flag=True, help="Every dead letter there is.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@as_json
@remote
def redrive(scheduler: Scheduler, event_id: str | None, as_json: bool, yes: bool, **which: Any) -> None:
    """Send a dead letter again, or all that match.

    Dead letters are events that ended in error. Their attempts are counted anew.
    """
    many = any(value for name, value in which.items() if name != "timezone")
    if event_id is not None and (many or which["timezone"]):
        raise click.UsageError("give an event's id, or what chooses many, not both")
    if event_id is not None:
        event = scheduler.redrive(event_id)
        if as_json:
            show_json(event)
        else:
            say(f"redriven {event['_id']}")
    elif many:
        letters = ("dead letter", "dead letters")
        edit_many("redrive", "redriven", scheduler.redrive_many, which, as_json, yes, letters)
    else:
        raise click.UsageError(
            "give an event's id, or --schedule, --tag, --origin, --status-code, --error, --from, --to,"
            " or --all"
        )
