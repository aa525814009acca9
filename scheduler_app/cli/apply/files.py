"""The files of `scheduler apply`: reads what is to be there, and writes what is there. They are YAML as data:
bounded, without anchors and tags, and without words that mean something else. Of YAML 1.1 only what JSON
has is read: `no` and `on` are text, and so are dates and 12:30:00.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Final

import yaml

from scheduler_app.client import Json, Scheduler

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


#: The top-level keys in the order in which they are applied, each with what names an item.
KINDS: Final = {
    "calendars": "name",
    "destinations": "name",
    "blackouts": "name",
    "notifications": "name",
    "schedules": "id",
}
MAX_FILES = 1_000
MAX_BYTES = 4 * 1024 * 1024
MAX_ITEMS = 10_000
_ENDINGS = (".yaml", ".yml", ".json")


class FileError(Exception):
    """A file cannot be used as it is: the message names it and says what would be right."""


@dataclass(frozen=True, slots=True)
class ApplyItem:
    """One calendar, destination, blackout, notification or schedule, as a file describes it."""

    kind: str
    name: str
    fields: Json = field(repr=False)
    """What the API takes, without the name."""
    file: str

    def __str__(self) -> str:
        return f"{self.kind.removesuffix('s')} {self.name}"


def read_items(path: Path) -> list[ApplyItem]:
    """Everything in a file, or in the files of a folder and the folders in it, in the order of application.
    Raises FileError."""
    items: list[ApplyItem] = []
    seen: dict[tuple[str, str], str] = {}
    left = MAX_BYTES
    for file in _files(path):
        text, size = _file_text(file, left)
        left -= size
        for item in _items(str(file), text):
            key = (item.kind, item.name)
            if key in seen:
                raise FileError(f"{file}: {item} is in {seen[key]} already")
            seen[key] = str(file)
            items.append(item)
            if len(items) > MAX_ITEMS:
                raise FileError(f"{path}: there are more than {MAX_ITEMS:,} items; apply parts of them")
    order = list(KINDS)
    return sorted(items, key=lambda item: order.index(item.kind))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.rglob("*") if each.suffix in _ENDINGS and each.is_file())
    if not found:
        raise FileError(f"{path}: there is no file whose name ends with {', '.join(_ENDINGS)}")
    if len(found) > MAX_FILES:
        raise FileError(f"{path}: there are more than {MAX_FILES:,} files")
    return found


def _file_text(file: Path, left: int) -> tuple[str, int]:
    try:
        with file.open("rb") as opened:
            raw = opened.read(left + 1)
    except OSError as error:
        raise FileError(f"{file}: {error.strerror}") from None
    if len(raw) > left:
        raise FileError(f"{file}: the files together exceed {MAX_BYTES // 1024**2} MiB; apply parts of them")
    try:
        return raw.decode(), len(raw)
    except UnicodeDecodeError:
        raise FileError(f"{file}: is no UTF-8 text") from None


def _items(file: str, text: str) -> Iterator[ApplyItem]:
    try:
        content = read_yaml(text)
    except ValueError as error:
        raise FileError(f"{file}: {error}") from None
    if content is None:
        return
    if not isinstance(content, dict):
        raise FileError(f"{file}: must have the keys {', '.join(KINDS)} at its top")
    for kind, listed in content.items():
        if kind not in KINDS:
            raise FileError(f"{file}: {kind!r} is not one of the keys {', '.join(KINDS)}")
        if not isinstance(listed, list):
            raise FileError(f"{file}: {kind} must be a list, each item of which begins with a dash")
        for number, given in enumerate(listed, 1):
            yield _item(file, kind, number, given)


def _item(file: str, kind: str, number: int, given: Any) -> ApplyItem:
    key = KINDS[kind]
    if not isinstance(given, dict) or not isinstance(given.get(key), str) or not given[key]:
        raise FileError(f"{file}: item {number} of {kind} needs {key}, a text by which it is known again")
    try:
        given[key].encode()
    except UnicodeEncodeError:
        raise FileError(f"{file}: item {number} of {kind} has a {key} that is no Unicode text") from None
    fields = {name: value for name, value in given.items() if name != key}
    return ApplyItem(kind, given[key], fields, file)


def exported_pieces(
    scheduler: Scheduler, schedules: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[str, str | None]]:
    """Yields the file in pieces of text, each with the name of what could not be read in its place, or None.

    `schedules` are those of the file, as the API exports them. Raises SchedulerError.
    """
    found: dict[str, Iterable[Mapping[str, Any]]] = {
        "calendars": (scheduler.calendars.get(each["name"]) for each in scheduler.calendars.list()),
        "destinations": scheduler.destinations.list(),
        "blackouts": scheduler.blackouts(),
        "notifications": scheduler.notifications(),
        "schedules": schedules,
    }
    fields = _file_fields()
    for kind in KINDS:
        begun = False
        for each in found[kind]:
            if "corrupt" in each:
                yield "", f"{kind.removesuffix('s')} {each['name']}: {each['corrupt']}"
                continue
            item = {name: value for name, value in each.items() if name in fields[kind] and value is not None}
            yield ("" if begun else f"{kind}:\n") + _item_text(item), None
            begun = True


def _file_fields() -> dict[str, frozenset[str]]:
    """The fields that an item of each kind may have in a file."""
    schema = json.loads(resources.files("scheduler_app.cli.apply").joinpath("schema.json").read_text())
    named = {kind: schema["properties"][kind]["items"]["$ref"].rpartition("/")[2] for kind in KINDS}
    return {kind: frozenset(schema["$defs"][name]["properties"]) for kind, name in named.items()}


def _item_text(item: Mapping[str, Any]) -> str:
    return write_yaml([json.loads(json.dumps(item, default=dict))])
