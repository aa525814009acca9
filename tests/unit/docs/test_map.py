"""The map in docs/developing.md names files and functions that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "developing.md").read_text()
#: `path.py: Name.name`, or a path alone.
NAMED = sorted(set(re.findall(r"`([a-z_/]+\.py)(?:: ([A-Za-z_.]+))?`", TEXT)))
FOLDERS = sorted(set(re.findall(r"`([a-z_]+/[a-z_/]*)`", TEXT)))
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
