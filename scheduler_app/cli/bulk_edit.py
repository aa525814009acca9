"""Edits of schedules or events that are named, or of all that match a filter: counted and confirmed first."""

import shlex
from collections.abc import Callable, Sequence

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.output import say, show_json
from scheduler_app.cli.progress import Progress
from scheduler_app.cli.schedule_filters import schedule_filters
from scheduler_app.cli.several import ids_argument
from scheduler_app.client import EditResult, Json

yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def schedule_edit(command: Callable[..., None]) -> Callable[..., None]:
    """Adds an edit's arguments: `scheduler`, `ids`, which may be empty, `as_json`, `yes`, and the filters."""
    for option in (
        with_client,
        json_option,
        yes_option,
        click.option("--all", "all_", is_flag=True, help="Every schedule there is."),
        schedule_filters,
        ids_argument("SCHEDULE_ID", required=False),
    ):
        command = option(command)
    return command


def names_ids(ids: Sequence[str], filters: Json) -> bool:
    """Whether the edit is of schedules that are named. Raises click.UsageError unless ids or filters are
    given."""
    many = any(filters.values())
    if ids and many:
        raise click.UsageError("give ids, or options that choose many, not both")
    if not ids and not many:
        options = "--tag, --name, --name-contains, --state, --last-outcome"
        raise click.UsageError(f"give an id, or {options}, or --all")
    return bool(ids)


def edit_many(
    verb: str,
    done: str,
    edit: Callable[..., EditResult],
    filters: Json,
    as_json: bool,
    yes: bool,
    noun: tuple[str, str] = ("schedule", "schedules"),
    *,
    dry_run: bool = False,
) -> None:
    """Counts by a dry run, asks for confirmation, and edits.

    `done` is the name of the count in the API's answer; `noun` is what is counted, singular and plural. A
    `dry_run` ends after the count.
    """
    chosen = _as_options(filters)
    filters["all"] = filters.pop("all_") or None
    count = edit(**filters, dry_run=True)[done]
    if not as_json:
        say(f"{count} {noun[count != 1]} to {verb}: {chosen}")
    if not count:
        if as_json:
            show_json({done: 0, "skipped": []})
        return
    if dry_run:
        if as_json:
            show_json({done: count, "dry_run": True})
        else:
            say("dry run: nothing is sent")
        return
    if not yes:
        click.confirm(f"{verb} {'it' if count == 1 else 'them'}?", abort=True, err=True)
    with Progress(done, count) as progress:
        result = edit(**filters, progress=progress)
    if as_json:
        show_json(result)
        return
    say(f"{done} {result[done]}")
    for skipped in result["skipped"]:
        say(f"  skipped {skipped['id']}: {skipped['reason']}", err=True)
    if result.get("skipped_omitted"):
        click.echo(f"  and {result['skipped_omitted']} more", err=True)


def _as_options(filters: Json) -> str:
    """What was chosen, as it was typed: the same words choose the same again."""
    command = click.get_current_context().command
    words: list[str] = []
    for option in command.params:
        if isinstance(option, click.Option) and filters.get(option.name or ""):
            words += [option.opts[0]] if option.is_flag else [option.opts[0], str(filters[option.name or ""])]
    return shlex.join(words)
