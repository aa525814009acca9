"""The page of the projects before this one names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "seeds.md"
_TEST = re.compile(r"`(tests/[a-z0-9_/]+)(\.py)?(?:::(test_[a-z0-9_]+))?`")


def test_every_test_that_the_page_names_exists() -> None:
    named = _TEST.findall(PAGE.read_text())
    assert len(named) > 50
    for path, ending, function in named:
        file = ROOT / f"{path}{ending}"
        assert file.exists(), file
        if function:
            assert f"def {function}(" in file.read_text(), f"{file}: {function}"


def test_every_row_names_a_test_or_says_that_there_is_none() -> None:
    rows = [
        line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "| there |" not in line
    ]
    for row in rows:
        last = row.strip("| ").rpartition(" | ")[2]
        assert _TEST.search(last) or last.startswith("none"), row
        # What is missing is said in bold.
        assert not last.startswith("none yet") or "**to come**" in row, row
