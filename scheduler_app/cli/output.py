"""How commands show things: tables for people, JSON for programs. What others wrote passes `visible` here, so
that no name or body drives the reader's terminal."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from scheduler_app.domain.text import visible

#: In a pipe nothing is folded, whatever width somebody's terminal has.
_PIPE_WIDTH = 1_000
#: What a column of words gets at least, however narrow the terminal.
_NARROWEST = 12
#: Between two columns.
_GAP = 2


def say(text: str, *, err: bool = False) -> None:
    """A line that may hold what others wrote."""
    click.echo(visible(text), err=err)


def show_json(value: Any) -> None:
    say(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def details(thing: Mapping[str, Any]) -> None:
    """One thing, a line for each of its fields: terminals wrap long ones and copy them whole."""
    width = max(map(len, thing), default=0)
    for name, value in thing.items():
        say(f"{name.ljust(width)}  {_written(value)}".rstrip())


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, whole: Sequence[str] = ()) -> None:
    """The first cell of a row may carry rich's markup; the others are shown as they are.

    No columns: no heading. Those named in `whole` (ids, times) are never broken into lines: where the
    terminal has no room for them beside the others, lines become longer than it is wide.
    """
    # Only here: most commands show no table, and need not wait for rich.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold", show_header=bool(columns))
    for column in columns:
        if column in whole:
            shown.add_column(column, no_wrap=True)
        else:
            shown.add_column(column, overflow="fold")
    cells = [
        [Text.from_markup(visible(str(first))), *(Text(visible(str(cell))) for cell in others)]
        for first, *others in rows
    ]
    for row in cells:
        shown.add_row(*row)
    console = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)
    widths = [max([len(column), *(row[n].cell_len for row in cells)]) for n, column in enumerate(columns)]
    needed = sum(
        width if column in whole else min(width, _NARROWEST)
        for column, width in zip(columns, widths, strict=True)
    )
    console.width = max(console.width, needed + _GAP * len(columns))
    with console.capture() as captured:
        console.print(shown)
    # Cells are padded to their column's width: nobody wants that at the end of a line.
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
