"""How commands show things: tables for people, JSON for programs. What others wrote passes `visible` here, so
that no name or body drives the reader's terminal."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from scheduler_app.domain.text import visible

#: In a pipe nothing is folded, whatever width somebody's terminal has.
_PIPE_WIDTH = 1_000


def say(text: str, *, err: bool = False) -> None:
    """A line that may hold what others wrote."""
    click.echo(visible(text), err=err)


def show_json(value: Any) -> None:
    say(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def details(thing: Mapping[str, Any]) -> None:
    """One thing, a line for each of its fields."""
    table([], [[escape(name), _written(value)] for name, value in thing.items()])


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """The first cell of a row may carry rich's markup; the others are shown as they are.

    No columns: no heading.
    """
    shown = Table(box=None, pad_edge=False, header_style="bold", show_header=bool(columns))
    for column in columns:
        shown.add_column(column, overflow="fold")
    for first, *others in rows:
        shown.add_row(Text.from_markup(visible(str(first))), *(Text(visible(str(cell))) for cell in others))
    console = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)
    with console.capture() as captured:
        console.print(shown)
    # Cells are padded to their column's width: nobody wants that at the end of a line.
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
