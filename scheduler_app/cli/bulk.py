"""Commands for several ids, or for all that match a filter. What is wrong with one id harms only that one; an
edit of all that match is counted and confirmed first.
"""

import shlex
from collections.abc import Callable, Sequence
from typing import Any

import click

from scheduler_app.cli.click_extensions import Decorator, options
from scheduler_app.cli.client_options import with_client_and_json
from scheduler_app.cli.options import schedule_filters
from scheduler_app.cli.output import ProgressBar, say, show_answer, show_json
from scheduler_app.client import EditResult, Json, Schedule, Scheduler, SchedulerError


def ids_argument(metavar: str, *, required: bool = True) -> Decorator:
    """Adds `ids`: words, or --id, each of which may be repeated."""

    def taken(context: click.Context, _: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
        ids = tuple(dict.fromkeys((*words, *context.params.pop("by_option", ()))))
        if required and not ids and not context.resilient_parsing:
            raise click.UsageError(f"give {metavar}")
        return ids

    help_text = f"The same as {metavar}."
    return options(
        click.option("--id", "by_option", multiple=True, metavar=metavar, is_eager=True, help=help_text),
        click.argument("ids", nargs=-1, metavar=f"[{metavar}]...", callback=taken),
    )


def for_each(
    ids: Sequence[str], act: Callable[[str], Any], as_json: bool, show: Callable[[Any], None] | None = None
) -> None:
    """Calls `act` with each id, and prints each result as JSON, or by `show`; by default field by field.

    Of several, those that are refused are told one by one, the others are done, and the exit status is 1.
    """
    if len(ids) == 1:
        show_answer(act(ids[0]), as_json, show)
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
            if number and show is None:
                say("")
            show_answer(result, as_json, show)
    if as_json:
        show_json(results)
    if refused:
        raise click.exceptions.Exit(1)


def change_existing(scheduler: Scheduler, schedule_id: str, fields: Json) -> Schedule:
    """Not a PUT alone, which creates what is not there."""
    scheduler.get(schedule_id)
    return scheduler.update(schedule_id, **fields)


yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


#: An edit's arguments: `scheduler`, `ids`, which may be empty, `as_json`, `yes`, and the filters.
schedule_edit = options(
    ids_argument("SCHEDULE_ID", required=False),
    schedule_filters,
    click.option("--all", "all_", is_flag=True, help="Every schedule there is."),
    yes_option,
    with_client_and_json,
)


def edit_schedules(
    verb: str,
    done: str,
    edit: Callable[[str], Any],
    edit_all: Callable[..., EditResult],
    *,
    ids: Sequence[str],
    as_json: bool,
    yes: bool,
    show: Callable[[Any], None] | None = None,
    **filters: Any,
) -> None:
    """Edits the schedules that are named, or all that match. Raises click.UsageError unless ids or filters
    are given. `done` is what `edit_many` says of it."""
    many = any(filters.values())
    if ids and many:
        raise click.UsageError("give ids, or options that choose many, not both")
    if not ids and not many:
        raise click.UsageError(
            "give an id, or --tag, --name, --name-contains, --state, --last-outcome, or --all"
        )
    if ids:
        for_each(ids, edit, as_json, show)
    else:
        edit_many(verb, done, edit_all, filters, as_json, yes)


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
