"""`scheduler update`: change fields of schedules."""

from typing import IO, Any

import click

from scheduler_app.cli.client_options import json_option, with_client_beside
from scheduler_app.cli.field_options import field_options, given_fields
from scheduler_app.cli.json_values import json_value
from scheduler_app.cli.schedule_files import read_fields
from scheduler_app.cli.several import for_each, ids_argument
from scheduler_app.cli.task_fields import command_action
from scheduler_app.client import ScheduleFields, Scheduler


@click.command("update")
@ids_argument("SCHEDULE_ID")
@click.option("--command", help="The command to run.")
@click.option("--data", "json_body", metavar="JSON", help="A body of JSON, instead of --body.")
@click.option(
    "--file",
    "-f",
    "file",
    type=click.File(encoding="utf-8"),
    help="A JSON object with the fields to change; options come before it.",
)
@field_options(ScheduleFields, without=("id", "headers", "json", "sealed", "action"))
@json_option
@with_client_beside("--callback-url")
def update_schedule(
    scheduler: Scheduler,
    ids: tuple[str, ...],
    command: str | None,
    json_body: str | None,
    file: IO[str] | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Change the fields that are given; the others stay.

    A new trigger, time zone or state begins at once: what the old one planned after this moment is cancelled.
    """
    fields = (read_fields(file) if file else {}) | given_fields(options)
    fields.pop("id", None)
    if command is not None:
        fields["action"] = command_action(command)
    if json_body is not None:
        fields["json"] = json_value(json_body, "--data")
    if not fields:
        raise click.UsageError("give a field to change, such as --name")

    def update(schedule_id: str) -> Any:
        # Not a PUT alone, which creates what is not there.
        scheduler.get(schedule_id)
        return scheduler.update(schedule_id, **fields)

    for_each(ids, update, as_json)
