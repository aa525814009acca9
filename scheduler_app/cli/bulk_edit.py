"""Edits of one schedule or event, or of all that match a filter: counted and confirmed first."""

from collections.abc import Callable
from typing import TypeGuard

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.output import say, show_json
from scheduler_app.cli.schedule_filters import schedule_filters
from scheduler_app.client import EditResult, Json

yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def schedule_edit(command: Callable[..., None]) -> Callable[..., None]:
    """Adds an edit's arguments: `scheduler`, `schedule_id` or None, `as_json`, `yes`, and the filters."""
    for option in (
        with_client,
        json_option,
        yes_option,
        click.option("--all", "all_", is_flag=True, help="Every schedule there is."),
        schedule_filters,
        click.argument("schedule_id", required=False),
    ):
        command = option(command)
    return command


def is_single(schedule_id: str | None, filters: Json) -> TypeGuard[str]:
    """Whether the edit is of one schedule. Raises click.UsageError unless an id or filters are given."""
    many = any(filters.values())
    if schedule_id is not None and many:
        raise click.UsageError("give an id, or options that choose many, not both")
    if schedule_id is None and not many:
        raise click.UsageError("give an id, or --tag, --name, --state, --last-outcome, or --all")
    return schedule_id is not None


def edit_many(
    verb: str,
    done: str,
    edit: Callable[..., EditResult],
    filters: Json,
    as_json: bool,
    yes: bool,
    noun: tuple[str, str] = ("schedule", "schedules"),
) -> None:
    """Counts by a dry run, asks for confirmation, and edits.

    `done` is the name of the count in the API's answer; `noun` is what is counted, singular and plural.
    """
    filters["all"] = filters.pop("all_") or None
    count = edit(**filters, dry_run=True)[done]
    if not as_json:
        click.echo(f"{count} {noun[count != 1]} to {verb}")
    if not count:
        if as_json:
            show_json({done: 0, "skipped": []})
        return
    if not yes:
        click.confirm(f"{verb} {'it' if count == 1 else 'them'}?", abort=True, err=True)
    result = edit(**filters)
    if as_json:
        show_json(result)
        return
    click.echo(f"{done} {result[done]}")
    for skipped in result["skipped"]:
        say(f"  skipped {skipped['id']}: {skipped['reason']}", err=True)
    if result.get("skipped_omitted"):
        click.echo(f"  and {result['skipped_omitted']} more", err=True)
