"""SKIP of RFC 7529 with RSCALE=GREGORIAN: the 31st, or the last day; 29 February, or 1 March.

The first table holds facts that libical's tests state too. Where libical and RFC 7529 leave a question open,
or libical answers it otherwise, the second table says what was decided.
"""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from scheduler_app.domain.recurrence import InvalidRecurrence, Recurrence
from scheduler_app.domain.recurrence.timeline import StepBudget

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
EVER = datetime(1900, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
#: DTSTART, the rule behind RSCALE=GREGORIAN, the first dates.
AS_LIBICAL = [
    ("20120229", "FREQ=YEARLY", "20120229 20160229 20200229"),
    ("20140131", "FREQ=MONTHLY;SKIP=BACKWARD", "20140131 20140228 20140331 20140430"),
    ("20140131", "FREQ=MONTHLY;SKIP=FORWARD", "20140131 20140301 20140331 20140501"),
    ("20140131", "FREQ=MONTHLY;INTERVAL=3;SKIP=FORWARD", "20140131 20140501 20140731 20141031"),
    (
        "20150201",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=28,29;SKIP=FORWARD",
        "20150228 20150301 20160228 20160229 20170228",
    ),
    ("20150101", "FREQ=MONTHLY;BYMONTHDAY=-31;SKIP=BACKWARD", "20150101 20150131 20150301 20150331 20150501"),
    ("20150101", "FREQ=MONTHLY;BYMONTHDAY=-31;SKIP=FORWARD", "20150101 20150201 20150301 20150401"),
    ("20121231", "FREQ=YEARLY;BYYEARDAY=366;SKIP=FORWARD", "20121231 20140101 20150101 20160101 20161231"),
    ("20121231", "FREQ=YEARLY;BYYEARDAY=366;SKIP=BACKWARD", "20121231 20131231 20141231 20151231"),
    ("20120101", "FREQ=YEARLY;BYYEARDAY=-366;SKIP=BACKWARD", "20120101 20121231 20131231 20141231 20160101"),
]
DECIDED = [
    # DTSTART's own day counts as named: 29 February in a common year is 28 February or 1 March.
    ("20240229", "FREQ=YEARLY;SKIP=BACKWARD", "20240229 20250228 20260228 20270228 20280229"),
    ("20240229", "FREQ=YEARLY;SKIP=FORWARD", "20240229 20250301 20260301 20270301 20280229"),
    ("20240229", "FREQ=YEARLY;INTERVAL=2;SKIP=FORWARD", "20240229 20260301 20280229"),
    ("20240229", "FREQ=YEARLY;SKIP=OMIT", "20240229 20280229"),
    # INTERVAL counts the months that name the day: April's 31st fires in May, May itself takes no part.
    ("20260430", "FREQ=MONTHLY;INTERVAL=2;BYMONTHDAY=31;SKIP=FORWARD", "20260501 20260701 20260831 20261031"),
    # A moved day is not tested by BYMONTH again.
    ("20260101", "FREQ=MONTHLY;BYMONTH=4,6;BYMONTHDAY=31;SKIP=FORWARD", "20260501 20260701 20270501"),
    # Two days that move to one are one, and COUNT counts one.
    (
        "20260201",
        "FREQ=MONTHLY;BYMONTHDAY=29,30,31;SKIP=BACKWARD;COUNT=4",
        "20260228 20260329 20260330 20260331",
    ),
    (
        "20260301",
        "FREQ=MONTHLY;BYMONTHDAY=1,31;SKIP=FORWARD;COUNT=5",
        "20260301 20260331 20260401 20260501 20260531",
    ),
    # UNTIL cuts at the day moved to.
    ("20260331", "FREQ=MONTHLY;SKIP=FORWARD;UNTIL=20260501T090000Z", "20260331 20260501"),
    ("20260331", "FREQ=MONTHLY;SKIP=FORWARD;UNTIL=20260501T085959Z", "20260331"),
    # BYDAY tests the day moved to (SKIP comes before it): libical tests it within the month alone.
    ("20260101", "FREQ=MONTHLY;BYMONTHDAY=31;BYDAY=FR;SKIP=FORWARD", "20260501 20260731 20271001 20271231"),
    ("20260101", "FREQ=MONTHLY;BYMONTHDAY=31;BYDAY=TU;SKIP=BACKWARD", "20260331 20260630"),
    # BYSETPOS picks from what the month named, moved days included.
    (
        "20260401",
        "FREQ=MONTHLY;BYMONTHDAY=15,31;BYSETPOS=-1;SKIP=FORWARD",
        "20260501 20260531 20260701 20260731",
    ),
    ("20260401", "FREQ=MONTHLY;BYMONTHDAY=-31,15;BYSETPOS=1;SKIP=BACKWARD", "20260501 20260531 20260701"),
    ("20260401", "FREQ=MONTHLY;BYMONTHDAY=30,31;BYSETPOS=2;SKIP=BACKWARD", "20260531 20260731 20260831"),
    # Units without such days take SKIP and are not changed by it.
    ("20260130", "FREQ=DAILY;BYMONTHDAY=31;SKIP=BACKWARD", "20260131 20260331 20260531"),
    ("20260130", "FREQ=WEEKLY;SKIP=FORWARD", "20260130 20260206"),
    ("20260130", "FREQ=MONTHLY;BYDAY=5FR;SKIP=BACKWARD", "20260130 20260529 20260731"),
]


@pytest.mark.parametrize(("start", "rule", "dates"), [*AS_LIBICAL, *DECIDED])
def test_a_missing_day_is_left_out_or_moved(start: str, rule: str, dates: str) -> None:
    text = f"DTSTART:{start}T090000Z\nRRULE:RSCALE=GREGORIAN;{rule}"
    found = Recurrence.parse(text, created_at=CREATED)
    expected = dates.split()
    assert [f"{day:%Y%m%d}" for day in found.between(*EVER, len(expected))] == expected
    assert Recurrence.parse(found.text, created_at=CREATED) == found
    for earlier, later in pairwise(expected):
        moment = datetime.strptime(earlier, "%Y%m%d").replace(hour=9, tzinfo=UTC)
        assert f"{found.after(moment):%Y%m%d}" == later


def test_picked_times_of_neighbouring_months_come_in_order_and_once() -> None:
    rule = "RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=1,31;BYHOUR=8,9;BYSETPOS=1,-1;SKIP=FORWARD"
    found = Recurrence.parse(f"DTSTART:20260101T000000Z\nRRULE:{rule}", created_at=CREATED)
    instants = found.between(*EVER, 60)
    assert instants == sorted(set(instants))
    assert [f"{one:%m%dT%H}" for one in instants[:7]] == [
        "0101T08",
        "0131T09",
        "0201T08",
        "0301T08",
        "0301T09",
        "0331T09",
        "0401T08",
    ]


def test_the_day_moved_to_is_read_in_the_zone() -> None:
    rule = "RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=29;SKIP=FORWARD"
    text = f"DTSTART;TZID=Europe/Zurich:20260131T023000\nRRULE:{rule}"
    found = Recurrence.parse(text, created_at=CREATED)
    # 29 March 2026 begins summer time at 02:00: the clock shows 03:30 then, as for any other rule.
    assert [f"{one:%m%dT%H%M}" for one in found.between(*EVER, 3)] == ["0301T0130", "0329T0130", "0429T0030"]


def test_a_rule_of_1970_costs_the_steps_of_one_of_yesterday() -> None:
    def spent(start: str) -> int:
        found = Recurrence.parse(
            f"DTSTART:{start}T090000Z\nRRULE:RSCALE=GREGORIAN;FREQ=MONTHLY;INTERVAL=2;BYMONTHDAY=31;SKIP=FORWARD",
            created_at=CREATED,
        )
        steps = StepBudget()
        next(found._set.instants(739_940 * 86_400, steps))
        return steps.limit - steps.steps_left

    assert spent("19700131") == spent("20260131")


@pytest.mark.parametrize(
    ("rule", "part", "remedy"),
    [
        ("RSCALE=CHINESE;FREQ=YEARLY", "RSCALE", "write RSCALE=GREGORIAN, or leave it out"),
        ("FREQ=MONTHLY;SKIP=BACKWARD", "SKIP", "write RSCALE=GREGORIAN in front of FREQ"),
        ("RSCALE=GREGORIAN;FREQ=MONTHLY;SKIP=NEAREST", "SKIP", "one of OMIT, BACKWARD, FORWARD"),
        ("RSCALE=GREGORIAN;SKIP=OMIT;SKIP=OMIT;FREQ=MONTHLY", "SKIP", "given twice"),
    ],
)
def test_what_rfc_7529_or_this_calendar_does_not_know_is_refused(rule: str, part: str, remedy: str) -> None:
    with pytest.raises(InvalidRecurrence) as raised:
        Recurrence.parse(rule, created_at=CREATED)
    assert raised.value.part == part
    assert remedy in raised.value.message


def test_rscale_alone_and_omit_change_nothing() -> None:
    plain = Recurrence.parse("DTSTART:20260131T090000Z\nRRULE:FREQ=MONTHLY", created_at=CREATED)
    for rule in ("RSCALE=GREGORIAN;FREQ=MONTHLY", "FREQ=MONTHLY;RSCALE=GREGORIAN;SKIP=OMIT"):
        text = f"DTSTART:20260131T090000Z\nRRULE:{rule}"
        assert Recurrence.parse(text, created_at=CREATED) == plain


def test_29_february_that_is_moved_can_always_fire() -> None:
    found = Recurrence.parse(
        "DTSTART:20260101T000000Z\nRRULE:RSCALE=GREGORIAN;FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30;SKIP=BACKWARD",
        created_at=CREATED,
    )
    assert [f"{one:%Y%m%d}" for one in found.between(*EVER, 3)] == ["20260228", "20270228", "20280229"]
