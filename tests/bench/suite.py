"""Everything in turn, with the budgets beside it: a quarter of an hour; `--full` takes hours."""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.budgets import BUDGETS
from tests.bench.report import Report, Row

#: Each with the sizes that fit into a quarter of an hour together, and with those of the budgets.
USUAL = {
    "floor": "--events 10000 --runs 3",
    "burst": "--events 2000 --runs 3",
    "singles": "--events 10000",
    "slow": "--events 4000",
    "slow_clients": "",
    "sustained": "--rate 2500 --seconds 60",
    "spread": "--rate 100 --seconds 20",
    "neighbours": (
        "--seconds 15 --undisturbed 8 --case silent-600-10s-1 silent-600-300s-50 bulk half-open overdue"
    ),
    "trigger": "",
    "tick": "--schedules 100000",
    "expand": "--events 10000 --runs 3",
    "create": "--runs 3",
    "messages": "--events 5000 --waiting 100000 --runs 2",
    "history": "--events 500000",
    "recurrence": "--dateutil-seconds 0",
}
FULL = USUAL | {
    "sustained": "--rate 2500 --seconds 300",
    "spread": "--rate 100 --seconds 60",
    "neighbours": "--seconds 360",
    "tick": "--schedules 1000000",
    "messages": "--events 10000 --waiting 1000000 --runs 3",
    "history": "--events 10000000",
    "recurrence": "",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="a million schedules, ten million events")
    parser.add_argument("--only", nargs="+", choices=USUAL, default=list(USUAL), metavar="NAME")


def run(options: argparse.Namespace) -> Report:
    summaries: dict[str, Row] = {}
    sizes = FULL if options.full else USUAL
    began = time.monotonic()
    for name in options.only:
        summary = measured([name, *sizes[name].split()])
        if summary is not None:
            summaries[name] = summary
    rows = [budget.row(summaries) for budget in BUDGETS if budget.bench in options.only]
    return Suite(
        rows,
        {
            "minutes": round((time.monotonic() - began) / 60, 1),
            "unmet": [row["what"] for row in rows if not row["met"]],
            "budgets": rows,
            "results": summaries,
        },
        len(summaries) == len(options.only),
    )


def measured(
    arguments: Sequence[str], *, python: Path = Path(sys.executable), folder: Path | None = None
) -> Row | None:
    """Runs a benchmark by itself, by `python` and in `folder` (None: the one of this process), shows its
    table, and returns its last line; None when it failed, or when something was lost or doubled."""
    command = [str(python), "-m", "tests.bench", *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            output, _ = process.communicate()
        except BaseException:
            process.terminate()  # it ends what it has started, and is waited for
            raise
    *table, last = output.splitlines() or [""]
    print("\n".join(table), flush=True)
    if process.returncode:
        print(f"{arguments[0]} failed: {last}", flush=True)
        return None
    summary: Row = json.loads(last)
    return summary


class Suite(Report):
    """Budgets, one a line."""

    def print(self, name: str) -> None:
        table = Table(title="Budgets", title_justify="left")
        for head in (
            "",
            "measured",
            "budget",
            "met",
            "the Go original",
            "stolen by the host",
            "a fixed loop",
        ):
            table.add_column(head, justify="right" if head in ("measured", "budget") else "left")
        originals = {budget.what: budget.original for budget in BUDGETS}
        for row in self.rows:
            measured = "failed" if row["measured"] is None else f"{row['measured']:,.4g}"
            met = "yes" if row["met"] else "NO"
            stolen, loop = row["stolen_percent"], row["loop_s"]
            host = ("", "") if stolen is None else (f"{stolen:g} %", f"{loop:g} s")
            table.add_row(row["what"], measured, row["budget"], met, originals[row["what"]], *host)
        Console(width=120).print(table)
        print(json.dumps({"bench": name, **self.summary}), flush=True)
