"""One update of many documents that gives each document values of its own.

As many single updates in one bulk write take mongod two and a half times as long (measured on outcomes: 260
µs an event against 105), because each of them is a statement of its own.
"""

from collections.abc import Sequence
from typing import Any


def own_value(ids: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """The expression of a document's own value: the value at the position of its `_id` among `ids`.

    The values are literals: text in them that looks like the path of a field is text.
    """
    place = {"$indexOfArray": [{"$literal": list(ids)}, "$_id"]}
    return {"$arrayElemAt": [{"$literal": list(values)}, place]}


def or_unset(path: str) -> dict[str, Any]:
    """The expression of the field at `path`; it removes the field where `path` is missing."""
    return {"$ifNull": [path, "$$REMOVE"]}
