"""`scheduler get`: one schedule."""

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.output import show_record
from scheduler_app.client import Scheduler


@click.command("get")
@click.argument("schedule_id")
@json_option
@with_client
def get_schedule(scheduler: Scheduler, schedule_id: str, as_json: bool) -> None:
    """Show a schedule."""
    show_record(scheduler.get(schedule_id), as_json)
