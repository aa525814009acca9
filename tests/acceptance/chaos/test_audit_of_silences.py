"""The audit knows that nothing is called while a kill switch or a blackout stops it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.acceptance.chaos.audit import audit
from tests.acceptance.chaos.findings import Findings
from tests.acceptance.chaos.owed import SECOND, Era, Lateness, Owed, Script
from tests.acceptance.chaos.silences import Silence

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
BASE = NOON.timestamp()
OK = Script("/ok")
SKIPPED = {"state": "skipped", "status": [{"status": "skipped", "message": "Skipped: the blackout b"}]}


def event(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "_id": f"s1-1-{number}",
        "schedule_id": "s1",
        "revision": 1,
        "run_time": NOON + number * SECOND,
        "state": "completed",
        "attempt": 0,
        "status": [{"status": "completed", "message": ""}],
        "archived_at": NOON + 60 * SECOND,
    } | fields


def judged(silence: Silence, made: dict[str, Any], *arrivals: float, tag: str = "odd") -> Findings:
    """Of a schedule with one occurrence, a second after noon; arrivals are seconds after noon."""
    owed = Owed("s1", OK, [Era(NOON, NOON + SECOND, 1, 1)], tags=(tag,), lateness=Lateness(expire_after=90))
    seen = [(BASE + each, made["_id"], "", "") for each in arrivals]
    return audit([owed], NOON + 60 * SECOND, [made], seen, set(), [silence])


def test_a_call_before_during_and_after_a_silence() -> None:
    silence = Silence(BASE + 1, BASE + 20, "odd")
    assert not judged(silence, event(1), 1.5).broken
    assert not judged(silence, event(1), 20.5).broken
    for arrived in (2.01, 10.0, 19.9):
        assert judged(silence, event(1), arrived).withheld
        assert not judged(silence, event(1), arrived, tag="even").broken
        assert judged(Silence(BASE + 1, BASE + 20), event(1), arrived, tag="even").withheld


def test_what_a_blackout_skips_is_called_neither_within_nor_later() -> None:
    skips = Silence(BASE, BASE + 20, "odd", skips=True)
    skipped = event(1, **SKIPPED)
    assert not judged(skips, skipped).broken
    assert judged(skips, skipped, 0.5).withheld
    assert judged(skips, event(1), 0.5).withheld
    assert judged(skips, event(1), 25.0).withheld
    assert not judged(Silence(BASE + 5, BASE + 20, "odd", skips=True), event(1), 2.0).broken


@pytest.mark.parametrize(
    "silence",
    [
        Silence(BASE, BASE + 20, "odd"),
        Silence(BASE, BASE + 20, "even", skips=True),
        Silence(BASE + 5, BASE + 20, "odd", skips=True),
    ],
    ids=str,
)
def test_what_no_blackout_skips_is_lost_where_it_was_skipped(silence: Silence) -> None:
    assert judged(silence, event(1, **SKIPPED)).lost


def test_a_skipped_one_says_by_which_blackout() -> None:
    other = SKIPPED | {"status": [{"status": "skipped", "message": "Skipped: for fun"}]}
    assert judged(Silence(BASE, BASE + 20, "odd", skips=True), event(1, **other)).lost
