"""A use case asks another one by its public verbs, and never through its store."""

import ast
from pathlib import Path

USECASES = Path(__file__).parents[3] / "scheduler_app" / "usecases"
#: What a named tuple offers everybody.
PUBLIC = {"_replace", "_fields", "_asdict"}


def _reaches_into(node: ast.Attribute, own: set[str]) -> bool:
    """Whether an expression reads a private part of something else, or something of another one's store;
    `own` are the parameters by which a function of this file takes its own use case."""
    if isinstance(node.value, ast.Name) and node.value.id in own:
        return False
    if node.attr.startswith("_") and not node.attr.endswith("__"):
        return node.attr not in PUBLIC
    return node.attr == "store"


def _found(source: str, own: set[str]) -> list[int]:
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and _reaches_into(node, own)
    ]


def test_no_use_case_reaches_into_another() -> None:
    own = {"creation.py": {"self", "creation"}, "tenant_imports.py": {"self", "TenantImport"}}
    found = {
        path.name: lines
        for path in USECASES.rglob("*.py")
        if (lines := _found(path.read_text(), own.get(path.name, {"self"})))
    }
    assert found == {}


def test_reaching_is_found() -> None:
    source = "manager.store.schedules\nself.creation._new\nself.store\nself._store\nrow._replace()\n"
    assert sorted(_found(source, {"self"})) == [1, 2]
