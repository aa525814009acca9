"""`scheduler create`, `update`, `get` and `list`: schedules and their fields."""

import shlex
from collections.abc import Iterable, Sequence
from functools import partial
from typing import IO, Any

import click

from scheduler_app.cli.bulk import change_existing, for_each, ids_argument
from scheduler_app.cli.click_extensions import Decorator
from scheduler_app.cli.client_options import json_option, with_client, with_client_and_json
from scheduler_app.cli.field_options import (
    as_task,
    command_action,
    field_options,
    flag,
    given_fields,
    json_value,
    read_fields,
)
from scheduler_app.cli.listing import shows_answer, shows_list
from scheduler_app.cli.options import list_filters, promise_option
from scheduler_app.cli.output import colored, table, with_progress
from scheduler_app.client import TRIGGERS, Schedule, ScheduleFields, Scheduler


def _file_option(help_text: str) -> Decorator:
    return click.option("--file", "-f", "file", type=click.File(encoding="utf-8"), help=help_text)


_data_option = click.option("--data", "json_body", metavar="JSON", help="A body of JSON, instead of --body.")


@click.command("create")
@click.argument("callback_url", required=False)
@click.option("--name", help="[default: the URL without its query, the destination's or the program's name]")
@click.option("--command", help="A command to run, instead of a URL to call; without a trigger, on demand.")
@click.option("--shell", is_flag=True, help="The command is a line for /bin/sh.")
@_data_option
@_file_option("A JSON object with the fields of a schedule, or of a task; options come before it.")
@field_options(ScheduleFields, without=("callback_url", "name", "json", "sealed", "action"))
@promise_option
@shows_answer()
def create_schedule(
    scheduler: Scheduler,
    name: str | None,
    command: str | None,
    shell: bool,
    json_body: str | None,
    file: IO[str] | None,
    promise: bool,
    **options: Any,
) -> Schedule:
    """Create a schedule that calls CALLBACK_URL or a --destination, or runs a --command.

    It does so by a rule, or once; a command without a trigger waits for `scheduler execute`.
    """
    fields = (read_fields(file) if file else {}) | given_fields(options)
    if command is not None:
        fields["action"] = command_action(command, shell=shell)
    elif shell:
        raise click.UsageError("--shell is for a --command")
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
    named = fields.pop("name", None)
    url = fields.pop("callback_url", None)
    return scheduler.schedule(url, name=name or named, promise=promise, **fields)


@click.command("update")
@ids_argument("SCHEDULE_ID")
@click.option("--command", help="The command to run.")
@_data_option
@_file_option("A JSON object with the fields to change; options come before it.")
@field_options(ScheduleFields, without=("id", "headers", "json", "sealed", "action"))
@promise_option
@json_option
@partial(with_client, beside="--callback-url")
def update_schedule(
    scheduler: Scheduler,
    ids: tuple[str, ...],
    command: str | None,
    json_body: str | None,
    file: IO[str] | None,
    promise: bool,
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
    for_each(ids, partial(change_existing, scheduler, fields=fields | {"promise": promise}), as_json)


@click.command("get")
@ids_argument("SCHEDULE_ID")
@with_client_and_json
def get_schedule(scheduler: Scheduler, ids: tuple[str, ...], as_json: bool) -> None:
    """Show schedules, field by field."""
    for_each(ids, scheduler.get, as_json)


_STATE_COLORS = {"active": "green", "paused": "yellow", "error": "red"}


def _show_schedules(found: Sequence[Schedule]) -> None:
    table(
        ["state", "last run", "id", "name", "when", "next run", "calls"],
        [
            [
                colored(one["state"], _STATE_COLORS),
                (one.get("last_run") or {}).get("outcome", "–"),
                one["id"],
                one.get("name", ""),
                _trigger_text(one),
                _next_run_text(one),
                _target_text(one),
            ]
            for one in found
        ],
        unbroken=("state", "last run", "id", "next run"),
        key="id",
    )


@click.command("list")
@list_filters
@click.option("--name", "name_contains", help="Only schedules whose name contains this, in any case.")
@shows_list(_show_schedules, watch=True)
def list_schedules(scheduler: Scheduler, **filters: Any) -> Iterable[Schedule]:
    """List schedules, newest first."""
    return with_progress(scheduler.list(**filters), "read")


def _trigger_text(schedule: Schedule) -> str:
    return str(schedule.get("description") or schedule.get("rrule") or schedule.get("run_at") or "")


def _next_run_text(schedule: Schedule) -> str:
    return str(schedule.get("next_run_at") or schedule.get("reason") or "–")


def _target_text(schedule: Schedule) -> str:
    if action := schedule.get("action"):
        words = action.get("command", ())
        return shlex.join(words) if not action.get("shell") else words[0]
    receiver = schedule.get("callback_url") or schedule.get("destination", "")
    return f"{schedule.get('method', '')} {receiver}".strip()
