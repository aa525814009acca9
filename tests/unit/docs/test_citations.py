"""What docstrings and comments of the package cite exists: files, modules, and names in code font."""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
SOURCES: Final = sorted(
    path for room in ("scheduler_app", "api", "beat") for path in (ROOT / room).rglob("*.py")
)
FILES: Final = [
    f"/{path.relative_to(ROOT)}"
    for path in (
        *SOURCES,
        *(ROOT / "deploy").rglob("*.py"),
        *(ROOT / "docs").rglob("*.py"),
        *(ROOT / "tests").rglob("*.py"),
    )
]

#: `a/file.py`, `scheduler_app.a.module`; and in code font `name`, `name()`, `module.name` and `Class.name`.
FILE: Final = re.compile(r"[\w/.-]*\w\.py\b")
MODULE: Final = re.compile(r"\bscheduler_app(?:\.\w+)+")
NAME: Final = re.compile(r"`((?!\d)\w+(?:\.(?!\d|py\b)\w+)*)(?:\(\))?`")
#: Names of other programs, which no code of ours has.
OF_OTHERS: Final = {
    *("api.py", "manage.py", "redis.py"),
    *("ipaddress.is_global", "celery.schedules.crontab_parser", "bson.Int64", "redis.Redis", "preexec_fn"),
    "ProducerPool.prepare",
    *("Curl_retry_request", "curl_multi_perform", "curl_multi_socket_action", "curl_multi_socket_all"),
    *("EX_USAGE", "Jn", "Mm.w.d", "atomic", "decode_result", "inprog", "lazy", "prefork"),
    "dryrun",  # a misspelt parameter
}


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Of the module, its classes and functions, and those below fields."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.value


def names_in(tree: ast.AST) -> set[str]:
    """What code names: variables, arguments, definitions, attributes, imports, the words of its strings."""
    found: set[str] = set()
    said = set(docstrings(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in said:
            found.update(re.findall(r"\w+", node.value))
        for field in ("id", "attr", "arg", "name", "asname", "module"):
            if isinstance(value := getattr(node, field, None), str):
                found.update(value.split("."))
    return found


@cache
def members() -> dict[str, set[str]]:
    """The names in each module, folder and class, by its own name; a class has those of its bases, too.

    They are read by the first test that asks: every process of a run imports this file.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for path in SOURCES:
        tree = ast.parse(path.read_text("utf-8"))
        module = path.parent.name if path.name == "__init__.py" else path.stem
        found[module] |= names_in(tree)
        found[path.parent.name].add(module)
        found[path.parent.parent.name].add(path.parent.name)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name] |= names_in(node).union(
                    *(found[each] for each in map(ast.unparse, node.bases))
                )
    found["scheduler_app"] |= {"api", "beat"}
    return found


@cache
def used() -> set[str]:
    return set(members()).union(*members().values())


def unknown(text: str) -> Iterator[str]:
    """What the text cites and nobody has."""
    for cited in FILE.findall(text):
        if cited not in OF_OTHERS and not any(file.endswith(f"/{cited.lstrip('/')}") for file in FILES):
            yield cited
    for cited in {*MODULE.findall(text), *NAME.findall(text)} - OF_OTHERS:
        words = cited.split(".")
        if not used().issuperset(words) or any(
            word not in members().get(owner, used()) for owner, word in pairwise(words)
        ):
            yield cited


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_is_cited_exists(path: Path) -> None:
    text = path.read_text("utf-8")
    said = [(each.lineno, str(each.value)) for each in docstrings(ast.parse(text))]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            said.append((token.start[0], token.string))
    assert [(line, cited) for line, words in sorted(said) for cited in unknown(words)] == []


@pytest.mark.parametrize(
    "text",
    [
        "see domain/tenants.py",
        "as scheduler_app.domain.kinds says",
        "`domain.tenants` says",
        "`Schedule.voids`",
        "by `_existing_or_none()`",
        "`WITHOUT_ANYTHING`",
    ],
)
def test_what_does_not_exist_is_found(text: str) -> None:
    assert list(unknown(text))
