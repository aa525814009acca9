"""What expires, and when, as a value."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.event import Event, scheduled
from scheduler_app.domain.lateness import CatchUp, ExpiryPolicy, Lateness
from scheduler_app.domain.states import Kind

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
EVENT = scheduled("s", 1, NOON)
NONE, LATEST = Lateness(CatchUp.NONE), Lateness(CatchUp.LATEST)
ENDS = Lateness(expire_after_seconds=90.0)


def judged(of: Lateness, late: float, event: Event = EVENT, *, later: bool = True) -> ExpiryPolicy | None:
    now = NOON + late * SECOND
    expiry = of.expiry(event, now, lambda: now if later else None)
    return expiry.policy if expiry else None


@pytest.mark.parametrize(
    ("of", "late", "later", "policy"),
    [
        (Lateness(), 10**7, True, None),
        (NONE, 60, True, None),
        (NONE, 60.001, True, ExpiryPolicy.NONE),
        (LATEST, 60, True, None),
        (LATEST, 60.001, True, ExpiryPolicy.LATEST),
        (LATEST, 60.001, False, None),
        (LATEST, 3_600, False, None),
        (LATEST, 3_600.001, False, ExpiryPolicy.WINDOW),
        (ENDS, 90, True, None),
        (ENDS, 90.001, True, ExpiryPolicy.EXPIRE_AFTER),
        (Lateness(CatchUp.NONE, late_after_seconds=5.0), 6, True, ExpiryPolicy.NONE),
        (Lateness(CatchUp.LATEST, window_seconds=70.0), 71, False, ExpiryPolicy.WINDOW),
        (Lateness(CatchUp.LATEST, expire_after_seconds=65.0), 66, False, ExpiryPolicy.EXPIRE_AFTER),
    ],
)
def test_an_occurrence(of: Lateness, late: float, later: bool, policy: ExpiryPolicy | None) -> None:
    assert judged(of, late, later=later) == policy


@pytest.mark.parametrize(
    "event",
    [EVENT._replace(kind=Kind.MANUAL), EVENT._replace(kind=Kind.MESSAGE), EVENT._replace(attempt=1)],
    ids=["manual", "message", "retry"],
)
def test_what_is_no_missed_occurrence_ends_by_expire_after_alone(event: Event) -> None:
    assert judged(NONE, 10**6, event) is None
    assert judged(ENDS, 91, event) == ExpiryPolicy.EXPIRE_AFTER


def test_a_backfill_is_late_by_what_it_is() -> None:
    backfilled = EVENT._replace(kind=Kind.BACKFILL)
    assert judged(NONE, 10**6, backfilled) is judged(ENDS, 10**6, backfilled) is None
    assert ENDS.too_late_for(backfilled, NOON + timedelta(days=9)) is None


def test_an_event_that_was_made_due_anew_is_late_since_then() -> None:
    assert judged(ENDS, 1_000, EVENT._replace(due_since=NOON + 950 * SECOND)) is None


def test_the_instant_before_which_all_but_the_newest_expire() -> None:
    assert Lateness().expires_before(NOON) is None
    assert NONE.expires_before(NOON) == LATEST.expires_before(NOON) == NOON - 60 * SECOND
    assert ENDS.expires_before(NOON) == NOON - 90 * SECOND
    assert Lateness(CatchUp.NONE, expire_after_seconds=30.0).expires_before(NOON) == NOON - 30 * SECOND


@pytest.mark.parametrize(
    ("late", "said"), [(75, "75 s"), (7_500, "2 h 5 min"), (266_400, "3 days 2 h"), (86_400, "1 day")]
)
def test_the_sentence_says_how_late(late: float, said: str) -> None:
    expiry = NONE.expiry(EVENT, NOON + late * SECOND, lambda: None)
    assert expiry is not None
    assert expiry.message.startswith(f"Expired: {said} late, ")


def test_a_retry_is_too_late_where_it_would_start_too_late() -> None:
    assert Lateness().too_late_for(EVENT, NOON + timedelta(days=9)) is None
    assert ENDS.too_late_for(EVENT, NOON + 90 * SECOND) is None
    told = ENDS.too_late_for(EVENT, NOON + 91 * SECOND)
    assert told is not None
    assert "expire_after_seconds (90)" in told
