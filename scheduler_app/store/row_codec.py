"""Stores fields of a resource, and reads them, by the rows of its table (`domain/resources`)."""

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

from scheduler_app.domain import resource_fields as types
from scheduler_app.domain.ids import SEPARATOR
from scheduler_app.domain.queues import is_queue
from scheduler_app.domain.resource_fields import FieldType, Null, ResourceField, default_at
from scheduler_app.domain.retry import Codes
from scheduler_app.domain.stored_fields import (
    MAX_WHOLE,
    Corrupt,
    flag,
    instant,
    items,
    number,
    one_of,
    text,
    whole,
)
from scheduler_app.store.mongo import Document

#: Most documents have the same ones, and reading them is half of what reading a schedule costs.
_codes = lru_cache(maxsize=256)(Codes)


class RowCodec:
    """Stores the fields of `rows` as `kind`, a dataclass, has them."""

    def __init__(self, kind: type, rows: Iterable[ResourceField]) -> None:
        self._rows = [
            (
                row.key,
                default_at(kind, row.key) if row.sparse else None,
                row.sparse or row.null is not Null.NEVER,
                row.type,
                row.path,
            )
            for row in rows
        ]

    def document(self, holder: object) -> Document:
        """What is stored of `holder`; None for what is left out."""
        return {
            key: _stored(value) if (value := getattr(holder, key)) != default else None
            for key, default, *_ in self._rows
        }

    def read(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with which `kind` is made, without those that are not stored because they are the
        default. Raises Corrupt."""
        found: dict[str, Any] = {}
        for key, _, may_be_missing, kind, name in self._rows:
            value = document.get(key)
            if value is not None or not may_be_missing:
                found[key] = read_value(kind, value, name)
        return found


def _stored(value: Any) -> Any:
    if isinstance(value, Codes):
        value = value.written
    return list(value) if isinstance(value, tuple) else value.value if isinstance(value, Enum) else value


def read_value(kind: FieldType, value: Any, name: str) -> Any:
    """What a resource has of a stored value. Raises Corrupt, which names the field."""
    match kind:
        case types.Word():
            word = one_of(value, name, kind.words)
            return kind.kind(word) if kind.kind else word
        case types.Name(of="queue"):
            if not is_queue(value):
                raise Corrupt(f"{name} is no name that a queue may have")
            return value
        case types.Name(of="destination"):
            return destination_name(value, name)
        case types.Number():
            least = kind.least if kind.least_stored is None else kind.least_stored
            return number(value, name, least=least, most=kind.most)
        case types.Whole():
            return whole(value, name, least=kind.least or 0, most=kind.most or MAX_WHOLE)
        case types.Flag():
            return flag(value, name)
        case types.Moment():
            return instant(value, name)
        case types.Statuses():
            return read_codes(value, name)
        case types.ListOf():
            found = tuple([read_value(kind.item, each, f"an item of {name}") for each in items(value, name)])
            if kind.least and not found:
                raise Corrupt(f"{name} is empty")
            return found
        case _:
            return text(value, name)


def destination_name(value: Any, name: str) -> str:
    """The name of a destination of the document's own tenant. Raises Corrupt."""
    if SEPARATOR in text(value, name) or not value:
        raise Corrupt(f"{name} is no name that a destination may have")
    return str(value)


def read_codes(value: Any, name: str) -> Codes:
    """Raises Corrupt."""
    # To a cache 5.0 and True are numbers like 5 and 1, and a list has no hash.
    written = [
        code if isinstance(code, str) else whole(code, f"an item of {name}") for code in items(value, name)
    ]
    try:
        return _codes(tuple(written))
    except ValueError as error:
        raise Corrupt(f"{name}: {error}") from None
