"""Commands that take several ids: what is wrong with one harms only that one."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from scheduler_app.cli.output import say, show_json, show_record
from scheduler_app.client import SchedulerError


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
            (shown or _record)(result)
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
            (shown or _record)(result)
    if as_json:
        show_json(results)
    if refused:
        raise click.exceptions.Exit(1)


def _record(result: Any) -> None:
    show_record(result, False)
