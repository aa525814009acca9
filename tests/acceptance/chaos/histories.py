"""Whether an event's history is one that it may have."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

#: The moves that *The life of an event* knows, written down apart from the product's own table.
MOVES = {
    # From one wait to another: put off, or held by a kill switch and released again.
    "ready_queue": {"worker_queue", "running", "cancelled", "ready_queue", "expired", "skipped"},
    "worker_queue": {"running", "ready_queue", "cancelled", "completed", "error", "retrying", "expired"},
    "running": {"completed", "retrying", "error", "ready_queue", "cancelled", "skipped", "expired"},
    "retrying": {
        *("ready_queue", "worker_queue", "running", "completed", "error", "retrying", "cancelled"),
        *("expired", "skipped"),
    },
}


def wrong_history(event: Mapping[str, Any]) -> list[str]:
    """What is wrong with it: it has one final line, at the end; every move is a known one; the attempts are
    numbered in turn."""
    states = [line["status"] for line in event["status"]]
    wrong = [
        f"{before} → {after}" for before, after in pairwise(states) if after not in MOVES.get(before, ())
    ]
    if states and states[-1] != event["state"]:
        wrong.append(f"ends with {states[-1]} and is {event['state']}")
    numbers = [attempt["number"] for attempt in event.get("attempts", ()) if not attempt.get("late")]
    if numbers != list(range(1, event["attempt"] + 1)):
        wrong.append(f"attempts {numbers}, counted {event['attempt']}")
    return [f"{event['_id']}: {'; '.join(wrong)}: {states}"] if wrong else []
