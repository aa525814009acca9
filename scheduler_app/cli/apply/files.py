"""The files of `scheduler apply`: what is to be there."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from scheduler_app.cli.apply.yaml_text import read_yaml
from scheduler_app.client import Json

#: The top-level keys in the order in which they are applied, each with what names an item.
KINDS: Final = {"calendars": "name", "destinations": "name", "blackouts": "name", "schedules": "id"}
MAX_FILES = 1_000
MAX_BYTES = 4 * 1024 * 1024
MAX_ITEMS = 10_000
_ENDINGS = (".yaml", ".yml", ".json")


class FileError(Exception):
    """A file cannot be used as it is: the message names it and says what would be right."""


@dataclass(frozen=True, slots=True)
class Item:
    """One calendar, destination, blackout or schedule, as a file describes it."""

    kind: str
    name: str
    fields: Json = field(repr=False)
    """What the API takes, without the name."""
    file: str

    def __str__(self) -> str:
        return f"{self.kind.removesuffix('s')} {self.name}"


def read_items(path: Path) -> list[Item]:
    """Everything in a file, or in the files of a folder and the folders in it, in the order of application.
    Raises FileError."""
    items: list[Item] = []
    seen: dict[tuple[str, str], str] = {}
    left = MAX_BYTES
    for file in _files(path):
        text, size = _text(file, left)
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


def _text(file: Path, left: int) -> tuple[str, int]:
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


def _items(file: str, text: str) -> Iterator[Item]:
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


def _item(file: str, kind: str, number: int, given: Any) -> Item:
    key = KINDS[kind]
    if not isinstance(given, dict) or not isinstance(given.get(key), str) or not given[key]:
        raise FileError(f"{file}: item {number} of {kind} needs {key}, a text by which it is known again")
    try:
        given[key].encode()
    except UnicodeEncodeError:
        raise FileError(f"{file}: item {number} of {kind} has a {key} that is no Unicode text") from None
    fields = {name: value for name, value in given.items() if name != key}
    return Item(kind, given[key], fields, file)
