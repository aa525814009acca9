"""The value of a field that a request leaves out, where None is a value that it may give."""

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, TypeVar


class NotGiven(Enum):
    """The type of a field that was left out; None is a value that was given."""

    NOT_GIVEN = "NOT_GIVEN"

    def __repr__(self) -> str:
        return self.name


NOT_GIVEN: Final = NotGiven.NOT_GIVEN


_T = TypeVar("_T")


def given(value: _T | NotGiven, otherwise: _T) -> _T:
    """The value, or `otherwise` where the field was left out."""
    return otherwise if isinstance(value, NotGiven) else value


def given_fields(draft: object, names: Iterable[str]) -> dict[str, Any]:
    """Those of the fields of these names that were given, with their values."""
    return {name: value for name in names if (value := getattr(draft, name)) is not NOT_GIVEN}
