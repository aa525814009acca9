"""The audit of overlapping runs sees each kind of break."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.overlaps import broken_promises

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def event(second: int, ended: float | None, state: str = "completed", last: str = "said") -> dict[str, Any]:
    """Of the occurrence at that second; it ended so many seconds after noon."""
    at = NOON + timedelta(seconds=second)
    found: dict[str, Any] = {
        "_id": f"e{second}",
        "run_time": at,
        "state": state,
        "created_at": NOON - timedelta(minutes=1),
        "status": [{"time": at, "message": "Claimed by w"}, {"time": at, "message": last}],
    }
    return found if ended is None else found | {"archived_at": NOON + timedelta(seconds=ended)}


def at(*seconds: float) -> list[float]:
    return [NOON.timestamp() + each for each in seconds]


def skipped(second: int, ended: float, policy: str = "skip", named: str = "e0") -> dict[str, Any]:
    said = f"Skipped: run_overlap is {policy}, and the earlier event {named} is running"
    return event(second, ended, "skipped", said)


def test_what_keeps_its_policy_is_not_named() -> None:
    events = [event(0, 2.5), skipped(1, 1.0), skipped(2, 2.0), event(3, 3.5)]
    assert broken_promises("skip", events, {"e0": at(0), "e3": at(3)}) == []
    events = [event(0, 1.5), event(1, 3.0), event(2, 4.0)]
    assert broken_promises("queue", events, {"e0": at(0), "e1": at(1.5), "e2": at(3.0)}) == []


@pytest.mark.parametrize(
    ("policy", "events", "arrivals", "said"),
    [
        ("skip", [event(0, 2.5), event(1, 1.5)], {"e0": at(0), "e1": at(1)}, "while e0 was not finished"),
        ("queue", [event(0, None, "running"), event(1, 1.5)], {"e1": at(1)}, "while e0 was not finished"),
        ("skip", [event(0, 0.5), skipped(3, 3.0)], {"e0": at(0)}, "with 0 unfinished before it, not 1"),
        ("skip", [event(0, 2.5), skipped(1, 1.0)], {"e1": at(1)}, "was called, though skipped"),
        ("skip", [event(0, 2.5), skipped(1, 1.0, named="?")], {}, "names neither"),
        ("queue", [event(0, 2.5), skipped(1, 1.0, "queue")], {}, "with 1 unfinished before it, not 3"),
        ("cancel_earlier", [event(0, 2.5), skipped(1, 1.0)], {}, "its policy is cancel_earlier"),
    ],
)
def test_a_break_is_named(
    policy: str, events: list[dict[str, Any]], arrivals: dict[str, list[float]], said: str
) -> None:
    assert any(said in each for each in broken_promises(policy, events, arrivals, queue_limit=2))


def test_an_end_counts_from_when_it_was_written_and_a_skip_from_when_it_was_judged() -> None:
    events = [event(0, 0.5), skipped(3, 9.0)]
    assert broken_promises("skip", events, {"e0": at(0)}) != []
    assert broken_promises("skip", events, {"e0": at(0)}, written={"e0": at(2.9)[0]}) != []
    assert broken_promises("skip", events, {"e0": at(0)}, written={"e0": at(3.1)[0]}) == []
    # Its worker stood still after it had judged it.
    assert broken_promises("skip", [event(0, 3.5), skipped(3, 9.0)], {"e0": at(0)}) == []


def test_an_attempt_that_was_claimed_after_a_later_one_began_is_named() -> None:
    earlier = event(0, 9.0)
    earlier["status"].insert(1, {"time": NOON + timedelta(seconds=5), "message": "Claimed by w"})
    events = [earlier, event(1, 1.5)]
    assert broken_promises("cancel_earlier", events, {"e0": at(0.1), "e1": at(1)}) == []
    found = broken_promises("cancel_earlier", events, {"e0": at(0.1, 5.1), "e1": at(1)})
    assert any("after a later one" in each for each in found)
