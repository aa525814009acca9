"""A benchmark of this work tree and of another commit, in turn: what the changes between them cost or save.

`pairs --than HEAD~20 --rounds 5 spread --rate 20`. Each round measures both, every second round in the other
order, so that a machine that becomes slower harms neither. The other commit is measured by its own benchmark,
in a folder of its own with the packages that it names. A figure is the median of a side's runs; a ratio is
the median of the rounds', this work tree's to the commit's, with the least and the greatest.
"""

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.bench.report import Report, Row, compared, figures
from tests.bench.suite import measured

HERE = Path(__file__).parents[2]
COMMITS = HERE / ".venv" / "commits"
#: What tells about the machine and not about a side.
MACHINE = ("stolen_percent", "loop_s")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--than", metavar="COMMIT", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "benchmark", nargs=argparse.REMAINDER, metavar="BENCHMARK ...", help="its name and its options"
    )


def run(options: argparse.Namespace) -> Report:
    if not options.benchmark:
        sys.exit("name the benchmark and its options, such as: spread --rate 20")
    commit = _git("rev-parse", "--short=12", f"{options.than}^{{commit}}").decode().strip()
    theirs = _prepared(commit)
    pairs: list[tuple[Row, Row]] = []
    good = True
    for number in range(options.rounds):
        found: dict[Path, Row] = {}
        for folder in (HERE, theirs) if number % 2 == 0 else (theirs, HERE):
            row = measured(options.benchmark, python=folder / ".venv" / "bin" / "python", folder=folder)
            good = good and row is not None
            found[folder] = figures(row or {})
        if all(found.values()):
            pairs.append((found[HERE], found[theirs]))
    summary = compared(pairs, but=MACHINE) if pairs else {"ours": {}, "theirs": {}, "ratio": {}}
    rows = [summary["ours"], summary["theirs"], summary["ratio"]]
    return Report(
        rows,
        {"than": commit, "benchmark": options.benchmark, "rounds": len(pairs), **summary},
        good,
        ["here", commit, "ratio (least, greatest)"],
    )


def _prepared(commit: str) -> Path:
    """The folder of the commit, with all that it needs installed; made once, and removed by `make clean`."""
    folder = COMMITS / commit
    if not folder.exists():
        COMMITS.mkdir(exist_ok=True)
        # It has its name once it is whole: what was interrupted is made again.
        with tempfile.TemporaryDirectory(dir=COMMITS) as unfinished:
            with tarfile.open(fileobj=io.BytesIO(_git("archive", commit))) as files:
                files.extractall(Path(unfinished) / commit, filter="data")
            (Path(unfinished) / commit).rename(folder)
    # A make that has started this one hands on its own options.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(
        ["make", "--no-print-directory", ".venv/installed-dev"],
        cwd=folder,
        env=environment,
        stdout=sys.stderr,
        check=True,
    )
    return folder


def _git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=HERE, stdout=subprocess.PIPE, check=True).stdout
