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
            text = file.read_text()
            # At the beginning of a line: pytest collects no function within another one.
            assert re.search(rf"^(async )?def {function}\(", text, re.M), f"{file}: {function}"


def test_none_of_them_is_left_out_of_a_run() -> None:
    """Neither skipped nor expected to fail, whatever the machine."""
    left_out = re.compile(r"pytest\.(mark\.(skip|xfail)\b|skip\(|xfail\()")
    for path, ending, _ in _TEST.findall(PAGE.read_text()):
        file = ROOT / f"{path}{ending}"
        for each in file.rglob("test_*.py") if file.is_dir() else [file]:
            assert not left_out.search(each.read_text()), each
            assert re.search(r"^(async )?def test_", each.read_text(), re.M), each


def test_every_row_names_a_test_or_says_that_there_is_none() -> None:
    rows = [
        line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "| there |" not in line
    ]
    for row in rows:
        last = row.strip("| ").rpartition(" | ")[2]
        assert _TEST.search(last) or last.startswith("none"), row
        assert "**" not in row, f"something is missing: {row}"
