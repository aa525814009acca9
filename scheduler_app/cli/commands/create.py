"""`scheduler create`: a schedule that calls back, or runs a command, by a rule, once or on demand."""

from typing import IO, Any

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.field_options import field_options, flag, given_fields
from scheduler_app.cli.json_values import header_option, json_value, name_and_value
from scheduler_app.cli.output import show_record
from scheduler_app.cli.schedule_files import read_fields
from scheduler_app.cli.task_fields import as_task, command_action
from scheduler_app.client import TRIGGERS, ScheduleFields, Scheduler


@click.command("create")
@click.argument("callback_url", required=False)
@click.option("--name", help="[default: the URL without its query, the destination's or the program's name]")
@click.option("--command", help="A command to run, instead of a URL to call; without a trigger, on demand.")
@click.option("--shell", is_flag=True, help="The command is a line for /bin/sh.")
@header_option
@click.option("--data", "json_body", metavar="JSON", help="A body of JSON, instead of --body.")
@click.option(
    "--file",
    "-f",
    "file",
    type=click.File(encoding="utf-8"),
    help="A JSON object with the fields of a schedule, or of a task; options come before it.",
)
@field_options(ScheduleFields, without=("callback_url", "name", "headers", "json", "sealed", "action"))
@json_option
@with_client
def create_schedule(
    scheduler: Scheduler,
    callback_url: str | None,
    name: str | None,
    command: str | None,
    shell: bool,
    header: tuple[str, ...],
    json_body: str | None,
    file: IO[str] | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Create a schedule that calls CALLBACK_URL or a --destination, or runs a --command.

    It does so by a rule, or once; a command without a trigger waits for `scheduler execute`.
    """
    fields = (read_fields(file) if file else {}) | given_fields(options)
    if callback_url is not None:
        fields["callback_url"] = callback_url
    if command is not None:
        fields["action"] = command_action(command, shell=shell)
    elif shell:
        raise click.UsageError("--shell is for a --command")
    if header:
        fields["headers"] = dict(map(name_and_value, header))
    if json_body is not None:
        fields["json"] = json_value(json_body, "--data")
    if sum(fields.get(each) is not None for each in ("callback_url", "destination", "action")) != 1:
        raise click.UsageError(
            "give one of CALLBACK_URL, --destination and --command; --url is the API's address"
        )
    triggers = sum(trigger in fields for trigger in TRIGGERS)
    if not triggers and "action" in fields:
        fields = as_task(fields)
    elif triggers != 1:
        raise click.UsageError(f"give exactly one of {', '.join(map(flag, TRIGGERS))}")
    name = name or fields.pop("name", None)
    fields.pop("name", None)
    show_record(scheduler.schedule(fields.pop("callback_url", None), name=name, **fields), as_json)
