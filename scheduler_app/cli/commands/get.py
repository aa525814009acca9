"""`scheduler get`: schedules, field by field."""

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.several import for_each, ids_argument
from scheduler_app.client import Scheduler


@click.command("get")
@ids_argument("SCHEDULE_ID")
@json_option
@with_client
def get_schedule(scheduler: Scheduler, ids: tuple[str, ...], as_json: bool) -> None:
    """Show schedules, field by field."""
    for_each(ids, scheduler.get, as_json)
