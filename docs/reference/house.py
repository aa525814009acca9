"""What `make check` refuses beside import-linter's contracts: a class name that two modules have, a module
and its folder that import each other, which no contract of siblings sees, and a route without a scope.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

import grimp

from scheduler_app.api.factory import routed
from scheduler_app.config import Settings

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDERS: Final = ("scheduler_app", "api", "beat")
#: What the programs of users import: an answer may have the same name there as in the rest of the package.
APART: Final = ("client", "receiver")


def class_names() -> Iterator[tuple[str, str]]:
    """The classes of all modules, private ones too, with the path of each one's module."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for statement in ast.parse(path.read_text("utf-8")).body:
                if isinstance(statement, ast.ClassDef):
                    yield statement.name, path.relative_to(ROOT).as_posix()


def duplicate_names(classes: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A line for each name that several modules give to a class; those of `APART` are compared apart."""
    holders: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, path in classes:
        room = path.split("/")[1]
        holders[name, room if room in APART else ""].append(path)
    for (name, _), paths in sorted(holders.items()):
        if len(paths) > 1:
            yield f"class {name} is defined in {' and in '.join(paths)}: give each a name of its own"


def circle(imports: Mapping[str, Iterable[str]]) -> str | None:
    """The first circle of modules that import each other, also only for their types or within functions; None
    if there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return f"modules import each other in a circle: {' imports '.join(reversed(error.args[1]))}"
    return None


def missing_scope() -> str | None:
    """The first route or form that declares no scope; None if there is none."""
    try:
        routed(Settings())
    except TypeError as error:
        return str(error)
    return None


def main() -> int:
    graph = grimp.build_graph("scheduler_app", cache_dir=None)
    found = [
        circle({each: graph.find_modules_directly_imported_by(each) for each in graph.modules}),
        missing_scope(),
    ]
    problems = [*duplicate_names(class_names()), *filter(None, found)]
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
