"""The fields of a kind of action in JSON: how requests give them, and how answers show them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from marshmallow.fields import Field

from scheduler_app.domain.action import Action

A = TypeVar("A", bound=Action)


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionFields(Generic[A]):
    """A kind's fields beside `type`. The schemas of requests, answers and files, and the manual, follow."""

    meaning: str
    """What such an action is, without its full stop: for the specification and the manual."""
    input: Mapping[str, Field[Any]]
    """Those that such an action must have are `required`."""
    output: Mapping[str, Field[Any]]
    read: Callable[[dict[str, Any]], A]
    """Makes the action of what `input` has read. Raises ValidationError, whose messages are those of the
    fields."""
    shown: Callable[[A], dict[str, object]]
    """Returns what `output` writes: without fields that have their default, and with masks for secrets."""
