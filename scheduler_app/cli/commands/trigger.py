"""`scheduler trigger`, or `scheduler execute`: run at once."""

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.output import say_result
from scheduler_app.cli.several import for_each, ids_argument
from scheduler_app.client import Json, Scheduler


@click.command("trigger")
@ids_argument("SCHEDULE_ID")
@json_option
@with_client
def trigger_schedule(scheduler: Scheduler, ids: tuple[str, ...], as_json: bool) -> None:
    """Call back, or run the command, at once; print the event's id. `execute` is the same."""

    def trigger(schedule_id: str) -> Json:
        return {"event_id": scheduler.trigger(schedule_id)}

    for_each(ids, trigger, as_json, lambda made: say_result(made["event_id"]))
