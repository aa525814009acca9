"""`scheduler events`: events of all schedules."""

from typing import Any

import click

from scheduler_app.cli.client_options import json_option, limit_option, with_client
from scheduler_app.cli.event_filters import event_filters
from scheduler_app.cli.event_table import event_table
from scheduler_app.cli.progress import counted
from scheduler_app.cli.shown_lists import show_list
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
    show_list(counted(scheduler.events(**filters), "read"), limit, as_json, event_table)
