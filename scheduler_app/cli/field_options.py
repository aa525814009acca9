"""The fields of a schedule or a task, as options or as a file of JSON. The options are made from the client's
types: a new field needs no code here.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from types import NoneType, UnionType
from typing import IO, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import click

from scheduler_app.cli.click_extensions import Decorator, options
from scheduler_app.cli.options import duration
from scheduler_app.client import Json

#: Another option for a field; the one by the field's name means the same.
_SHORT_OPTIONS: Final = {
    "every_seconds": "--every",
    "delay_seconds": "--in",
    "run_at": "--at",
    "timezone": "--tz",
    "purpose": "--description",
}
#: Fields in seconds that are given as durations.
_DURATION_FIELDS: Final = frozenset({"every_seconds", "delay_seconds"})


def field_options(kind: type, *, without: Collection[str]) -> Decorator:
    """Gives a command an option for each field of `kind`, a TypedDict of the client, but those in `without`,
    which have options of their own. The command gets None, or (), for an option that was not given."""

    hints = get_type_hints(kind, include_extras=True)
    return options(*(_option(name, *get_args(hints[name])) for name in hints if name not in without))


def given_fields(values: dict[str, Any]) -> dict[str, Any]:
    """Of the values of such options those that were given, as the API takes them."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value not in (None, ())
    }


def flag(name: str) -> str:
    """The option of a field, the short one where it has two."""
    return _SHORT_OPTIONS.get(name) or _long_flag(name)


def _long_flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _option(name: str, kind: Any, meaning: str) -> Decorator:
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
    if get_origin(kind) is Mapping:
        # The same: `headers` is --header.
        return _pairs_option(option.removesuffix("s"), name, help_text, get_args(kind)[1])
    flags = (_SHORT_OPTIONS[name], option) if name in _SHORT_OPTIONS else (option,)
    if name in _DURATION_FIELDS:
        help_text = f"{help_text} Such as 90s, 10m, 1h30m, 2d."
        return click.option(*flags, name, type=duration, help=help_text)
    return click.option(*flags, name, type=kind if kind in (int, float) else str, help=help_text)


def _pairs_option(option: str, name: str, help_text: str, kind: type) -> Decorator:
    """Adds an option that may be repeated. The command gets its pairs, None without any; numbers are seconds,
    given as durations."""

    def read(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> Json | None:
        pairs = {}
        for text in given:
            key, colon, value = text.partition(":")
            if not colon:
                raise click.BadParameter(f"{text!r} is not NAME: VALUE", param_hint=option)
            pairs[key.strip()] = duration(value) if kind is float else value.strip()
        return pairs or None

    help_text = f"{help_text} May be repeated."
    metavar = "NAME: DURATION" if kind is float else "NAME: VALUE"
    return click.option(option, name, multiple=True, metavar=metavar, callback=read, help=help_text)


def json_value(text: str, option: str) -> Any:
    """What the text of an option says. Raises BadParameter, which does not repeat it: it may be secret."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"is not JSON: {error}", param_hint=option) from None


#: As /tasks makes them: the person who executes a task sees it fail, and executes it again.
TASK_TAG: Final = "task"
_TASK_DEFAULTS: Final = {"max_retries": 0, "timeout_seconds": 300}
#: Fields of a task that say how it stood.
_READ_ONLY_TASK_FIELDS: Final = ("status", "created_at", "updated_at")


def command_action(command: str, *, shell: bool = False) -> Json:
    """The action that runs a command; without a shell it is split into words as a shell would split it."""
    action: Json = {"type": "command", "command": command}
    return action | {"shell": True} if shell else action


def as_task(fields: Json) -> Json:
    """The fields of a schedule that runs only when it is executed by request."""
    tags = [*(fields.get("tags") or ()), TASK_TAG]
    return _TASK_DEFAULTS | fields | {"on_demand": True, "tags": list(dict.fromkeys(tags))}


def fields_of_task(given: Json) -> Json:
    """The fields of a schedule, of those of a task as `GET /tasks/{id}` shows it."""
    fields = {name: value for name, value in given.items() if name not in _READ_ONLY_TASK_FIELDS}
    fields["action"] = command_action(fields.pop("command"))
    if "description" in fields:
        fields["purpose"] = fields.pop("description")
    at = fields.pop("scheduled_at", None)
    made = as_task(fields)
    if at is not None:
        del made["on_demand"]
        made["run_at"] = at
    return made


MAX_FILE_CHARACTERS = 1_000_000


def read_fields(file: IO[str]) -> Json:
    """Raises click.BadParameter, which names the file."""
    text = file.read(MAX_FILE_CHARACTERS + 1)
    if len(text) > MAX_FILE_CHARACTERS:
        raise click.BadParameter(f"is larger than {MAX_FILE_CHARACTERS:,} characters", param_hint="--file")
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"is not JSON: {error}", param_hint="--file") from None
    if not isinstance(given, dict):
        raise click.BadParameter("must be a JSON object, in braces", param_hint="--file")
    return fields_of_task(given) if isinstance(given.get("command"), str) else given
