"""The table of the manual that says with which releases of each server the tests ran."""

import re
from dataclasses import dataclass
from pathlib import Path

_PAGE = Path(__file__).parents[1] / "docs" / "operations.md"
_ROW = re.compile(r"^\| (\w+) \| ([\d.]+) \| ([\d., ]+) \| ([\d.]+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Releases:
    """A row: `ran_on` are complete versions; `compose` is the tag of the image."""

    oldest: str
    ran_on: tuple[str, ...]
    compose: str


def releases() -> dict[str, Releases]:
    """By the server's name."""
    found = _ROW.findall(_PAGE.read_text().split("## With which releases")[1].split("\n## ")[0])
    return {name: Releases(oldest, tuple(ran_on.split(", ")), tag) for name, oldest, ran_on, tag in found}


def assert_named(server: str, version: str) -> None:
    """Fails where the table does not say that the tests ran on this release, whatever its patch."""
    named = releases()[server].ran_on
    assert _series(version) in {_series(each) for each in named}, (
        f"these tests ran on {server} {version}: add it to the table of releases in docs/operations.md"
    )


def _series(version: str) -> tuple[str, ...]:
    return tuple(version.split(".")[:2])
