"""Warnings, and what is described without words of our own.

`warnings.txt` has all warnings of some recurrences, word for word: those that meet each bound, and their
neighbours on its other side, which are not warned of.
"""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduler_app.domain.recurrence import Recurrence, warnings
from scheduler_app.domain.recurrence.timeline import PARSE_LIMIT, OutOfSteps, StepBudget

CREATED = datetime(2026, 1, 1, 8, 30, 30, tzinfo=UTC)
START = "DTSTART:20260105T093000Z\nRRULE:"
PARIS = "DTSTART;TZID=Europe/Paris:20260105T093000\nRRULE:"
GAP = "DTSTART;TZID=Europe/Paris:20260105T023000\nRRULE:"
WARNINGS = [
    ("FREQ=MONTHLY;BYMONTHDAY=31", "Not every month has a day 31"),
    ("DTSTART:20260131T093000Z\nRRULE:FREQ=MONTHLY", "Not every month has a day 31"),
    ("FREQ=MONTHLY;BYMONTHDAY=-31", "day 31 from the end"),
    ("FREQ=YEARLY;BYMONTH=1,4;BYMONTHDAY=31", "Not every month of BYMONTH has a day 31"),
    ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "29 February exists only in leap years"),
    ("DTSTART:20240229T093000Z\nRRULE:FREQ=YEARLY", "29 February exists only in leap years"),
    ("FREQ=YEARLY;BYYEARDAY=366", "Only leap years have a day 366"),
    ("FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO", "Only some years have a week 53"),
    ("FREQ=YEARLY;BYMONTHDAY=15", "fires in DTSTART's month, BYMONTH=1, once a year"),
    ("FREQ=YEARLY;BYWEEKNO=20", "fires on DTSTART's day of the week, TH"),
    ("FREQ=MONTHLY;BYMONTHDAY=15,30", "Not every month has a day 30"),
    ("FREQ=MONTHLY;BYMONTHDAY=29,30,31", "Not every month has the days 29, 30 and 31"),
    ("FREQ=MONTHLY;BYMONTHDAY=31", "BYMONTHDAY=-1 is the last day"),
    ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "BYMONTH=2;BYMONTHDAY=-1 is the last day of February"),
    ("FREQ=MONTHLY;BYDAY=5MO", "Not every month has a fifth Monday"),
    ("FREQ=MONTHLY;BYDAY=5MO", "BYDAY=-1MO is the last Monday of each month"),
    ("FREQ=MONTHLY;BYDAY=-5SU,1MO", "Not every month has a fifth-to-last Sunday"),
    ("FREQ=YEARLY;BYMONTH=3;BYDAY=5MO", "Not every month has a fifth Monday"),
    ("FREQ=YEARLY;BYDAY=53MO", "Not every year has a 53rd Monday"),
    ("FREQ=MONTHLY;BYDAY=1MO,6MO", "No month has a 6th Monday"),
    ("FREQ=YEARLY;BYWEEKNO=-53;BYDAY=MO", "BYWEEKNO=1 is the first week of each year"),
    ("FREQ=YEARLY;BYWEEKNO=20,53;BYDAY=MO", "BYWEEKNO=-1 is the last week of each year"),
    ("FREQ=YEARLY;BYYEARDAY=-366", "BYYEARDAY=1 is the first day of each year"),
    ("FREQ=DAILY", "No time of day was given, so it fires at 08:30:31 (UTC), that of its creation"),
    ("FREQ=WEEKLY;BYDAY=MO", "BYHOUR=8;BYMINUTE=30;BYSECOND=0"),
    ("FREQ=MONTHLY;BYMONTHDAY=1;BYMINUTE=0;BYSECOND=0", "No hour was given, so it fires in hour 8"),
    ("FREQ=DAILY;BYHOUR=9", "No minute was given, so it fires at minute 30 and second 31"),
    ("FREQ=HOURLY;BYHOUR=9;BYSECOND=0", "add BYMINUTE=0"),
    (PARIS + "FREQ=HOURLY;INTERVAL=24", "next on 29 March 2026, its local time moves. FREQ=DAILY keeps it"),
    (PARIS + "FREQ=MINUTELY;INTERVAL=2880", "FREQ=DAILY;INTERVAL=2 keeps it"),
    (PARIS + "FREQ=HOURLY;INTERVAL=12", "FREQ=DAILY;BYHOUR=9,21 keeps it"),
    (GAP + "FREQ=DAILY", "skip 02:00 to 03:00 on 29 March 2026, so 02:30 does not exist then"),
    (GAP + "FREQ=DAILY", "it fires at 03:30 instead; choose another time, or set gap to skip"),
    (GAP + "FREQ=MONTHLY;BYDAY=-1SU", "does not exist then"),
    (PARIS + "FREQ=WEEKLY;BYDAY=SU;BYHOUR=1,2;BYMINUTE=0,30", "so 02:00 does not exist then"),
    (START + "FREQ=DAILY\nEXDATE:20260106T100000Z", "EXDATE 6 January 2026 at 10:00 takes nothing away"),
    (START + "FREQ=DAILY\nEXDATE:20260106T100000Z", "on that day it fires at 09:30"),
    (START + "FREQ=DAILY\nEXDATE:20260106T093000Z,20260107T100000Z", "7 January 2026 at 10:00 takes nothing"),
    (START + "FREQ=WEEKLY\nEXDATE:20260106T093000Z", "nothing occurs on that day"),
    ("DTSTART:20260105T000000Z\nRRULE:FREQ=WEEKLY\nEXDATE:20260111T100000Z", "nothing occurs on that day"),
    (START + "FREQ=WEEKLY\nRDATE:20260107T000000Z\nEXDATE:20260107T100000Z", "that day it fires at 00:00"),
    (START + "FREQ=WEEKLY\nEXDATE;VALUE=DATE:20260106", "EXDATE 6 January 2026 takes nothing away"),
    (START + "FREQ=DAILY;COUNT=3\nEXDATE:20260109T093000Z", "takes nothing away"),
    (START + "FREQ=DAILY;COUNT=3\nEXDATE:20260106T093000Z", "COUNT=4 makes up for it"),
    (START + "FREQ=WEEKLY;BYDAY=TU", "the first one is on 6 January 2026 at 09:30"),
    (START + "FREQ=WEEKLY;BYDAY=TU", "DTSTART does not satisfy the rule"),
    (START + "FREQ=DAILY;UNTIL=20250101T000000Z", "UNTIL lies before DTSTART"),
    (START + "FREQ=DAILY;UNTIL=20250101T000000Z", "There are no occurrences at all"),
    (START + "FREQ=DAILY;COUNT=3\nEXDATE:20260106T093000Z", "takes away 1 of the 3 occurrences"),
    (START + "FREQ=DAILY\nEXDATE:20260106T100000Z", "takes nothing away"),
    (START + "FREQ=DAILY\nEXDATE:20260106", "every occurrence of that local day"),
    (START + "FREQ=DAILY\nEXDATE:20260106", "write EXDATE:20260106T093000 to name an instant"),
    (START + "FREQ=DAILY\nRDATE:20260106", "read as midnight; write RDATE:20260106T093000 to name"),
    ("FREQ=DAILY;UNTIL=20260301", "end of that local day; write it in UTC, such as UNTIL=20260301T120000Z"),
    ("FREQ=DAILY;BYHOUR=8;BYMINUTE=0", "add BYSECOND=0"),
    ("DTSTART:20200101T000000Z\nRRULE:FREQ=DAILY;COUNT=5", "All occurrences lie in the past"),
    ("DTSTART:20200101T000000Z\nRRULE:FREQ=DAILY;UNTIL=20251231T000000Z", "All occurrences lie in the past"),
    ("DTSTART:20200101T000000Z", "All occurrences lie in the past"),
]
QUIET = [
    START + "FREQ=DAILY",
    START + "FREQ=HOURLY;INTERVAL=24",
    PARIS + "FREQ=HOURLY",
    PARIS + "FREQ=HOURLY;INTERVAL=24;UNTIL=20260301T000000Z",
    PARIS + "FREQ=DAILY",
    GAP + "FREQ=WEEKLY;BYDAY=MO",
    GAP + "FREQ=DAILY;UNTIL=20260301T000000Z",
    "FREQ=MONTHLY;BYMONTHDAY=28,29,30,31;BYHOUR=8;BYMINUTE=0;BYSECOND=0",
    START + "FREQ=DAILY;COUNT=5",
    START + "FREQ=MONTHLY;BYMONTHDAY=5",
    START + "FREQ=MONTHLY;BYMONTHDAY=-1,5",
    START + "FREQ=WEEKLY;BYDAY=MO,WE\nEXDATE:20260107T093000Z",
    START + "FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=5",
    "FREQ=DAILY;BYHOUR=8;BYMINUTE=0;BYSECOND=0",
]


SKIPPED = [
    (
        "MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD",
        "Every month on the 31st, or the last day where it is missing, at",
    ),
    (
        "MONTHLY;BYMONTHDAY=30;SKIP=FORWARD",
        "Every month on the 30th, or the 1st of the next month where it is missing, at",
    ),
    ("MONTHLY;BYMONTHDAY=28;SKIP=FORWARD", "Every month on the 28th at"),
    ("MONTHLY;BYMONTHDAY=-1;SKIP=FORWARD", "Every month on the last day at"),
    (
        "MONTHLY;BYMONTHDAY=-31;SKIP=FORWARD",
        "Every month on the 31st-to-last day, or the 1st where it is missing, at",
    ),
    (
        "MONTHLY;BYMONTHDAY=-30;SKIP=BACKWARD",
        "Every month on the 30th-to-last day, or the last day of the month before where it is missing, at",
    ),
    (
        "MONTHLY;BYMONTHDAY=31;BYDAY=FR;SKIP=FORWARD",
        "Every month on the 31st, or the 1st of the next month where it is missing, if that is a Friday, at",
    ),
    (
        "YEARLY;BYYEARDAY=366;SKIP=FORWARD",
        "Every year on day 366 of the year, or 1 January of the next year where it is missing, at",
    ),
    # There are no words for what a mixture, a number or a position does to a moved day.
    ("MONTHLY;BYMONTHDAY=31,-31;SKIP=FORWARD", "As the rule RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY"),
    ("MONTHLY;BYMONTHDAY=30,31;BYSETPOS=-1;SKIP=BACKWARD", "As the rule RSCALE=GREGORIAN;FREQ=MONTHLY;"),
    ("YEARLY;BYMONTH=4;BYMONTHDAY=31;BYDAY=1FR;SKIP=FORWARD", "As the rule RSCALE=GREGORIAN;FREQ=YEARLY;"),
]


@pytest.mark.parametrize(("text", "words"), WARNINGS)
def test_what_surprises_is_said(text: str, words: str) -> None:
    warnings = Recurrence.parse(text, created_at=CREATED).warnings
    assert any(words in warning for warning in warnings), warnings


@pytest.mark.parametrize("text", QUIET)
def test_what_does_not_surprise_is_not_warned_of(text: str) -> None:
    assert Recurrence.parse(text, created_at=CREATED).warnings == ()


def test_a_time_in_a_gap_is_no_surprise_to_those_who_asked_to_skip_it() -> None:
    assert Recurrence.parse(GAP + "FREQ=DAILY", created_at=CREATED, gap="skip").warnings == ()


def judged_warnings() -> dict[str, list[str]]:
    lines = Path(__file__).with_name("warnings.txt").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for block in re.split(r"\n(?! )", lines.strip()):
        text, *told = block.splitlines()
        if not text.startswith("#"):
            found[text.replace(" + ", "\n")] = [each.strip() for each in told]
    return found


def test_all_warnings_of_the_table_are_those_that_were_judged() -> None:
    judged = judged_warnings()
    assert len(judged) > 80
    found = {text: list(Recurrence.parse(text, created_at=CREATED).warnings) for text in judged}
    assert [(text, told, judged[text]) for text, told in found.items() if told != judged[text]] == []


@pytest.mark.parametrize(
    ("created_at", "text", "words"),
    [
        ("2026-01-01T23:00:05", "FREQ=DAILY", "fires at 23:00:06 (UTC), that of its creation"),
        ("2026-01-01T23:00:05", "FREQ=DAILY", "such as BYHOUR=23;BYMINUTE=0;BYSECOND=0"),
        # The next change of the clocks is that after the creation, even when one has just been.
        ("2026-03-29T00:59:59", GAP + "FREQ=DAILY", "02:00 to 03:00 on 29 March 2026"),
        ("2026-03-29T01:30:00", GAP + "FREQ=DAILY", "02:00 to 03:00 on 28 March 2027"),
        ("2026-03-29T00:59:59", PARIS + "FREQ=HOURLY;INTERVAL=24", "next on 29 March 2026"),
        ("2026-03-29T01:00:00", PARIS + "FREQ=HOURLY;INTERVAL=24", "next on 25 October 2026"),
    ],
)
def test_a_warning_is_seen_from_the_creation(created_at: str, text: str, words: str) -> None:
    found = Recurrence.parse(text, created_at=datetime.fromisoformat(created_at).replace(tzinfo=UTC))
    assert words in found.warnings[0]


def test_every_warning_says_what_to_do() -> None:
    remedy = re.compile(
        r"\b(add|write|give|choose|use|check|is the (last|first)|keeps it|makes up|take BYDAY|set|read)\b"
    )
    for text, _ in WARNINGS:
        for warning in Recurrence.parse(text, created_at=CREATED).warnings:
            assert remedy.search(warning) or "local day" in warning, warning


def test_warnings_never_refuse_a_rule_and_take_bounded_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    budgets: list[StepBudget] = []

    class Counted(StepBudget):
        def __init__(self, *, parsing: bool = False) -> None:
            super().__init__(parsing=parsing)
            budgets.append(self)

    monkeypatch.setattr(warnings, "StepBudget", Counted)
    years = ",".join(f"{year}0106T093000Z" for year in range(2030, 9000, 4))
    rare = "FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO"
    start = "DTSTART:20240229T093000Z\nRRULE:"
    found = Recurrence.parse(f"{start}{rare}\nEXDATE:{years}", created_at=CREATED)
    assert found.after(CREATED)
    assert not budgets  # nobody has asked for warnings: most who read a rule do not
    assert found.warnings is found.warnings
    assert all(budget.steps_left >= -1 and budget.limit == PARSE_LIMIT for budget in budgets)


@pytest.mark.parametrize(("count", "warned"), [(501, False), (1000, False), (500, True)])
def test_exceptions_are_looked_for_among_the_first_instances_of_a_long_count(
    count: int, *, warned: bool
) -> None:
    """The last of 500 daily ones from 5 January 2026 on is on 19 May 2027."""
    late = "20270519T093000Z" if warned else "20270520T093000Z"
    found = Recurrence.parse(f"{START}FREQ=DAILY;COUNT={count}\nEXDATE:{late}", created_at=CREATED)
    assert any("EXDATE takes away 1" in warning for warning in found.warnings) is warned


@pytest.mark.parametrize(
    ("rules", "is_known"),
    [("FREQ=DAILY", True), ("FREQ=DAILY;COUNT=9", False), ("FREQ=DAILY\nRRULE:FREQ=DAILY;COUNT=9", False)],
)
def test_of_a_count_that_is_too_long_nothing_is_said_and_a_set_without_one_is_refused(
    rules: str, *, is_known: bool
) -> None:
    built = Recurrence.parse(START + rules, created_at=CREATED)._warnings.built
    steps = StepBudget(parsing=True)
    steps.steps_left = 0
    if is_known:
        with pytest.raises(OutOfSteps):
            warnings.outlook(built, 0, steps)
    else:
        assert warnings.outlook(built, 0, steps) == (None, False, False)


def test_a_timezone_that_dtstart_overrules_is_mentioned() -> None:
    found = Recurrence.parse(START + "FREQ=DAILY", created_at=CREATED, timezone="Asia/Tokyo")
    assert found.warnings == (
        "DTSTART is in UTC, so the schedule's timezone Asia/Tokyo is not used; leave out the Z to use it.",
    )


def test_a_rule_that_there_are_no_words_for_is_quoted() -> None:
    rule = "FREQ=MONTHLY;BYDAY=MO,TU;BYHOUR=9,17;BYMINUTE=0;BYSETPOS=-1,1"
    assert Recurrence.parse(START + rule, created_at=CREATED).description == (
        f"As the rule {rule} says (UTC), from 5 January 2026 at 09:30 on"
    )
    hours = ",".join(str(hour) for hour in (1, 3, 4, 6, 7, 9, 11, 12, 14, 16, 18, 20, 21, 23))
    minutes = ",".join(str(minute) for minute in range(60) if minute % 7)
    long = f"FREQ=DAILY;BYHOUR={hours};BYMINUTE={minutes};BYSECOND={minutes}"
    described = Recurrence.parse(START + long, created_at=CREATED).description
    assert described.startswith("As the rule FREQ=DAILY;BYHOUR=1,3,4")
    assert len(described) < 400


@pytest.mark.parametrize(("rule", "begins"), SKIPPED)
def test_a_sentence_says_where_skip_moves_a_day_that_is_missing(rule: str, begins: str) -> None:
    found = Recurrence.parse(f"{START}RSCALE=GREGORIAN;FREQ={rule}", created_at=CREATED)
    assert found.description.startswith(begins)
    assert not any("does not fire" in warning for warning in found.warnings)


def unused(moment: str, hint: str) -> str:
    return f"EXDATE {moment} takes nothing away: {hint}."


def counted(lost: int, count: int, them: str) -> str:
    return (
        f"EXDATE takes away {lost} of the 3 occurrences that COUNT allows and counts all the same. "
        f"COUNT={count} makes up for {them}."
    )


MOSCOW = "DTSTART;TZID=Europe/Moscow:20260105T233000\nRRULE:"
SAMOA = "DTSTART;TZID=Pacific/Apia:20260105T003000\nRRULE:"
EXCEPTIONS = [
    # Of several without effect the first is named.
    (
        START + "FREQ=DAILY\nEXDATE:20260109T100000Z,20260107T100000Z",
        [unused("7 January 2026 at 10:00", "on that day it fires at 09:30; write that time")],
    ),
    (
        START + "FREQ=WEEKLY\nEXDATE:20260106T093000Z",
        [unused("6 January 2026 at 09:30", "nothing occurs on that day; check it")],
    ),
    # Of several times on that day, too.
    (
        START + "FREQ=DAILY\nRRULE:FREQ=DAILY;BYHOUR=10;BYMINUTE=0\nEXDATE:20260106T110000Z",
        [unused("6 January 2026 at 11:00", "on that day it fires at 09:30; write that time")],
    ),
    (
        START + "FREQ=WEEKLY\nEXDATE;VALUE=DATE:20260106",
        [unused("6 January 2026", "nothing occurs on that day; check it")],
    ),
    (START + "FREQ=WEEKLY\nEXDATE;VALUE=DATE:20260112", []),
    # What one rule lacks another one has, or a date.
    (START + "FREQ=WEEKLY\nRRULE:FREQ=DAILY;BYHOUR=10;BYMINUTE=0;BYSECOND=0\nEXDATE:20260106T100000Z", []),
    (START + "FREQ=WEEKLY\nRDATE:20260106T100000Z\nEXDATE:20260106T100000Z", []),
    (
        START + "FREQ=WEEKLY\nRDATE:20260106T100000Z,20260106T080000Z\nEXDATE:20260106T093000Z",
        [unused("6 January 2026 at 09:30", "on that day it fires at 08:00; write that time")],
    ),
    # A day is that of the zone: here it begins three hours before that of UTC.
    (
        MOSCOW + "FREQ=WEEKLY\nEXDATE;TZID=Europe/Moscow:20260112T100000",
        [unused("12 January 2026 at 10:00", "on that day it fires at 23:30; write that time")],
    ),
    (
        MOSCOW + "FREQ=WEEKLY\nEXDATE;TZID=Europe/Moscow:20260113T003000",
        [unused("13 January 2026 at 00:30", "nothing occurs on that day; check it")],
    ),
    (
        SAMOA + "FREQ=WEEKLY\nEXDATE;TZID=Pacific/Apia:20260112T233000",
        [unused("12 January 2026 at 23:30", "on that day it fires at 00:30; write that time")],
    ),
    # COUNT counts what exceptions take away.
    (
        START + "FREQ=DAILY;COUNT=3\nEXDATE:20260106T093000Z",
        [counted(1, 4, "it")],
    ),
    (
        START + "FREQ=DAILY;COUNT=3\nEXDATE:20260106T093000Z,20260105T093000Z",
        [counted(2, 5, "them")],
    ),
    (
        START + "FREQ=DAILY;COUNT=3\nEXDATE:20260108T093000Z",
        [unused("8 January 2026 at 09:30", "nothing occurs on that day; check it")],
    ),
    # A long COUNT is not counted to its end, and so the rule is taken to go on.
    (START + "FREQ=DAILY;COUNT=501\nEXDATE:20280109T093000Z", []),
    (
        START + "FREQ=DAILY;COUNT=500\nEXDATE:20280109T093000Z",
        [unused("9 January 2028 at 09:30", "nothing occurs on that day; check it")],
    ),
]


@pytest.mark.parametrize(("text", "told"), EXCEPTIONS)
def test_what_exceptions_take_away_is_told_exactly(text: str, told: list[str]) -> None:
    warnings = Recurrence.parse(text, created_at=CREATED).warnings
    assert [warning for warning in warnings if warning.startswith("EXDATE")] == told
