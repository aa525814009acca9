"""An object of the API's JSON as a frozen value, which may be read like the dict that it was made of."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import FrozenInstanceError
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Self, dataclass_transform, get_args, get_origin, get_type_hints

from scheduler_app.client.errors import SchedulerError

Json = dict[str, Any]
#: What a repr shows: nothing that may be secret.
_SHOWN = ("id", "state", "status", "run_time", "count")


class _Renamed:
    """Stands for the default of a field that has another name in JSON, and no default."""

    def __init__(self, wire_name: str) -> None:
        self.wire_name = wire_name


def renamed(name: str) -> Any:
    """A required field that has another name in JSON."""
    return _Renamed(name)


@dataclass_transform(eq_default=False, frozen_default=True, kw_only_default=True, field_specifiers=(renamed,))
class Record(Mapping[str, Any]):
    """Attributes have Python's types: instants are datetimes, lists are tuples, None is what is absent.

    As a mapping it has the API's JSON itself, with all fields, also those of a newer API: `record["id"]`,
    `record.get("tags")`, `dict(record)`. It is equal to a dict of the same content.
    """

    # A decorator of dataclasses would compile three functions for each class: a tenth of the time in which
    # a command starts.
    _json: Json

    def __init__(self, _json: Json, **values: Any) -> None:
        self.__dict__["_json"] = _json
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    @classmethod
    def of(cls, value: object, *, as_json: Json | None = None) -> Self:
        """Reads an object of JSON; `as_json` is what the record is as a mapping, where that is not `value`.
        Raises SchedulerError, which names the field, where the object does not fit."""
        if not isinstance(value, dict):
            raise SchedulerError(f"not an answer of the API: {cls.__name__} must be an object")
        values: Json = {}
        for name, wire_name, read, default in _readers(cls):
            if (found := value.get(wire_name)) is None:
                if default is _REQUIRED:
                    raise SchedulerError(f"not an answer of the API: {cls.__name__} lacks {wire_name!r}")
                continue
            try:
                values[name] = read(found)
            except (TypeError, ValueError):
                message = f"not an answer of the API: {wire_name!r} of {cls.__name__} has another type"
                raise SchedulerError(message) from None
        return cls(value if as_json is None else as_json, **values)

    def __getitem__(self, name: str) -> Any:
        return self._json[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._json)

    def __len__(self) -> int:
        return len(self._json)

    def __repr__(self) -> str:
        shown = {name: getattr(self, name, None) for name in _SHOWN}
        words = [f"{name}={value!r}" for name, value in shown.items() if value is not None]
        return f"{type(self).__name__}({', '.join(words)})"


_Read = Callable[[Any], Any]


_REQUIRED = object()


@cache
def _readers(kind: type[Record]) -> tuple[tuple[str, str, _Read, object], ...]:
    """For each field: its name here and in JSON, what reads it, and its default."""
    found = []
    for name, hint in get_type_hints(kind).items():
        default: Any = getattr(kind, name, _REQUIRED)
        wire_name = name
        if isinstance(default, _Renamed):
            default, wire_name = _REQUIRED, default.wire_name
        if name != "_json":
            found.append((name, wire_name, _reader(hint), default))
    return tuple(found)


def _reader(hint: Any) -> _Read:
    """What makes a value of the type `hint` of a value of JSON."""
    if get_origin(hint) is UnionType:
        hint = next(each for each in get_args(hint) if each is not NoneType)
    if get_origin(hint) is tuple:
        read = _reader(get_args(hint)[0])
        return lambda values: tuple(read(value) for value in values)
    if hint is datetime:
        return datetime.fromisoformat
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint.of
    return lambda value: value
