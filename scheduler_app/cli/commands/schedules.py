"""`scheduler create`, `update`, `get` and `list`: schedules and their fields."""

import shlex
from collections.abc import Sequence
from typing import IO, Any

import click

from scheduler_app.cli.bulk import for_each, ids_argument
from scheduler_app.cli.client_options import json_option, limit_option, with_client, with_client_beside
from scheduler_app.cli.field_options import (
    as_task,
    command_action,
    field_options,
    flag,
    given_fields,
    header_option,
    json_value,
    name_and_value,
    read_fields,
)
from scheduler_app.cli.listing import show_list, watchable
from scheduler_app.cli.options import list_filters
from scheduler_app.cli.output import show_record, table, with_progress
from scheduler_app.client import TRIGGERS, Schedule, ScheduleFields, Scheduler


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


@click.command("get")
@ids_argument("SCHEDULE_ID")
@json_option
@with_client
def get_schedule(scheduler: Scheduler, ids: tuple[str, ...], as_json: bool) -> None:
    """Show schedules, field by field."""
    for_each(ids, scheduler.get, as_json)


_STATE_COLORS = {"active": "green", "paused": "yellow", "error": "red"}


@click.command("list")
@list_filters
@click.option("--name", "name_contains", help="Only schedules whose name contains this, in any case.")
@limit_option
@json_option
@with_client
@watchable
def list_schedules(scheduler: Scheduler, limit: int, as_json: bool, **filters: Any) -> None:
    """List schedules, newest first."""
    show_list(with_progress(scheduler.list(**filters), "read"), limit, as_json, _show_schedules)


def _show_schedules(found: Sequence[Schedule]) -> None:
    table(
        ["state", "last run", "id", "name", "when", "next run", "calls"],
        [
            [
                _colored(one["state"]),
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


def _colored(state: str) -> str:
    color = _STATE_COLORS.get(state)
    return f"[{color}]{state}[/]" if color else state


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
