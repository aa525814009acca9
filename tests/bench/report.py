"""What a benchmark has to say: a column of figures for each run, and one JSON object for machines."""

import json
import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

Row = dict[str, Any]


@dataclass(frozen=True)
class Report:
    """`rows` are shown side by side, `summary` is the last line; `good`: nothing was lost or doubled."""

    rows: Sequence[Row]
    summary: Row
    good: bool = True
    heads: Sequence[str] = ()

    def print(self, name: str) -> None:
        show(name, self.rows, self.heads or [f"run {number + 1}" for number in range(len(self.rows))])
        print(
            f"The host gave {self.summary['stolen_percent']} % of the cores to others meanwhile,"
            f" and a fixed loop takes {self.summary['loop_s']} s."
        )
        print(json.dumps({"bench": name, **self.summary}), flush=True)


def middle(rows: Sequence[Row], key: str) -> Row:
    """The run with the median of `key`, how many runs there were, and how far apart they are."""
    ordered = sorted(rows, key=lambda row: float(row[key]))
    spread = [ordered[0][key], ordered[-1][key]]
    return {**ordered[len(ordered) // 2], "runs": len(rows), f"{key}_spread": spread}


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """p50, p99 and max."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return {
        "p50": round(ordered[last // 2], 2),
        "p99": round(ordered[int(last * 0.99)], 2),
        "max": round(ordered[-1], 2),
    }


def repeated(runs: int, run: Callable[[], Row], key: str, good: Callable[[Row], bool]) -> Report:
    """The same measurement several times: its median is the summary."""
    rows = [run() for _ in range(runs)]
    return Report(rows, middle(rows, key), all(map(good, rows)))


def compared(pairs: Sequence[tuple[Row, ...]], *, but: Collection[str]) -> Row:
    """Medians of both sides, and the ratios of the pairs, ours to theirs: the median, the least, the
    greatest. Of the figures in `but` no ratio is made."""
    known = [key for key in pairs[0][0] if all(key in row for pair in pairs for row in pair)]
    ours, theirs = (
        {key: statistics.median(row[key] for row in side) for key in known}
        for side in zip(*pairs, strict=True)
    )
    ratios: Row = {}
    for key in known:
        each = sorted(ours[key] / theirs[key] for ours, theirs in pairs if theirs[key])
        if each and key not in but:
            ratios[key] = [round(value, 2) for value in (statistics.median(each), each[0], each[-1])]
    return {"ours": ours, "theirs": theirs, "ratio": ratios}


def figures(row: Row) -> dict[str, float]:
    """The numbers of a row, those within others by their whole names, such as `lag_ms.p99`."""
    return {
        key: value
        for key, value in _flat(row).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def show(name: str, rows: Sequence[Row], heads: Sequence[str]) -> None:
    """One line for each figure, one column for each row."""
    flat = [_flat(row) for row in rows]
    table = Table(title=name, title_justify="left")
    table.add_column("")
    for head in heads:
        table.add_column(head, justify="right")
    for key in dict.fromkeys(key for row in flat for key in row):
        table.add_row(key, *(_text(row.get(key)) for row in flat))
    Console(width=max(100, 60 + 14 * len(flat))).print(table)


def _flat(row: Row, prefix: str = "") -> Row:
    flat: Row = {}
    for key, value in row.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)
