"""`scheduler trigger`: call back at once."""

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.output import say, show_json
from scheduler_app.client import Scheduler


@click.command("trigger")
@click.argument("schedule_id")
@json_option
@with_client
def trigger_schedule(scheduler: Scheduler, schedule_id: str, as_json: bool) -> None:
    """Call back at once; print the event's id."""
    event_id = scheduler.trigger(schedule_id)
    if as_json:
        show_json({"event_id": event_id})
    else:
        say(event_id)
