"""Options for the fields of a schedule, made from the client's types: a new field needs no code here."""

from collections.abc import Callable, Collection, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import click

from scheduler_app.client import ScheduleFields

Command = Callable[..., None]


def field_options(*, without: Collection[str]) -> Callable[[Command], Command]:
    """Gives a command an option for each field of a schedule but those in `without`, which have options of
    their own. The command gets None, or (), for an option that was not given."""

    def decorate(command: Command) -> Command:
        hints = get_type_hints(ScheduleFields, include_extras=True)
        for name in reversed([name for name in hints if name not in without]):
            kind, meaning = get_args(hints[name])
            command = _option(name, kind, meaning)(command)
        return command

    return decorate


def given_fields(options: dict[str, Any]) -> dict[str, Any]:
    """Of the values of such options those that were given, as the API takes them."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in options.items()
        if value not in (None, ())
    }


def _option(name: str, kind: Any, meaning: str) -> Callable[[Command], Command]:
    """The option for a field of this type."""
    words = name.replace("_", "-")
    help_text = meaning.replace("`", "") + "."
    if get_origin(kind) in (Union, UnionType):
        kind = next(each for each in reversed(get_args(kind)) if each is not NoneType)
    if kind is bool:
        return click.option(f"--{words}/--no-{words}", name, default=None, help=help_text)
    if get_origin(kind) is Literal:
        choice = click.Choice(get_args(kind), case_sensitive=False)
        metavar = f"[{'|'.join(get_args(kind))}]"
        return click.option(f"--{words}", name, type=choice, metavar=metavar, help=help_text)
    if get_origin(kind) is Sequence:
        # Each use of the option adds one value, so its name is the singular: `tags` is --tag.
        words = words.removesuffix("s")
        return click.option(f"--{words}", name, multiple=True, help=f"{help_text} May be repeated.")
    return click.option(f"--{words}", name, type=kind if kind in (int, float) else str, help=help_text)
