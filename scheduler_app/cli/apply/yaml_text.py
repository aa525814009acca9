"""YAML as data: bounded, without anchors and tags, and without words that mean something else.

Of YAML 1.1 only what JSON has is read: `no` and `on` are text, and so are dates and 12:30:00.
"""

import re
from typing import Any, Final

import yaml

MAX_DEPTH: Final = 20
#: Names count too. Reading this many takes some seconds.
MAX_VALUES: Final = 300_000


#: No line is folded: a change of a field is a change of one line.
_WIDTH: Final = 1_000_000
_UNICODE_BREAKS: Final = re.compile("[\\x85\\u2028\\u2029]")


class _Dumper(yaml.SafeDumper):
    """Writes no anchors, which are not read, and the lines of a rule below each other.

    It quotes text that looks like another kind of value to YAML 1.1, as any reader may be, or to ours: a
    calendar's name of `734478e1` is a number to one of them only.
    """

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        # PyYAML folds the line breaks of Unicode, and reads a space in their place, unless it escapes them.
        style = '"' if _UNICODE_BREAKS.search(data) else "|" if "\n" in data else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)


class _Loader(yaml.SafeLoader):
    """Reads plain words as YAML 1.2's JSON schema does."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own name

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._nested = self._values = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _error("anchors and aliases (& and *) are not read", event)
        if getattr(event, "tag", None):
            raise _error("tags (!) are not read", event)
        self._values += 1
        if self._values > MAX_VALUES:
            raise _error(f"it holds more than {MAX_VALUES:,} names and values; split it", event)
        if self._nested == MAX_DEPTH:
            raise _error(f"it is nested deeper than {MAX_DEPTH} levels", event)
        self._nested += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._nested -= 1

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        names: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _error("a name must be text", key)
            if key.value in names:
                raise _error(f"{key.value!r} is there twice", key)
            names.add(key.value)
        return super().construct_mapping(node, deep=deep)


def _error(problem: str, at: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=at.start_mark)


_NUMBER_STARTS = list("-0123456789")
for _tag, _pattern, _first in (
    ("null", r"null|~|", ["n", "~", ""]),
    ("bool", r"true|false", ["t", "f"]),
    ("int", r"-?(0|[1-9][0-9]{0,18})", _NUMBER_STARTS),
    ("float", r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?", _NUMBER_STARTS),
):
    for _each in (_Loader, _Dumper):
        _each.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})\\Z"), _first)


def read_yaml(text: str) -> Any:
    """The one document in a text. Raises ValueError, which names the line."""
    try:
        # This loader is a SafeLoader.
        return yaml.load(text, Loader=_Loader)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"{where}{error.problem or error}") from None
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None


def write_yaml(data: Any) -> str:
    """The text of data that JSON could hold. `read_yaml` reads the same from it, unless it is nested deeper
    than `MAX_DEPTH` levels or has whole numbers beyond 64 bits."""
    written: str = yaml.dump(data, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=_WIDTH)
    return written
