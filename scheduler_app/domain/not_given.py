"""The value of a field that a request leaves out, where None is a value that it may give."""

from enum import Enum
from typing import Final, TypeVar


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
