"""The manual as tests read it: the README and the pages that people write, with their tables."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
#: `python -m docs.reference` makes what follows this line of docs/api.md, and all of docs/cli.md.
GENERATED = "<!-- made from the code by `make docs`"
FENCES = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")


class Table(NamedTuple):
    """A table of a page."""

    page: str
    section: str
    """The last heading above it, without its marks."""
    head: str
    rows: list[list[str]]
    text: str
    """As it stands in the page."""

    def column(self, number: int) -> list[str]:
        return [row[number] for row in self.rows]

    def names(self, number: int = 0) -> list[str]:
        """What is in code font in a column."""
        return [name for cell in self.column(number) for name in CODE.findall(cell)]


def pages() -> dict[str, str]:
    """The text that people write, by the page's name; `README` is one of them."""
    files = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
    return {file.stem: file.read_text().split(GENERATED)[0] for file in files if file.stem != "cli"}


def prose(text: str) -> str:
    """Text without its examples, as one line."""
    return " ".join(FENCES.sub("", text).split())


def tables() -> Iterator[Table]:
    for page, text in pages().items():
        section, rows = "", []
        for line in (*FENCES.sub("", text).splitlines(), ""):
            if line.startswith("#"):
                section = line.strip("# ")
            if line.startswith("|"):
                rows.append(line)
            elif rows:
                cells = [
                    [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip()[1:-1])] for row in rows[2:]
                ]
                yield Table(page, section, rows[0], cells, "\n".join(rows))
                rows = []


def table(page: str, head: str, section: str | None = None) -> Table:
    """The only table of a page with this head (in this section)."""
    (found,) = (
        each
        for each in tables()
        if (each.page, each.head) == (page, head) and section in (None, each.section)
    )
    return found
