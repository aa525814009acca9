"""The map in docs/developing.md draws the rooms that there are, and names files and functions that exist."""

import ast
import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "developing.md").read_text()
#: `path.py: Name.name`, or a path alone.
NAMED = sorted(set(re.findall(r"`([a-z_/]+\.py)(?:: ([A-Za-z_.]+))?`", TEXT)))
FOLDERS = sorted(set(re.findall(r"`([a-z_]+/[a-z_/]*)`", TEXT)))
DRAWING = TEXT.split("```text\n")[1].split("```")[0].splitlines()
PATHS = [
    each.relative_to(ROOT)
    for room in ("scheduler_app", "api", "beat", "deploy", "docs", "tests", "requirements")
    for each in (ROOT / room, *(ROOT / room).glob("**/*"))
    if "__pycache__" not in each.parts
]


def found(path: str) -> list[Path]:
    """What ends in a path of the map: paths leave out what their row has said already."""
    ends = (f"/{path.rstrip('/')}", f"/{path}.py")
    return [each for each in PATHS if f"/{each}".endswith(ends)]


def names_in(path: Path) -> set[str]:
    """The classes, functions and constants of a module, methods as `Class.method`."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    names.add(f"{node.name}.{inner.name}")
        elif isinstance(node, ast.FunctionDef):
            names |= {node.name, *(each.name for each in ast.walk(node) if isinstance(each, ast.FunctionDef))}
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def drawn(room: str) -> int:
    """The line of the drawing that begins a room, or names a file."""
    (line,) = [number for number, text in enumerate(DRAWING) if re.search(rf"[│ ] {room}(/|\.py)( |$)", text)]
    return line


def test_the_drawing_shows_each_room_once() -> None:
    package = ROOT / "scheduler_app"
    rooms = [path.parent.name for path in package.glob("*/__init__.py")]
    rooms += {path.stem for path in package.glob("*.py")} - {"__init__", "version"}
    for room in rooms:
        assert drawn(room), room


def test_the_drawing_shows_the_layers_in_their_order() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [each["layers"] for each in contracts if each["name"] == "Who may import whom"]
    lines = [[drawn(name.rpartition(".")[2]) for name in layer.split(" | ")] for layer in layers]
    for above, below in pairwise(lines):
        assert max(above) < min(below)


def test_the_map_names_many() -> None:
    assert len(NAMED) > 60
    assert len(FOLDERS) > 20


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_function_of_the_map_exists(path: str, name: str) -> None:
    files = found(path)
    assert files, f"there is no {path}"
    assert not name or any(name in names_in(ROOT / file) for file in files), f"there is no {name} in {path}"


@pytest.mark.parametrize("path", FOLDERS)
def test_a_folder_of_the_map_exists(path: str) -> None:
    assert found(path), f"there is no {path}"
