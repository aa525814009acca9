"""Routes and pages hand the store on to questions; they ask it nothing themselves."""

import ast
from pathlib import Path

API = Path(__file__).parents[3] / "api"


def _asked_of_the_store(source: str) -> list[int]:
    """The lines on which an attribute of a `store` is read."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and (
            (isinstance(node.value, ast.Attribute) and node.value.attr == "store")
            or (isinstance(node.value, ast.Name) and node.value.id == "store")
        )
    ]


def test_the_api_asks_the_store_nothing() -> None:
    asked = {
        str(path.relative_to(API)): lines
        for path in API.rglob("*.py")
        if (lines := _asked_of_the_store(path.read_text()))
    }
    assert asked == {}


def test_asking_is_found_by_either_name() -> None:
    source = "made.store.events.get(1)\nstore.events\nfound = heat_map(made.store)\n"
    assert sorted(set(_asked_of_the_store(source))) == [1, 2]
