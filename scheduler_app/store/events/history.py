"""How an event's lists grow: append-only, and bounded."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scheduler_app.domain.event import State

#: A list keeps its first line and this many of the last ones. Counters count all.
KEPT_LAST = 50


def line(now: datetime, state: State, message: str) -> dict[str, Any]:
    """A line of an event's `status` list, as in the seed."""
    return {"time": now, "status": state.value, "message": message}


def appended(field: str, entry: Mapping[str, Any] | str) -> dict[str, Any]:
    """The expression of `field` with `entry` at its end, for an update with a pipeline.

    `entry` is a value, or the path of the field that holds it. A value is a `$literal`, because an answer's
    text may begin with `$`.
    """
    item = [entry] if isinstance(entry, str) else [{"$literal": dict(entry)}]
    return {
        "$let": {
            "vars": {"list": {"$ifNull": [f"${field}", []]}},
            "in": {
                "$cond": [
                    {"$lte": [{"$size": "$$list"}, KEPT_LAST]},
                    {"$concatArrays": ["$$list", item]},
                    {
                        "$concatArrays": [
                            {"$slice": ["$$list", 1]},
                            {"$slice": ["$$list", 1 - KEPT_LAST]},
                            item,
                        ]
                    },
                ]
            },
        }
    }
