"""When blackouts last, and which are refused."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.blackout import Blackout, BlackoutPolicy, Blackouts, end_of
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.kill_switch import Scope, Target

HOUR = timedelta(hours=1)
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
EVERYTHING = Target(TENANT, Scope.ALL)


def blackout(
    hours: float,
    given: Mapping[str, str] | None = None,
    *,
    name: str = "b",
    target: Target = EVERYTHING,
    policy: BlackoutPolicy = "postpone",
    timezone: str = "UTC",
    now: datetime = NOW,
    cron: str | None = None,
) -> Blackout:
    written = given if cron is None else {"cron": cron}
    return Blackout.of(name, target, dict(written or {}), hours * HOUR, policy, now, timezone=timezone)


NIGHT = "0 22 * * *"
FREEZE = {"rrule": "DTSTART:20201220T000000Z\nRRULE:FREQ=YEARLY"}
ZURICH = "Europe/Zurich"


@pytest.mark.parametrize(
    ("at", "until"),
    [
        ("2026-03-02T20:59:59+00:00", None),
        ("2026-03-02T21:00:00+00:00", "2026-03-03T05:00:00+00:00"),
        ("2026-03-03T04:59:59.999+00:00", "2026-03-03T05:00:00+00:00"),
        ("2026-03-03T05:00:00+00:00", None),
        # Clocks went forward in that night: eight hours later it is seven o'clock there.
        ("2026-03-29T04:30:00+00:00", "2026-03-29T05:00:00+00:00"),
        ("2026-03-29T20:00:00+00:00", "2026-03-30T04:00:00+00:00"),
    ],
)
def test_the_window_of_a_night_in_zurich(at: str, until: str | None) -> None:
    night = blackout(8, cron=NIGHT, timezone=ZURICH)
    found = night.window(datetime.fromisoformat(at))
    assert (found and found[1]) == (until and datetime.fromisoformat(until))


def test_a_window_that_began_before_it_was_set_counts() -> None:
    night = blackout(8, now=datetime(2026, 3, 2, 23, tzinfo=UTC), cron=NIGHT, timezone=ZURICH)
    assert night.window(datetime(2026, 3, 2, 23, tzinfo=UTC)) is not None


def test_a_freeze_of_a_week_each_year() -> None:
    freeze = blackout(8 * 24, FREEZE)
    assert freeze.window(datetime(2026, 12, 19, 23, 59, tzinfo=UTC)) is None
    assert freeze.window(datetime(2027, 12, 27, 23, tzinfo=UTC)) == (
        datetime(2027, 12, 20, tzinfo=UTC),
        datetime(2027, 12, 28, tzinfo=UTC),
    )


def test_windows_that_overlap_or_touch_end_together() -> None:
    freeze = blackout(8 * 24, FREEZE, name="freeze")
    night = blackout(8, name="night", cron="0 22 * * *")
    # The night that begins in the freeze, at 22:00 of the 27th, ends after it.
    assert end_of((freeze, night), datetime(2026, 12, 24, tzinfo=UTC)) == datetime(
        2026, 12, 28, 6, tzinfo=UTC
    )
    assert end_of((), NOW) == NOW


@pytest.mark.parametrize(
    ("hours", "given"),
    [
        (24, {"cron": "0 0 * * *"}),
        (25, {"cron": "0 0 * * *"}),
        (0.01, {"rrule": "FREQ=SECONDLY"}),
        (1.5, {"rrule": "DTSTART:20260101T000000Z\nRRULE:FREQ=HOURLY"}),
    ],
)
def test_one_that_is_always_on_is_refused(hours: float, given: dict[str, str]) -> None:
    with pytest.raises(InvalidField, match="always on") as refused:
        blackout(hours, given)
    assert refused.value.field == "duration_seconds"


def test_one_that_leaves_an_hour_a_year_open_is_refused() -> None:
    with pytest.raises(InvalidField, match="always on"):
        blackout(24, cron=NIGHT, timezone=ZURICH)


@pytest.mark.parametrize(("hours", "cron"), [(23, NIGHT), (24, "0 0 * * 1-5"), (0.5 / 60, "* * * * *")])
def test_one_that_leaves_some_time_open_is_taken(hours: float, cron: str) -> None:
    assert blackout(hours, cron=cron).next_start(NOW) is not None


def test_two_that_are_always_on_together_are_refused() -> None:
    day = blackout(12, name="day", cron="0 6 * * *")
    night = blackout(12, name="night", cron="0 18 * * *")
    with pytest.raises(InvalidField, match="with day"):
        night.check_end(NOW, [day])


@pytest.mark.parametrize(
    "given",
    [
        {"rrule": "DTSTART:20200101T000000Z\nRRULE:FREQ=DAILY;COUNT=3"},
        {},
        {"every_seconds": "60"},
        {"rrule": "FREQ=DAILY", "cron": "0 0 * * *"},
        {"cron": "no cron"},
    ],
    ids=str,
)
def test_one_without_a_window_or_a_trigger_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidField):
        blackout(1, given)


def test_of_several_that_cover_an_event_the_one_that_skips_decides() -> None:
    billing = Target(TENANT, Scope.TAG, "billing")
    known = Blackouts(
        (
            blackout(8, name="late", cron="0 22 * * *"),
            blackout(1, name="skip", target=billing, policy="skip", cron="0 23 * * *"),
        )
    )
    at = datetime(2026, 3, 2, 23, 30, tzinfo=UTC)
    ends = datetime(2026, 3, 3, 6, tzinfo=UTC)
    plain = known.covering(at, "s1-1-x", "s1", (), None)
    tagged = known.covering(at, "s1-1-x", "s1", ("billing",), None)
    assert plain is not None
    assert tagged is not None
    assert (plain.ends, plain.skips_from, plain.name) == (ends, None, "late")
    assert (tagged.ends, tagged.skips_from) == (ends, datetime(2026, 3, 2, 23, tzinfo=UTC))
    assert known.covering(at, "acme:s1-1-x", "acme:s1", ("billing",), None) is None
    assert known.covering(NOW, "s1-1-x", "s1", ("billing",), None) is None


@pytest.mark.parametrize(
    ("target", "covered"),
    [
        (Target(TENANT, Scope.SCHEDULE, "s1"), True),
        (Target(TENANT, Scope.SCHEDULE, "s2"), False),
        (Target(TENANT, Scope.DESTINATION, "erp"), True),
        (Target(TENANT, Scope.TAG, "x"), False),
    ],
    ids=str,
)
def test_it_is_of_what_it_names(target: Target, covered: bool) -> None:
    known = Blackouts((blackout(8, target=target, cron="0 22 * * *"),))
    at = datetime(2026, 3, 2, 23, tzinfo=UTC)
    assert (known.covering(at, "s1-1-x", "s1", ("t",), "erp") is not None) is covered
