"""An edit of the timezone alone, or of what clock changes do: intervals and counts that have begun go on."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.recurrence import AnyRecurrence, Recurrence
from scheduler_app.domain.triggers import Trigger, TriggerContext, edited_trigger, new_trigger
from scheduler_app.domain.triggers.registry import Given

#: A Wednesday.
GIVEN_AT = datetime(2026, 11, 18, 10, 15, 30, tzinfo=UTC)
DAY = timedelta(days=1)
WEEKS = "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=9;BYMINUTE=0;BYSECOND=0"


def made(given: Given) -> Trigger:
    return new_trigger(given, TriggerContext(GIVEN_AT, "Europe/Zurich"))


def edited(trigger: Trigger, timezone: str = "Asia/Tokyo", after: timedelta = 8 * DAY) -> Trigger:
    return edited_trigger({}, trigger, TriggerContext(GIVEN_AT + after, timezone), GIVEN_AT)


def shown(recurrence: AnyRecurrence, since: str = "2026-11-28", limit: int = 4) -> list[str]:
    """Dates and times on the wall clock."""
    found = recurrence.occurrences(GIVEN_AT, GIVEN_AT + 400 * DAY, limit + 12)
    return [shown for one in found if (shown := f"{one.local:%Y-%m-%d %H:%M:%S}") >= since][:limit]


@pytest.mark.parametrize(
    "given",
    [
        {"rrule": WEEKS},
        {"rrule": "FREQ=DAILY;INTERVAL=3"},
        {"rrule": "FREQ=MONTHLY;INTERVAL=5;BYMONTHDAY=-1"},
        {"rrule": "FREQ=YEARLY"},
        {"rrule": "FREQ=DAILY;COUNT=12"},
        {"rrule": f"RRULE:{WEEKS}\nEXDATE;VALUE=DATE:20261214"},
        {"rrule": f"{WEEKS};UNTIL=20270103"},
        {"rrule": "DTSTART:20261101T073000\nRRULE:FREQ=DAILY;INTERVAL=2"},
        {"phrase": "every 2 weeks on Monday at 9:00"},
        {"phrase": "every 3 days at 7:30 until 1 February"},
        {"phrase": "every day at 9:00, 12 times"},
        {"phrase": "every 2 weeks on Monday at 9:00 except on 14 December"},
        {"cron": "0 9 * * 1#1"},
    ],
    ids=lambda given: next(iter(given.values())).replace("\n", " "),
)
def test_what_goes_by_the_calendar_keeps_its_dates_and_times(given: Given) -> None:
    trigger = made(given)
    moved = edited(trigger)
    wanted = shown(trigger.recurrence(GIVEN_AT), limit=40)
    assert wanted
    assert shown(moved.recurrence(GIVEN_AT), limit=40) == wanted
    assert not any("start" in warning for warning in moved.warnings)
    recurrence = moved.recurrence(GIVEN_AT)
    assert isinstance(recurrence, Recurrence)
    assert recurrence.timezone == "Asia/Tokyo"
    assert not any("DTSTART" in warning for warning in recurrence.warnings)


@pytest.mark.parametrize(
    "given",
    [
        {"rrule": "FREQ=HOURLY;INTERVAL=7"},
        {"rrule": "FREQ=MINUTELY;INTERVAL=100;COUNT=400"},
        {"phrase": "every 7 hours"},
        {"phrase": "every 90 minutes"},
        {"every_seconds": 5000},
    ],
    ids=lambda given: str(next(iter(given.values()))),
)
def test_steps_of_elapsed_time_keep_their_instants(given: Given) -> None:
    trigger = made(given)
    begin, end = GIVEN_AT + 9 * DAY, GIVEN_AT + 40 * DAY
    wanted = trigger.recurrence(GIVEN_AT).between(begin, end)
    assert wanted
    assert edited(trigger, "Asia/Kolkata").recurrence(GIVEN_AT).between(begin, end) == wanted


@pytest.mark.parametrize("choice", [{"gap": "skip"}, {"overlap": "last"}])
def test_another_choice_for_clock_changes_keeps_them_too(choice: dict[str, str]) -> None:
    trigger = made({"rrule": WEEKS})
    context = TriggerContext(GIVEN_AT + 8 * DAY, "Europe/Zurich", **choice)  # type: ignore[arg-type]
    changed = edited_trigger({}, trigger, context, GIVEN_AT)
    assert shown(changed.recurrence(GIVEN_AT)) == shown(trigger.recurrence(GIVEN_AT))


def test_a_start_that_cannot_be_kept_is_warned_of() -> None:
    both = made({"rrule": f"RRULE:{WEEKS}\nRRULE:FREQ=HOURLY;INTERVAL=7"})
    (warning,) = edited(both).warnings
    assert "FREQ=HOURLY" in warning
    assert "18 November 2026 at 11:15" in warning
    assert "another instant than before" in warning


def test_a_start_that_is_still_to_come_in_the_new_zone_is_warned_of() -> None:
    moved = edited(made({"rrule": "FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0"}), "America/New_York", DAY / 24)
    (warning,) = moved.warnings
    assert "18 November 2026 at 11:15" in warning
    assert "nothing fires before it" in warning
    assert shown(moved.recurrence(GIVEN_AT), "2026-11-18", 1) == ["2026-11-19 06:00:00"]


def test_a_back_and_forth_changes_nothing() -> None:
    for given in ({"rrule": WEEKS}, {"phrase": "every 2 weeks on Monday at 9:00 until 1 May"}):
        trigger = made(given)
        assert edited(edited(trigger), "Europe/Zurich").pinned == trigger.pinned
