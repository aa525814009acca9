"""What the audit says of backfilled events."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.acceptance.chaos.audit import audit

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
NAME = "s-backfill1-20260302T120000Z"


def backfilled(state: str, *, name: str = NAME) -> dict[str, Any]:
    lines = ["ready_queue", "worker_queue", "running", state] if state == "completed" else ["ready_queue"]
    lines += [] if lines[-1] == state else [state]
    return {
        "_id": name,
        "schedule_id": "s",
        "run_time": NOON,
        "kind": "backfill",
        "state": state,
        "attempt": int(state == "completed"),
        "attempts": [{"number": 1}] if state == "completed" else [],
        "status": [{"status": each, "message": ""} for each in lines],
    }


def breaks(*events: dict[str, Any], calls: int = 0) -> dict[str, int]:
    seen = [(NOON.timestamp() + number, NAME, "", "") for number in range(calls)]
    found = audit([], NOON, events, seen, set())
    kinds = ("lost", "not_owed", "repeated", "stuck", "early", "histories")
    return {kind: len(getattr(found, kind)) for kind in kinds if getattr(found, kind)}


@pytest.mark.parametrize(
    ("state", "calls", "expected"),
    [
        ("completed", 1, {}),
        ("completed", 0, {"lost": 1}),
        ("completed", 2, {"repeated": 1}),
        ("cancelled", 0, {}),
        ("cancelled", 1, {"not_owed": 1}),
        ("ready_queue", 0, {"stuck": 1}),
    ],
)
def test_it_is_called_once_or_withdrawn(state: str, calls: int, expected: dict[str, int]) -> None:
    assert breaks(backfilled(state), calls=calls) == expected


def test_two_of_one_occurrence_are_one_too_many() -> None:
    other = backfilled("completed", name="s-backfill2-20260302T120000Z")
    assert breaks(backfilled("completed"), other, calls=1) == {"lost": 1, "repeated": 2}
