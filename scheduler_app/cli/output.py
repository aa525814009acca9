"""The output of commands: tables for people, JSON for programs, and a progress bar once a command takes
longer than a second. Other people's text is passed through `visible`, so that no name or body can send
control sequences to the reader's terminal.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TextIO, TypeVar

import click

from scheduler_app.clock import monotonic
from scheduler_app.domain.masking import visible

#: Columns. In a pipe no cell is broken into lines.
_PIPE_WIDTH = 1_000
#: The least width of a column of words, however narrow the terminal is.
_NARROWEST = 10
#: Words of up to this many letters are not broken either.
_WORD = 12
#: Spaces between two columns.
_GAP = 2
#: Holds the place of a key that has a line of its own.
_KEY = "\x01"
_QUIET = "scheduler_app.quiet"


def be_quiet() -> None:
    """From now on this command prints ids alone, and what is wrong."""
    click.get_current_context().meta[_QUIET] = True


def is_quiet() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_QUIET))


def say(text: str, *, err: bool = False) -> None:
    """Prints a line that may contain text of other people."""
    if err or not is_quiet():
        click.echo(visible(text), err=err)


def say_result(text: str) -> None:
    """Prints what a command is for, also where it is to be quiet."""
    click.echo(visible(text))


def visible_json(value: object) -> str:
    """JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=_as_json)


def show_json(value: object) -> None:
    say_result(json.dumps(value, indent=2, ensure_ascii=False, default=_as_json))


def show_answer(answer: Any, as_json: bool, show: Callable[[Any], None] | None = None) -> None:
    """Prints what the API answered as JSON, or by `show`; by default field by field."""
    if as_json:
        show_json(answer)
    else:
        (show or show_fields)(answer)


def show_fields(record: Mapping[str, object]) -> None:
    """Prints a line for each field of a record: terminals wrap long lines, and copy them whole."""
    if is_quiet():
        say_result(str(next((record[key] for key in ("id", "_id", "name") if key in record), "")))
        return
    width = max(map(len, record), default=0)
    for name, value in record.items():
        say(f"{name.ljust(width)}  {_as_text(value)}".rstrip())


def counts_text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, unbroken: Sequence[str] = (), key: str = ""
) -> None:
    """Prints rows. The first cell of a row may hold rich's markup; the others are shown as they are.

    Without columns there is no heading. Cells of the columns in `unbroken` (ids, times) are never broken into
    lines. Where the terminal is too narrow for them, each cell of the column `key` has a line of its own
    above its row; if that does not suffice, lines become longer than the terminal's width. A quiet command
    prints the column `key` alone.
    """
    if is_quiet() and key:
        at = list(columns).index(key)
        for row in rows:
            say_result(str(row[at]))
        return
    # Imported here: most commands show no table, and need not wait for rich.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [
        [Text.from_markup(visible(str(first))), *(Text(visible(str(cell))) for cell in others)]
        for first, *others in rows
    ]
    console = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)
    widths = [max([len(column), *(row[n].cell_len for row in cells)]) for n, column in enumerate(columns)]
    needed = [
        width if column in unbroken else min(width, _least_width(row[n].plain for row in cells))
        for n, (column, width) in enumerate(zip(columns, widths, strict=True))
    ]
    keys: list[str] = []
    if key and key != columns[0] and sum(needed) + _GAP * (len(columns) - 1) > console.width:
        at = list(columns).index(key)
        keys = [row.pop(at).plain for row in cells]
        columns, needed = [each for each in columns if each != key], needed[:at] + needed[at + 1 :]
        # No other cell is this one: `visible` takes control characters out of them.
        cells = [each for row in cells for each in ([Text(_KEY)], row)]
    shown = Table(box=None, pad_edge=False, header_style="bold", show_header=bool(columns))
    for column in columns:
        if column in unbroken:
            shown.add_column(column, no_wrap=True)
        else:
            shown.add_column(column, overflow="fold")
    for row in cells:
        shown.add_row(*row)
    console.width = max(console.width, sum(needed) + _GAP * (len(columns) - 1))
    with console.capture() as captured:
        console.print(shown)
    following = iter(keys)
    for line in captured.get().splitlines():
        # Cells are padded to their column's width, which leaves spaces at the ends of lines.
        click.echo(next(following) if keys and line.strip() == _KEY else line.rstrip())


def colored(text: str, colors: Mapping[str, str]) -> str:
    """The first cell of a row, in the color that its text has."""
    return f"[{colors[text]}]{text}[/]" if text in colors else text


def _least_width(cells: Iterable[str]) -> int:
    words = (len(word) for cell in cells for word in cell.split())
    return max([_NARROWEST, *(length for length in words if length <= _WORD)])


def _as_json(value: object) -> object:
    """What json.dumps has no form for: what the client returns is a mapping and not a dict."""
    return dict(value) if isinstance(value, Mapping) else str(value)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


Row = TypeVar("Row")

PROGRESS_AFTER_SECONDS = 1.0
_BAR_CHARACTERS = 30


class ProgressBar:
    """Writes `label [####    ] 1,200 of 5,000` again and again to one line of a terminal, and clears it at
    the end; to anything but a terminal it writes nothing."""

    def __init__(
        self,
        label: str,
        total: int | None = None,
        *,
        stream: TextIO | None = None,
        seconds: Callable[[], float] = monotonic,
    ) -> None:
        """`total` is None if it is not known."""
        self._label, self._total = label, total
        self._stream = stream or sys.stderr
        self._seconds = seconds
        self._from = seconds()
        self._written = 0

    def __call__(self, done: int) -> None:
        """Says that this many more are done."""
        if not self._stream.isatty() or self._seconds() - self._from < PROGRESS_AFTER_SECONDS:
            return
        line = f"{self._label} {self._bar(done)}{done:,}" + (f" of {self._total:,}" if self._total else "")
        self._write(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._written:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()

    def _bar(self, done: int) -> str:
        if not self._total:
            return ""
        full = min(_BAR_CHARACTERS, _BAR_CHARACTERS * done // self._total)
        return f"[{'#' * full}{' ' * (_BAR_CHARACTERS - full)}] "

    def _write(self, line: str) -> None:
        self._stream.write(f"\r{line.ljust(self._written)}")
        self._stream.flush()
        self._written = len(line)


def with_progress(rows: Iterable[Row], label: str) -> Iterator[Row]:
    """Passes rows on that come page by page, and says how many there are so far."""
    with ProgressBar(label) as progress:
        for number, row in enumerate(rows, 1):
            progress(number)
            yield row
