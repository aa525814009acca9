"""What blackouts make of callbacks to come."""

from datetime import timedelta

import pytest

from scheduler_app.domain import blackout as blackout_module
from scheduler_app.domain.blackout import BlackoutOutlooks, BlackoutPolicy, Blackouts, TimeSpans, begin_of
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.kill_switch import Scope, Target
from tests.unit.domain.test_blackout import HOUR, NOW, blackout

DAY = timedelta(days=1)
MIDNIGHT = NOW + 12 * HOUR


def test_stretches_that_overlap_or_touch_are_one() -> None:
    hours = [(5, 6), (0, 2), (1, 3), (3, 4)]
    spans = TimeSpans((NOW + begins * HOUR, NOW + ends * HOUR) for begins, ends in hours)
    assert spans.around(NOW) == spans.around(NOW + 3 * HOUR) == (NOW, NOW + 4 * HOUR)
    assert spans.around(NOW + 4 * HOUR) is None
    assert spans.around(NOW + 5 * HOUR) == (NOW + 5 * HOUR, NOW + 6 * HOUR)
    assert spans.around(NOW - HOUR) is TimeSpans().around(NOW) is None


@pytest.mark.parametrize("policy", ["skip", "postpone"])
def test_it_says_the_same_as_blackouts_at_each_instant(policy: BlackoutPolicy) -> None:
    """For three days, with a night and a break at noon."""
    night = blackout(8, name="night", cron="0 22 * * *", policy=policy)
    noon = blackout(1, name="noon", cron="0 12 * * *", target=Target(TENANT, Scope.TAG, "t"))
    known = Blackouts((night, noon))
    outlooks = BlackoutOutlooks(known, NOW, NOW + 3 * DAY)
    for tags in ((), ("t",)):
        outlook = outlooks.of(TENANT, "s1", tags, None)
        assert outlook is not None
        for minute in range(0, 3 * 1_440, 7):
            at = NOW + timedelta(minutes=minute)
            cover = known.covering(at, "s1-1-x", "s1", tags, None)
            expected = at if cover is None else None if cover.skips(at) else cover.ends
            assert outlook.sent_at(at, at) == expected
            assert outlook.sent_at(None, at) == (at if cover is None else cover.ends)
            # Its run time was before the window; its jitter or its retry lies within.
            before = at - 9 * HOUR
            assert outlook.sent_at(before, at) == (at if cover is None else cover.ends)


def test_there_is_none_where_no_blackout_is_of_it() -> None:
    known = Blackouts((blackout(8, cron="0 22 * * *", target=Target(TENANT, Scope.SCHEDULE, "s1")),))
    outlooks = BlackoutOutlooks(known, NOW, NOW + DAY)
    assert outlooks.of(TENANT, "s2", (), None) is None
    assert outlooks.of("acme", "acme:s1", (), None) is None
    assert outlooks.of(TENANT, "s1", (), None) is not None
    assert not BlackoutOutlooks(Blackouts(), NOW, NOW + DAY)


def test_windows_that_touch_are_followed_back() -> None:
    late, early = blackout(2, name="late", cron="0 22 * * *"), blackout(8, name="early", cron="0 0 * * *")
    assert begin_of((late, early), MIDNIGHT + HOUR) == MIDNIGHT - 2 * HOUR
    assert begin_of((early,), MIDNIGHT + HOUR) == MIDNIGHT
    assert begin_of((late, early), NOW) == NOW


def test_so_many_windows_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blackout_module, "MAX_WINDOWS", 2)
    outlooks = BlackoutOutlooks(Blackouts((blackout(1, cron="0 */2 * * *"),)), NOW, NOW + DAY)
    outlook = outlooks.of(TENANT, "s1", (), None)
    assert outlook is not None
    assert outlook.sent_at(NOW + 2 * HOUR, NOW + 2 * HOUR) == NOW + 3 * HOUR
    assert outlook.sent_at(NOW + 4 * HOUR, NOW + 4 * HOUR) == NOW + 4 * HOUR
    assert outlooks.left_out == {"b"}
