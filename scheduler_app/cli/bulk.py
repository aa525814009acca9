"""Commands for several ids, or for all that match a filter. What is wrong with one id harms only that one; an
edit of all that match is counted and confirmed first.
"""

import shlex
from collections.abc import Callable, Sequence
from typing import Any

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.options import schedule_filters
from scheduler_app.cli.output import ProgressBar, say, show_json, show_record
from scheduler_app.client import EditResult, Json, SchedulerError


def ids_argument(metavar: str = "ID", *, required: bool = True) -> Callable[[Callable[..., None]], Any]:
    """Adds `ids`: words, or --id, each of which may be repeated."""

    def taken(context: click.Context, _: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
        ids = tuple(dict.fromkeys((*words, *context.params.pop("by_option", ()))))
        if required and not ids and not context.resilient_parsing:
            raise click.UsageError(f"give {metavar}")
        return ids

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        command = click.argument("ids", nargs=-1, metavar=f"[{metavar}]...", callback=taken)(command)
        return click.option(
            "--id", "by_option", multiple=True, metavar=metavar, is_eager=True, help=f"The same as {metavar}."
        )(command)

    return decorate


def for_each(
    ids: Sequence[str], act: Callable[[str], Any], as_json: bool, shown: Callable[[Any], None] | None = None
) -> None:
    """Calls `act` with each id. `shown` prints one result for people; by default it is a record.

    Of several, those that are refused are told one by one, the others are done, and the exit status is 1.
    """
    if len(ids) == 1:
        result = act(ids[0])
        if as_json:
            show_json(result)
        else:
            (shown or _show_one_record)(result)
        return
    results, refused = [], False
    for number, each in enumerate(ids):
        try:
            result = act(each)
        except SchedulerError as error:
            if error.status is None:
                raise
            refused = True
            results.append({"id": each, "error": str(error)})
            say(f"{each}: {error}", err=True)
            continue
        results.append(result)
        if not as_json:
            if number and shown is None:
                say("")
            (shown or _show_one_record)(result)
    if as_json:
        show_json(results)
    if refused:
        raise click.exceptions.Exit(1)


def _show_one_record(result: Any) -> None:
    show_record(result, False)


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
    chosen = _filters_as_options(filters)
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
    with ProgressBar(done, count) as progress:
        result = edit(**filters, progress=progress)
    if as_json:
        show_json(result)
        return
    say(f"{done} {result[done]}")
    for skipped in result["skipped"]:
        say(f"  skipped {skipped['id']}: {skipped['reason']}", err=True)
    if result.get("skipped_omitted"):
        click.echo(f"  and {result['skipped_omitted']} more", err=True)


def _filters_as_options(filters: Json) -> str:
    """What was chosen, as it was typed: the same words choose the same again."""
    command = click.get_current_context().command
    words: list[str] = []
    for option in command.params:
        if isinstance(option, click.Option) and filters.get(option.name or ""):
            words += [option.opts[0]] if option.is_flag else [option.opts[0], str(filters[option.name or ""])]
    return shlex.join(words)
