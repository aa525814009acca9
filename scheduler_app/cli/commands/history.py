"""`scheduler history`: the events of a schedule and their outcomes."""

from itertools import islice

import click

from scheduler_app.cli.client_options import json_option, limit_option, with_client
from scheduler_app.cli.event_table import event_table
from scheduler_app.cli.output import show_json
from scheduler_app.cli.progress import counted
from scheduler_app.cli.watching import watchable
from scheduler_app.client import Scheduler


@click.command()
@click.argument("schedule_id")
@click.option("--include-cancelled", is_flag=True, help="Show cancelled events, too.")
@limit_option
@json_option
@with_client
@watchable
def history(
    scheduler: Scheduler, schedule_id: str, include_cancelled: bool, limit: int, as_json: bool
) -> None:
    """Show a schedule's events, newest first, also after it was deleted."""
    found = scheduler.history(schedule_id, include_cancelled=include_cancelled)
    events = list(islice(counted(found, "read"), limit))
    if as_json:
        show_json(events)
    else:
        event_table(events)
