"""`scheduler events`: events of all schedules."""

from itertools import islice
from typing import Any

import click

from scheduler_app.cli.client_options import json_option, limit_option, with_client
from scheduler_app.cli.event_filters import event_filters
from scheduler_app.cli.event_table import event_table
from scheduler_app.cli.output import show_json
from scheduler_app.cli.progress import counted
from scheduler_app.cli.watching import watchable
from scheduler_app.client import Scheduler


@click.command("events")
@event_filters
@click.option("--state", help="Only those in this state, or in one of several separated by commas.")
@limit_option
@json_option
@with_client
@watchable
def list_events(scheduler: Scheduler, limit: int, as_json: bool, **filters: Any) -> None:
    """List events, newest run time first, those to come included."""
    found = list(islice(counted(scheduler.events(**filters), "read"), limit + 1))
    shown = found[:limit]
    if as_json:
        show_json(shown)
        return
    event_table(shown)
    if len(found) > limit:
        click.echo(f"There are more: --limit {limit * 2}", err=True)
