"""Writes the tables of docs/developing.md that follow a request and an occurrence from file to file.

Which files are entered, and in which order, is traced over real servers. What a file does there is a
sentence that a person writes into the table; it stays with its file. `python -m docs.reference.ways` writes
the tables, and prints how many files there are.
"""

import re
import tempfile
from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import count
from pathlib import Path

from scheduler_app.embedded import Mongod, Redis
from tests.traced.ways import THREADS, Step, Trace, traced

PAGE = Path(__file__).parents[1] / "developing.md"
END = "<!-- end of the way -->"
_ROW = re.compile(r"^\| \d+ \| `(?P<file>[^`]+)` \| (?P<sentence>.*?) \|$", re.MULTILINE)


def begin(way: str) -> str:
    """The line above a table."""
    return f"<!-- the way of one {way}: files and order are written by `make docs`, sentences by people -->\n"


def with_tables(text: str, traces: dict[str, Trace]) -> str:
    """The page with the tables of these ways made anew. Raises ValueError where it has no place for one."""
    for way, trace in traces.items():
        before, old, after = _parts(text, way)
        text = "".join([before, begin(way), _table(trace.steps, dict(_ROW.findall(old))), END, after])
    return text


def faults(text: str, way: str, trace: Trace) -> list[str]:
    """What is wrong with the table of a way in the page, a sentence each."""
    table = _parts(text, way)[1]
    sentences = dict(_ROW.findall(table))
    entered, listed = [shown(file) for file in trace.files], list(sentences)
    missing, superfluous = set(entered) - set(listed), set(listed) - set(entered)
    found = [f"{file} is entered and missing" for file in entered if file in missing]
    found += [f"{file} is listed and not entered" for file in listed if file in superfluous]
    found += [f"{file} has no sentence" for file, sentence in sentences.items() if not sentence]
    found += _out_of_order(
        [file for file in listed if file not in superfluous],
        [file for file in entered if file not in missing],
    )
    if not found and table != _table(trace.steps, sentences):
        found.append("it is not as `make docs` writes it")
    return found


def shown(file: str) -> str:
    """A file as the page names it."""
    return file.removeprefix("scheduler_app/")


def _parts(text: str, way: str) -> tuple[str, str, str]:
    """What stands before the table of a way, the table, and what follows."""
    before, marker, rest = text.partition(begin(way))
    table, end, after = rest.partition(END)
    if not (marker and end):
        raise ValueError(f"docs/developing.md has no table between {begin(way)}and {END}")
    return before, table, after


def _table(steps: Iterable[Step], sentences: dict[str, str]) -> str:
    lines = ["| | file | what it does there |", "|---|---|---|"]
    numbers = count(1)
    for step in steps:
        lines.append(f"| | **{step.thread}** | |")
        lines += [
            f"| {next(numbers)} | `{file}` | {sentences.get(file, '')} |" for file in map(shown, step.files)
        ]
    return "\n".join([*lines, ""])


def _out_of_order(listed: list[str], entered: list[str]) -> list[str]:
    """Says which of the same files stand elsewhere in the table than on the way."""
    same = SequenceMatcher(a=listed, b=entered, autojunk=False).get_matching_blocks()
    in_place = {file for block in same for file in listed[block.a : block.a + block.size]}
    return [
        f"{file} is out of order: it is number {entered.index(file) + 1}"
        for file in listed
        if file not in in_place
    ]


def main() -> None:
    traces = {}
    with (
        tempfile.TemporaryDirectory() as mongo,
        tempfile.TemporaryDirectory() as redis,
        Mongod(Path(mongo)) as mongod,
        Redis(Path(redis)) as broker,
    ):
        for way in THREADS:
            found = traced(way, mongod.uri, broker.url)
            traces[way] = found[0]
            for trace in found:
                print(f"{way}: {len(trace.files)} files, {trace.moves} moves between them")
    text = with_tables(PAGE.read_text(), traces)
    PAGE.write_text(text)
    for way, trace in traces.items():
        for fault in faults(text, way, trace):
            print(f"{way}: {fault}")


if __name__ == "__main__":
    main()
