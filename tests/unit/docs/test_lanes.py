"""The lanes of docs/developing.md: what left `make test` is marked, and what covers it there is not."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "developing.md").read_text()
_TABLE = TEXT.split("| test | lane | covered by |")[1].split("\n\n")[0]
_TEST = re.compile(r"`(tests/[a-z_/]+\.py): (test_\w+)`")
ROWS = [row.split(" | ") for row in _TABLE.splitlines() if _TEST.search(row)]
LANES = ("smoke", "long", "chaos")


def marks(file: str, name: str) -> str:
    """The source of all marks of a test: its own, those of its parameters and those of its file."""
    tree = ast.parse((ROOT / file).read_text())
    (test,) = (each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == name)
    of_file = [
        each.value
        for each in tree.body
        if isinstance(each, ast.Assign) and [ast.unparse(one) for one in each.targets] == ["pytestmark"]
    ]
    return " ".join(ast.unparse(each) for each in (*test.decorator_list, *of_file))


def own_marks(file: str, name: str) -> str:
    """The same without those of single parameters."""
    return re.sub(r"marks=[\w.]+", "", marks(file, name))


@pytest.mark.parametrize("row", ROWS, ids=[_TEST.findall(row[0])[0][1] for row in ROWS])
def test_a_test_that_left_is_in_its_lane_and_what_covers_it_is_in_make_test(row: list[str]) -> None:
    left, lane, covered = row
    ((file, name),) = _TEST.findall(left)
    assert f"pytest.mark.{lane.strip('`')}" in marks(file, name)
    covers = _TEST.findall(covered) or [(file, name)]
    for file, name in covers:
        assert not any(f"pytest.mark.{each}" in own_marks(file, name) for each in LANES), name


def test_there_are_rows() -> None:
    assert ROWS


def test_each_lane_of_the_table_is_a_target_of_the_makefile_and_of_ci() -> None:
    lanes = re.findall(r"^\| `make ([a-z]+)` \|", TEXT, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text()
    assert set(lanes) == {"check", "test", *LANES}
    assert all(re.search(rf"^{lane}: .*## ", makefile, re.MULTILINE) for lane in lanes)
    assert "make --no-print-directory check test smoke " in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("lane", LANES)
def test_make_test_leaves_out_every_other_lane(lane: str) -> None:
    (command,) = re.findall(r"^test: .*\n\t@(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert f"not {lane}" in command


def test_make_smoke_finds_all_tests_of_its_lane_though_it_collects_one_folder() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (lane, folder) = re.findall(r"^(smoke): .*\n\t@.* pytest (\S+) -m smoke ", makefile, re.MULTILINE)[0]
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if f"mark.{lane}" in path.read_text()]
    assert files
    assert all(path.is_relative_to(ROOT / folder) for path in files)
