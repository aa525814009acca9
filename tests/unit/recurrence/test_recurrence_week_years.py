"""With BYWEEKNO the period of a YEARLY rule is the week-year by WKST, for INTERVAL and BYSETPOS too.

So read libical, ical.net, rrule-temporal and biweekly; the dateutil family cuts at 31 December.
"""

from datetime import UTC, datetime

import pytest

from scheduler_app.domain.recurrence import Recurrence

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
CASES = [
    (
        "19990101",
        "BYWEEKNO=1;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
        "19990108 20000107 20010105 20020104 20030103",
    ),
    ("20241231", "BYWEEKNO=1;BYDAY=MO,TU;INTERVAL=3", "20241231 20280103 20280104 20301230 20301231"),
    ("20100102", "BYWEEKNO=53;BYDAY=TU,SA;INTERVAL=6", "20100102 20151229 20160102"),
    # The first of the year's work days lies in the old calendar year where week 1 begins there.
    ("20240101", "BYWEEKNO=1;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1", "20240101 20241230 20251229 20270104"),
    # DTSTART on 1 January 2027 lies in week 53 of 2026: every other week-year from 2026 on.
    ("20270101", "BYWEEKNO=1,53;BYDAY=FR;INTERVAL=2", "20270101 20280107 20300104"),
    # The last day of week 52 or 53, whichever is the last.
    ("20260101", "BYWEEKNO=52,53;BYDAY=SU;BYSETPOS=-1", "20270103 20280102 20281231 20291230"),
    # WKST moves the week-year: with Sunday first, week 1 of 2027 begins on 3 January.
    ("20260101", "BYWEEKNO=1;BYDAY=SU,MO;BYSETPOS=1;WKST=SU", "20260104 20270103 20280102"),
    ("20261231", "BYWEEKNO=1;BYDAY=SU;INTERVAL=2;WKST=SU", "20280102 20291230"),
    ("20241230", "BYWEEKNO=1;BYDAY=MO;INTERVAL=2;WKST=MO", "20241230 20270104 20290101"),
    ("20241230", "BYWEEKNO=1;BYDAY=MO;INTERVAL=2;WKST=TU", "20260105 20280110"),
]


@pytest.mark.parametrize(("start", "rule", "dates"), CASES)
def test_weeks_across_new_year_belong_to_one_period(start: str, rule: str, dates: str) -> None:
    found = Recurrence.parse(f"DTSTART:{start}T090000Z\nRRULE:FREQ=YEARLY;{rule}", created_at=CREATED)
    expected = dates.split()
    instants = found.between(
        datetime(1990, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC), len(expected)
    )
    assert [f"{one:%Y%m%d}" for one in instants] == expected
