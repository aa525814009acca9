"""The audit accepts what expired by its schedule's policy, and nothing else that was not sent."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.acceptance.chaos.audit import audit
from tests.acceptance.chaos.findings import Findings
from tests.acceptance.chaos.owed import SECOND, Era, Lateness, Owed, Script

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
OK = Script("/ok")


def owed(lateness: Lateness, count: int) -> Owed:
    era = Era(NOON, NOON + SECOND, 1, count)
    return Owed("s1", OK, [era], lateness=lateness)


def expired(number: int, late: float, **fields: Any) -> dict[str, Any]:
    moment = NOON + number * SECOND
    at = moment + late * SECOND
    return {
        "_id": f"s1-1-{number}",
        "schedule_id": "s1",
        "revision": 1,
        "run_time": moment,
        "state": "expired",
        "attempt": 0,
        "status": [{"status": "expired", "message": "Expired: late"}],
        "created_at": at,
        "archived_at": at,
    } | fields


def record(first: int, last: int, count: int, late: float = 100.0) -> dict[str, Any]:
    missed = {"first": NOON + first * SECOND, "last": NOON + last * SECOND, "count": count}
    return expired(last, late, _id=f"s1-missed-{first}", missed=missed)


def judged(of: Owed, *events: dict[str, Any], calls: tuple[str, ...] = ()) -> Findings:
    seen = [(NOON.timestamp() + 50, key, "", "") for key in calls]
    return audit([of], NOON + 60 * SECOND, events, seen, set())


def test_what_a_policy_gave_up_is_accepted() -> None:
    assert not judged(owed(Lateness("none", 10), 2), expired(1, 11), expired(2, 11)).broken
    assert not judged(owed(Lateness("latest", 10), 2), expired(1, 11), expired(2, 3_601)).broken
    assert not judged(owed(Lateness(expire_after=10), 1), expired(1, 11)).broken
    tried = expired(1, 5, attempt=1, attempts=[{"number": 1, "status_code": 503}])
    assert not judged(owed(Lateness(expire_after=10), 1), tried, calls=("s1-1-1",)).broken
    assert not judged(owed(Lateness("none", 10), 5), record(1, 4, 4), expired(5, 11)).broken
    assert not judged(owed(Lateness("none", 10), 5), expired(3, 11), record(1, 5, 4)).broken


@pytest.mark.parametrize(
    ("lateness", "events"),
    [
        (Lateness(), [expired(1, 3_600)]),
        (Lateness("none", 10), [expired(1, 9)]),
        (Lateness("latest", 10), [expired(1, 11)]),
        (Lateness("latest", 10), [record(1, 1, 1, late=11)]),
        (Lateness(expire_after=10), [expired(1, 9)]),
        (Lateness("none", 10), [record(1, 1, 2)]),
        (Lateness("none", 10), [record(1, 1, 0)]),
        (Lateness("none", 10), [record(1, 1, 1, late=5)]),
        (Lateness(), [record(1, 1, 1)]),
    ],
    ids=str,
)
def test_what_no_policy_gave_up_is_lost(lateness: Lateness, events: list[dict[str, Any]]) -> None:
    assert judged(owed(lateness, 1), *events).lost


def test_an_occurrence_is_not_told_of_twice() -> None:
    assert judged(owed(Lateness("none", 10), 3), record(1, 3, 3), record(2, 3, 2)).repeated


def test_what_expired_was_not_called() -> None:
    assert judged(owed(Lateness("none", 10), 1), expired(1, 11), calls=("s1-1-1",)).not_owed
