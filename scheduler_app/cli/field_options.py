"""Options for the fields of a schedule, made from the client's types: a new field needs no code here."""

from collections.abc import Callable, Collection, Sequence
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import click

from scheduler_app.cli.durations import duration

Command = Callable[..., None]

#: Another option for a field; the one by the field's name means the same.
_SHORT: Final = {
    "every_seconds": "--every",
    "delay_seconds": "--in",
    "run_at": "--at",
    "timezone": "--tz",
    "purpose": "--description",
}
#: Fields in seconds that are given as durations.
_DURATIONS: Final = frozenset({"every_seconds", "delay_seconds"})


def field_options(kind: type, *, without: Collection[str]) -> Callable[[Command], Command]:
    """Gives a command an option for each field of `kind`, a TypedDict of the client, but those in `without`,
    which have options of their own. The command gets None, or (), for an option that was not given."""

    def decorate(command: Command) -> Command:
        hints = get_type_hints(kind, include_extras=True)
        for name in reversed([name for name in hints if name not in without]):
            value, meaning = get_args(hints[name])
            command = _option(name, value, meaning)(command)
        return command

    return decorate


def given_fields(options: dict[str, Any]) -> dict[str, Any]:
    """Of the values of such options those that were given, as the API takes them."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in options.items()
        if value not in (None, ())
    }


def flag(name: str) -> str:
    """The option of a field, the short one where it has two."""
    return _SHORT.get(name) or _long_flag(name)


def _long_flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _option(name: str, kind: Any, meaning: str) -> Callable[[Command], Command]:
    """The option for a field of this type."""
    option = _long_flag(name)
    help_text = meaning.replace("`", "") + "."
    if get_origin(kind) in (Union, UnionType):
        kind = next(each for each in reversed(get_args(kind)) if each is not NoneType)
    if kind is bool:
        return click.option(f"{option}/--no-{option[2:]}", name, default=None, help=help_text)
    if kind == Literal[True]:
        return click.option(option, name, is_flag=True, flag_value=True, default=None, help=help_text)
    if get_origin(kind) is Literal:
        choice = click.Choice(get_args(kind), case_sensitive=False)
        metavar = f"[{'|'.join(get_args(kind))}]"
        return click.option(option, name, type=choice, metavar=metavar, help=help_text)
    if get_origin(kind) is Sequence:
        # Each use of the option adds one value, so its name is the singular: `tags` is --tag.
        option = option.removesuffix("s")
        return click.option(option, name, multiple=True, help=f"{help_text} May be repeated.")
    options = (_SHORT[name], option) if name in _SHORT else (option,)
    if name in _DURATIONS:
        help_text = f"{help_text} Such as 90s, 10m, 1h30m, 2d."
        return click.option(*options, name, type=duration, help=help_text)
    return click.option(*options, name, type=kind if kind in (int, float) else str, help=help_text)
