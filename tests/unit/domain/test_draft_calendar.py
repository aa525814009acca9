"""Phrases about business days, of schedules with a calendar and without one."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from scheduler_app.domain.calendars import Calendar, NamedCalendar, NamedDate
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.schedule_draft import ScheduleDraft
from tests.builders import draft, schedule

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
#: 1 April 2026 is a Wednesday, and closed.
CLOSED = NamedCalendar("default", "ours", Calendar.of(dates=(NamedDate(date(2026, 4, 1)),)), NOW, NOW)
FIRST, LAST = "first business day of the month at 9:00", "last business day of the month at 9:00"
EVERY = "every business day at 9:00"


def observing(phrase: str, **fields: Any) -> Schedule:
    return schedule(NOW, phrase=phrase, calendar="ours", named_calendar=CLOSED, **fields)


def edited(before: Schedule, **fields: Any) -> Schedule:
    return ScheduleDraft(**fields).edit(before, NOW)


def on_holiday(found: Schedule) -> str | None:
    return found.calendar.on_holiday if found.calendar else None


@pytest.mark.parametrize(("phrase", "word"), [(FIRST, "next"), (LAST, "previous"), (EVERY, "skip")])
def test_a_phrase_says_what_becomes_of_holidays_unless_the_schedule_does(phrase: str, word: str) -> None:
    assert on_holiday(observing(phrase)) == word
    assert on_holiday(observing(phrase, on_holiday="skip")) == "skip"


def test_what_a_phrase_counts_on_open_days_is_not_counted_otherwise() -> None:
    third = "third business day of the month at 9:00"
    found = observing(third)
    # 4 March 2026 is the third open day of the month; 1 April is closed.
    assert found.next_run_at == datetime(2026, 3, 4, 9, tzinfo=UTC)
    assert on_holiday(found) == on_holiday(observing(third, on_holiday="uncounted")) == "uncounted"
    with pytest.raises(InvalidField, match="counts the calendar's open days"):
        observing(third, on_holiday="next")
    lost = edited(found, calendar=None)
    assert (on_holiday(lost), lost.next_run_at) == (None, datetime(2026, 3, 4, 9, tzinfo=UTC))
    gained = edited(lost, calendar="ours", named_calendar=CLOSED)
    assert (on_holiday(gained), gained.trigger.pinned) == ("uncounted", found.trigger.pinned)


def test_a_rule_whose_last_day_was_passed_still_names_it_to_who_asks_before_it() -> None:
    rule = "DTSTART:20260302T090000Z\nRRULE:FREQ=DAILY;UNTIL=20260304T090000Z"
    fires = schedule(
        NOW, rrule=rule, calendar="ours", named_calendar=CLOSED, on_holiday="uncounted"
    ).recurrence()
    last = datetime(2026, 3, 4, 9, tzinfo=UTC)
    assert fires.after(last) is None
    assert fires.after(last, inclusive=True) == last


def test_business_days_are_those_of_the_calendar() -> None:
    assert schedule(NOW, phrase=FIRST).next_run_at == datetime(2026, 4, 1, 9, tzinfo=UTC)
    assert observing(FIRST).next_run_at == datetime(2026, 4, 2, 9, tzinfo=UTC)


def test_a_phrase_is_translated_again_when_its_schedule_gets_or_loses_a_calendar() -> None:
    plain, with_calendar = schedule(NOW, phrase=FIRST), observing(FIRST)
    gained = edited(plain, calendar="ours", named_calendar=CLOSED)
    assert gained.trigger.pinned == with_calendar.trigger.pinned != plain.trigger.pinned
    assert (gained.next_run_at, on_holiday(gained)) == (with_calendar.next_run_at, "next")
    lost = edited(gained, calendar=None)
    assert (lost.trigger.pinned, lost.next_run_at) == (plain.trigger.pinned, plain.next_run_at)


def test_a_phrase_that_names_no_business_day_keeps_its_start_with_a_calendar() -> None:
    plain = schedule(NOW, phrase="every 3 days")
    later = ScheduleDraft(calendar="ours", named_calendar=CLOSED).edit(plain, NOW.replace(day=9))
    assert later.calendar is not None
    assert later.trigger is plain.trigger


def test_a_phrase_that_only_a_calendar_can_mean_needs_one() -> None:
    """The business day after the 31st may be in the next month, which no rule can say."""
    phrase = "every 31st, or the next business day, at 9:00"
    with pytest.raises(InvalidField, match="give the schedule a calendar"):
        schedule(NOW, phrase=phrase)
    before = observing(phrase)
    assert on_holiday(before) == "next"
    with pytest.raises(InvalidField, match="give the schedule a calendar"):
        edited(before, calendar=None)
    assert before.trigger.portable(NOW) == {"phrase": phrase}


def test_what_the_old_phrase_implied_gives_way_to_what_the_new_one_implies() -> None:
    def to_last(before: Schedule) -> str | None:
        return on_holiday(draft(phrase=LAST).edit(before, NOW))

    assert to_last(observing(FIRST)) == "previous"
    assert to_last(observing(FIRST, on_holiday="skip")) == "skip"


def test_a_single_instant_takes_no_calendar() -> None:
    with pytest.raises(InvalidField, match="give null") as refused:
        observing("in 10 minutes")
    assert refused.value.field == "calendar"
