"""The output of commands: tables for people, JSON for programs. Other people's text is passed through
`visible`, so that no name or body can send control sequences to the reader's terminal."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence

import click

from scheduler_app.domain.text import visible

#: Columns. In a pipe no cell is broken into lines.
_PIPE_WIDTH = 1_000
#: The least width of a column of words, however narrow the terminal is.
_NARROWEST = 12
#: Spaces between two columns.
_GAP = 2


def say(text: str, *, err: bool = False) -> None:
    """Prints a line that may contain text of other people."""
    click.echo(visible(text), err=err)


def show_json(value: object) -> None:
    say(json.dumps(value, indent=2, ensure_ascii=False, default=_as_json))


def show_record(record: Mapping[str, object], as_json: bool) -> None:
    """Prints a record as JSON, or a line for each field: terminals wrap long lines, and copy them whole."""
    if as_json:
        show_json(record)
        return
    width = max(map(len, record), default=0)
    for name, value in record.items():
        say(f"{name.ljust(width)}  {_as_text(value)}".rstrip())


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, unbroken: Sequence[str] = ()) -> None:
    """Prints rows. The first cell of a row may hold rich's markup; the others are shown as they are.

    Without columns there is no heading. Cells of the columns in `unbroken` (ids, times) are never broken into
    lines: where the terminal is too narrow for them, lines become longer than its width.
    """
    # Imported here: most commands show no table, and need not wait for rich.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold", show_header=bool(columns))
    for column in columns:
        if column in unbroken:
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
        width if column in unbroken else min(width, _NARROWEST)
        for column, width in zip(columns, widths, strict=True)
    )
    console.width = max(console.width, needed + _GAP * len(columns))
    with console.capture() as captured:
        console.print(shown)
    # Cells are padded to their column's width, which leaves spaces at the ends of lines.
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _as_json(value: object) -> object:
    """What json.dumps has no form for: what the client returns is a mapping and not a dict."""
    return dict(value) if isinstance(value, Mapping) else str(value)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
