"""What the commands share that list things, or show one thing of the API by its name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.output import show_json, show_record
from scheduler_app.client import Scheduler

T = TypeVar("T")


def show_list(found: Iterable[T], limit: int, as_json: bool, show: Callable[[Sequence[T]], None]) -> None:
    """Shows the first `limit` of what is found, as JSON or by `show`, and says whether there are more."""
    rows = list(islice(found, limit + 1))
    if as_json:
        show_json(rows[:limit])
        return
    show(rows[:limit])
    if len(rows) > limit:
        click.echo(f"There are more: --limit {limit * 2}", err=True)


def record_command(
    group: click.Group,
    name: str,
    argument: str,
    call: Callable[[Scheduler, str], Mapping[str, object]],
    help: str,
) -> None:
    """Adds a command to a group: it calls the API with its one argument and shows the answer."""

    @group.command(name, help=help)
    @click.argument(argument)
    @json_option
    @with_client
    def command(scheduler: Scheduler, as_json: bool, **given: str) -> None:
        show_record(call(scheduler, given[argument]), as_json)
