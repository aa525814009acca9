"""The value of a field that a request leaves out, where None is a value that it may give."""

from typing import Any


class _NotGiven:
    def __repr__(self) -> str:
        return "NOT_GIVEN"


#: A field that was left out; None is a value that was given.
NOT_GIVEN: Any = _NotGiven()
