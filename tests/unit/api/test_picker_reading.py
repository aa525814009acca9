"""What the picker shows of a rule is what it would write for it."""

from datetime import UTC, datetime

import pytest

from scheduler_app.api.pages.when import picked_recurrence, picker_fields
from scheduler_app.domain.recurrence import Recurrence

NOW = datetime(2026, 3, 4, 10, 17, 5, tzinfo=UTC)


def shown(rule: str) -> str | None:
    """What the picker would write, were it to show the rule."""
    recurrence = Recurrence.parse(rule, created_at=NOW)
    times = recurrence.between(NOW, NOW.replace(year=2030), limit=3)
    found = picker_fields(recurrence.text, [{"local": each.isoformat()} for each in times])
    return picked_recurrence(found) if found else None


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY;BYHOUR=10;BYMINUTE=30;BYSECOND=0",
        "FREQ=DAILY;INTERVAL=3;BYHOUR=0;BYMINUTE=5;BYSECOND=0",
        "FREQ=WEEKLY;BYDAY=MO,FR;BYHOUR=7;BYMINUTE=45;BYSECOND=0",
        "FREQ=WEEKLY;BYDAY=MO,TU;BYHOUR=8,9,10;BYMINUTE=0,20,40;BYSECOND=0",
        "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=18;BYMINUTE=0;BYSECOND=0",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=18;BYMINUTE=0;BYSECOND=0;BYSETPOS=-1",
        "FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=1;BYHOUR=8;BYMINUTE=0;BYSECOND=0",
    ],
)
def test_a_rule_that_was_picked_is_shown_as_it_was(rule: str) -> None:
    written = shown(rule)
    assert written
    assert sorted(written.split(";")) == sorted(rule.split(";"))


@pytest.mark.parametrize(
    ("rule", "means"),
    [
        ("FREQ=SECONDLY;INTERVAL=900", "every_seconds: 900"),
        ("FREQ=MINUTELY;INTERVAL=15", "every_seconds: 900"),
        ("FREQ=HOURLY", "every_seconds: 3600"),
        ("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=18;BYMINUTE=0;BYSECOND=0",
         "FREQ=MONTHLY;BYDAY=FR;BYSETPOS=-1;BYHOUR=18;BYMINUTE=0;BYSECOND=0"),
        ("FREQ=HOURLY;BYDAY=MO;BYHOUR=8,9;BYMINUTE=0,30;BYSECOND=0",
         "FREQ=WEEKLY;BYDAY=MO;BYHOUR=8,9;BYMINUTE=0,30;BYSECOND=0"),
    ],
)  # fmt: skip
def test_a_rule_is_shown_in_the_picker_s_own_words(rule: str, means: str) -> None:
    assert shown(rule) == means


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY;COUNT=3;BYHOUR=10;BYMINUTE=30;BYSECOND=0",
        "FREQ=WEEKLY;UNTIL=20270101T000000Z;BYDAY=MO;BYHOUR=7;BYMINUTE=45;BYSECOND=0",
        "RRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0\nEXDATE:20260310T090000Z",
        "FREQ=SECONDLY;INTERVAL=15",
        "FREQ=YEARLY;BYWEEKNO=7;BYDAY=MO;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
        "FREQ=MONTHLY;BYMONTHDAY=1,15;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
        "FREQ=DAILY;INTERVAL=2000;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
        "RDATE:20270101T000000Z",
    ],
)
def test_a_rule_that_the_picker_cannot_write_is_not_shown(rule: str) -> None:
    assert shown(rule) is None
