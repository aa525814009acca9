"""What is no cron expression that can be kept is refused with the reason and with what to use instead."""

from datetime import UTC, datetime

import pytest

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence.parsed_text import MAX_RULES
from scheduler_app.domain.triggers import NotUnderstood, TriggerContext, Value, new_trigger
from scheduler_app.domain.triggers.cron.kind import MAX_CHARACTERS

CONTEXT = TriggerContext(datetime(2026, 1, 1, tzinfo=UTC))
REFUSED = [
    # What other crons know, and what to use here.
    ("H 9 * * *", "write one from 0 to 59"),
    ("0 R * * *", "write one from 0 to 23"),
    ("@reboot", "run_at for a single instant"),
    ("@every 5m", "use every_seconds, such as 300"),
    ("@fortnightly", "use one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly"),
    ("0 9 * * * 2027", "leave it out, '0 9 * * *', or use rrule"),
    ("0 9 * * * 2027-2030", "use rrule, which has DTSTART and UNTIL"),
    ("0 0 9 * * ? 2027", "leave it out, '0 0 9 * * ?', or use rrule"),
    ("0 0 9 * * ? *", "the year '*' cannot be given"),
    ("TZ=Europe/Paris 0 9 * * *", "give the zone as the field timezone, 'Europe/Paris'"),
    ("CRON_TZ=UTC 0 9 * * *", "give the zone as the field timezone, 'UTC'"),
    ("0 9 * * * /usr/bin/backup --all", "give the times alone, '0 9 * * *', without a command"),
    ("0 9 * * 1-5 backup", "'backup' is not a field"),
    ("0 9 ? * L", "write 6 for every Saturday, or 5L for the last Friday"),
    # Ranges that run over the end.
    ("0 9 * * fri-sun", "write fri,sat,sun"),
    ("0 9 * * FRI-MON/2", "write fri,sun"),
    ("0 9 * * sat-sun", "write sat,sun"),
    ("0 9 * * 5-0", "write 5,6,0"),
    ("0 22-2 * * *", "write 22-23,0-2"),
    ("0 22-4/2 * * *", "write 22,0,2,4"),
    ("0 9 * nov-feb *", "write nov,dec,jan,feb"),
    ("0 9 25-5 * *", "write 25-31,1-5"),
    # Single fields.
    ("60 9 * * *", "'60' in the minutes is out of range; use 0 to 59"),
    ("0 24 * * *", "'24' in the hours is out of range; use 0 to 23"),
    ("0 9 0 * *", "'0' in the days of the month is out of range; use 1 to 31"),
    ("0 9 * 13 *", "'13' in the months is out of range; use 1 to 12, jan to dec"),
    ("0 9 * * 8", "'8' in the weekdays is out of range; use 0 to 7, sun to sat"),
    ("0 9 * * monday", "write mon"),
    ("0 9 * january *", "write jan"),
    ("*/0 * * * *", "the step '0' in the minutes is not allowed; use 1 to 60"),
    ("*-5 * * * *", "'*-5' in the minutes is not understood"),
    ("1,,2 9 * * *", "'' in the minutes is not understood"),
    ("? 9 * * *", "stands alone in one of the two day fields"),
    ("0 9 ?,1 * *", "stands alone in one of the two day fields"),
    ("0 9 1-5W * *", "15W the weekday nearest to the 15th"),
    ("0 9 32W * *", "'32' in the days of the month is out of range"),
    ("0 9 L-31 * *", "use L-1 to L-30"),
    ("0 9 L/2 * *", "L is the last day"),
    ("0 9 * * 1#6", "use #1 to #5, or 1L"),
    ("0 9 * * 1-3#2", "1#2 is the second Monday"),
    ("٣ 9 * * *", "in the minutes is not understood"),
    # The number of fields.
    ("   ", "give five fields"),
    ("9", "has 1 field; give five"),
    ("0 9 * *", "has 4 fields; give five"),
    ("0 0 0 9 * * 1 *", "has 8 fields; give five"),
    ("0 0 9 * * 99", "neither reading is valid: with the seconds first, '99' in the weekdays"),
    # Days that there are not.
    ("0 9 30 2 *", "can never fire"),
    ("0 9 31 4,6 *", "can never fire"),
    ("0 9 31W 4 *", "can never fire"),
    ("0 9 */30 * 1#3", "can never fire"),
    ("0 9 LW * */6", "no day satisfies both day fields"),
    ("*/5 * */2 * 5L", "list the hours, such as 0-23"),
]  # fmt: skip


def refusal(given: dict[str, Value]) -> InvalidField:
    with pytest.raises(InvalidField) as caught:
        new_trigger(given, CONTEXT)
    return caught.value


@pytest.mark.parametrize(("cron", "words"), REFUSED, ids=[row[0] for row in REFUSED])
def test_a_refusal_says_why_and_what_to_write(cron: str, words: str) -> None:
    found = refusal({"cron": cron})
    assert found.field == "cron"
    assert words in found.message


@pytest.mark.parametrize(
    "cron", [cron for cron, words in REFUSED if "-" in cron and words.startswith("write ")]
)
def test_what_stands_for_a_range_over_the_end_is_accepted(cron: str) -> None:
    message = refusal({"cron": cron}).message
    fields = cron.split()
    wrong = next(index for index, field in enumerate(fields) if f"'{field}'" in message)
    fields[wrong] = message.rpartition("write ")[2]
    assert new_trigger({"cron": " ".join(fields)}, CONTEXT).pinned


def test_six_fields_with_two_readings_are_refused_with_both() -> None:
    found = refusal({"cron": "0 0 9 * * 1-5"})
    assert isinstance(found, NotUnderstood)
    assert '"Monday to Friday at 09:00 (UTC)" with cron_seconds "first"' in found.message
    assert "Every month on the 9th at 00:00:01" in found.message
    first, last = found.readings
    assert first.recurrence == "RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0"
    assert last.recurrence == "RRULE:FREQ=MONTHLY;BYMONTHDAY=9;BYHOUR=0;BYMINUTE=0;BYSECOND=1,2,3,4,5"


@pytest.mark.parametrize(("at", "reading"), [("first", 0), ("last", 1)])
def test_cron_seconds_chooses_one_of_the_readings(at: str, reading: int) -> None:
    both = refusal({"cron": "0 0 9 * * 1-5"})
    assert isinstance(both, NotUnderstood)
    chosen = new_trigger({"cron": "0 0 9 * * 1-5", "cron_seconds": at}, CONTEXT)
    assert (chosen.pinned or "").endswith(both.readings[reading].recurrence or "none")


def test_cron_seconds_says_nothing_about_five_fields() -> None:
    found = refusal({"cron": "0 9 * * *", "cron_seconds": "first"})
    assert found.field == "cron_seconds"
    assert "leave it out" in found.message


def test_more_rules_than_a_recurrence_may_have_are_refused() -> None:
    days = "5,1W,28W,29W,30W,31W,LW"
    too_many = refusal({"cron": f"* * {days} * 3,1#1,2#2,3#3,4L,5#5,6#4,0#3,1L,2L"}).message
    assert too_many.startswith(f"takes 17 recurrence rules, and at most {MAX_RULES} are allowed")
    fewer = new_trigger({"cron": f"* * {days} * 1#1,2#2,3#3,4L,5#1,6#4,0#3"}, CONTEXT)
    assert (fewer.pinned or "").count("RRULE") == 15


def test_a_text_that_is_too_long_is_refused() -> None:
    assert "at most" in refusal({"cron": "0 9 " + "1," * MAX_CHARACTERS + "1 * *"}).message


def test_an_unknown_zone_is_no_fault_of_six_fields() -> None:
    with pytest.raises(InvalidField) as caught:
        new_trigger({"cron": "0 0 9 * * 1-5"}, TriggerContext(CONTEXT.at, "Mars/Phobos"))
    assert caught.value.field == "timezone"
