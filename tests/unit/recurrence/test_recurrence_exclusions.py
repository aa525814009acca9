"""What parse accepts never raises later, whatever EXDATE and EXRULE take away; and nothing else is taken."""

import os
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from scheduler_app.domain.recurrence import InvalidRecurrence, Recurrence, recurrence
from scheduler_app.domain.recurrence.timeline import StepBudget
from tests.unit.recurrence.everyday_sets import everyday_set
from tests.unit.recurrence.random_sets import LAST, random_set

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
JANUARY = ",".join(f"202701{day:02d}" for day in range(1, 32))
FEBRUARY = ",".join(f"202702{day:02d}" for day in range(1, 13))
EVEN, ODD = (",".join(map(str, range(first, 60, 2))) for first in (0, 1))
#: The set, an instant, the occurrence after it.
JUMPS = {
    "one day of seconds": ("SECONDLY\nEXDATE;VALUE=DATE:20261225", "20261224T235959", "20261226T000000"),
    "43 days of seconds": (
        f"SECONDLY\nEXDATE;VALUE=DATE:{JANUARY},{FEBRUARY}",
        "20261231T235959",
        "20270213T000000",
    ),
    "weekends": (
        "SECONDLY;INTERVAL=30\nEXRULE:FREQ=SECONDLY;BYDAY=SA,SU",
        "20260102T235930",
        "20260105T000000",
    ),
    "december": ("MINUTELY\nEXRULE:FREQ=MINUTELY;BYMONTH=12", "20261130T235900", "20270101T000000"),
    "all but december": (
        "SECONDLY\nEXRULE:FREQ=SECONDLY;BYMONTH=1,2,3,4,5,6,7,8,9,10,11",
        "20261231T235959",
        "20271201T000000",
    ),
    "two that only together take a month": (
        f"SECONDLY\nEXRULE:FREQ=SECONDLY;BYMONTH=6;BYSECOND={EVEN}\nEXRULE:FREQ=SECONDLY;BYMONTH=6;BYSECOND={ODD}",
        "20260531T235959",
        "20260701T000000",
    ),
    "73 years": (
        "SECONDLY\nEXRULE:FREQ=SECONDLY;UNTIL=20990101T000000Z",
        "20260601T000000",
        "20990101T000001",
    ),
    "all but one second of a day": (
        "SECONDLY\nEXRULE:FREQ=SECONDLY;BYSECOND="
        + ODD
        + "\nEXRULE:FREQ=SECONDLY;BYSECOND="
        + EVEN[2:]
        + "\n"
        "EXRULE:FREQ=SECONDLY;BYMINUTE=" + ",".join(map(str, range(1, 60))),
        "20260601T000000",
        "20260601T010000",
    ),
    "leap days are left": (
        "MINUTELY\nEXRULE:FREQ=MINUTELY;BYMONTH=1,3,4,5,6,7,8,9,10,11,12"
        "\nEXRULE:FREQ=MINUTELY;BYMONTHDAY=" + ",".join(map(str, range(1, 29))),
        "20260601T000000",
        "20280229T000000",
    ),
    "an old and dense EXRULE beside a rare rule": (
        "YEARLY;INTERVAL=50\nEXRULE:FREQ=SECONDLY;INTERVAL=7",
        "20260101T000001",
        "20760101T000000",
    ),
    "a rule with a COUNT": (
        "SECONDLY;INTERVAL=60;COUNT=100000\nEXRULE:FREQ=MINUTELY;BYMONTH=2",
        "20260131T235900",
        "20260301T000000",
    ),
    "an EXRULE with a COUNT": (
        "SECONDLY\nEXRULE:FREQ=SECONDLY;COUNT=100000",
        "20260101T000000",
        "20260102T034640",
    ),
}


def instant(text: str) -> datetime:
    return datetime.strptime(text, "%Y%m%dT%H%M%S").replace(tzinfo=UTC)


@pytest.mark.parametrize(("text", "after", "expected"), JUMPS.values(), ids=list(JUMPS))
def test_what_is_excluded_is_jumped_over(text: str, after: str, expected: str) -> None:
    found = Recurrence.parse(f"DTSTART:20260101T000000Z\nRRULE:FREQ={text}", created_at=CREATED)
    assert found.after(instant(after)) == instant(expected)


@pytest.mark.parametrize(
    "text",
    [
        "SECONDLY\nEXRULE:FREQ=SECONDLY",
        "DAILY\nEXRULE:FREQ=SECONDLY",
        "HOURLY;INTERVAL=7;BYDAY=MO\nEXRULE:FREQ=HOURLY;BYDAY=MO",
        "MONTHLY;BYMONTHDAY=31\nEXRULE:FREQ=DAILY;BYMONTHDAY=31",
    ],
)
def test_a_rule_of_which_nothing_is_left_ends(text: str) -> None:
    found = Recurrence.parse(f"DTSTART:20260101T000000Z\nRRULE:FREQ={text}", created_at=CREATED)
    assert found.after(CREATED - timedelta(days=1)) is None
    assert any(warning.startswith("There are no occurrences at all") for warning in found.warnings)


NIGHT = "BYHOUR=22,23,0,1,2,3,4,5"
#: The zone, the set, an instant, the occurrence after it.
EVERYDAY = {
    "years without the working days' minutes": (
        "UTC",
        (
            "DTSTART:20180117T163000\nRRULE:FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR\n"
            "EXRULE:FREQ=MINUTELY;UNTIL=20340320T000000Z"
        ),
        "20260101T000000",
        "20340320T163000",
    ),
    "all nights, of two rules one of the night": (
        "Asia/Gaza",
        (
            f"DTSTART:19700120T001500\nRRULE:FREQ=WEEKLY;BYDAY=MO;BYHOUR=4;BYMINUTE=15\n"
            f"RRULE:FREQ=YEARLY;BYHOUR=12\nEXRULE:FREQ=HOURLY;{NIGHT}"
        ),
        "20260101T000000",
        "20260120T101500",
    ),
    "nothing of a month end in the night": (
        "Europe/Zurich",
        (
            f"DTSTART:20240713T001500\nRRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1\n"
            f"EXRULE:FREQ=SECONDLY;{NIGHT}"
        ),
        "20260101T000000",
        None,
    ),
    "a time that a gap moves within the night": (
        "America/New_York",
        f"DTSTART:20240106T020000\nRRULE:FREQ=DAILY\nEXRULE:FREQ=MINUTELY;{NIGHT}",
        "20260101T000000",
        None,
    ),
    "a time that a gap moves out of the night": (
        "America/New_York",
        "DTSTART:20240106T023000\nRRULE:FREQ=DAILY\nEXRULE:FREQ=MINUTELY;BYHOUR=1,2",
        "20260601T000000",
        "20270314T073000",
    ),
    "a time that a gap moves, on a day that is left out": (
        "America/New_York",
        (
            "DTSTART:20240106T023000\nRRULE:FREQ=DAILY\nEXRULE:FREQ=MINUTELY;BYHOUR=1,2\n"
            "EXDATE;VALUE=DATE:20270314"
        ),
        "20260601T000000",
        "20280312T073000",
    ),
    "a quarter of an hour that is not the hour": (
        "Asia/Kathmandu",
        "DTSTART:20260101T000000\nRRULE:FREQ=DAILY;BYMINUTE=0,15\nEXRULE:FREQ=HOURLY",
        "20260101T120000",
        "20260101T183000",
    ),
}


@pytest.mark.parametrize(("zone", "text", "after", "expected"), EVERYDAY.values(), ids=list(EVERYDAY))
def test_exceptions_that_people_write_are_jumped_over_in_their_zone(
    zone: str, text: str, after: str, expected: str | None
) -> None:
    found = Recurrence.parse(text, created_at=CREATED, timezone=zone)
    assert found.after(instant(after)) == (None if expected is None else instant(expected))


class Spent(StepBudget):
    """Remembers the most steps that any look-up took between two occurrences."""

    most = 0

    def spend(self, count: int = 1) -> None:
        super().spend(count)
        if not self.parsing:
            Spent.most = max(Spent.most, self.limit - self.steps_left)


def check_that_none_raises(seed: int, number: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of so many sets, looks up instants up to 2100 in those that are accepted; what was counted.

    Every tenth set is made to be hard. What cannot be told of it within the steps is refused: this is rare,
    and of sets that people write almost unheard of.
    """
    monkeypatch.setattr(recurrence, "StepBudget", Spent)
    monkeypatch.setattr(Spent, "most", 0)
    random = Random(seed)
    counted = dict.fromkeys(("accepted", "never fire", "hard refused", "everyday refused", "instants"), 0)
    for nth in range(number):
        hard = nth % 10 == 0
        text, zone = random_set(random) if hard else everyday_set(random)
        try:
            found = Recurrence.parse(text, created_at=CREATED, timezone=zone)
        except InvalidRecurrence as error:
            refused = "hard refused" if hard else "everyday refused"
            counted["never fire" if "never fire" in error.message else refused] += 1
            continue
        counted["accepted"] += 1
        for _ in range(3):
            moment = CREATED + (LAST - CREATED) * random.random()
            try:
                found.after(moment)
                found.checkpoint(moment)
                found.between(CREATED, moment, 5)
            except InvalidRecurrence as error:
                pytest.fail(f"accepted, and raised after {moment}: {zone}\n{text}\n{error}")
            counted["instants"] += 1
    assert counted["hard refused"] <= number / 60, f"too many were refused: {counted}"
    assert counted["everyday refused"] <= number / 200, f"too many were refused: {counted}"
    assert Spent.most > 0
    return f"seed {seed}: {number} sets, {counted}, most steps {Spent.most}"


def test_an_accepted_set_never_raises_later(monkeypatch: pytest.MonkeyPatch) -> None:
    check_that_none_raises(15, 120, monkeypatch)


@pytest.mark.long
def test_no_set_of_thousands_raises_after_it_was_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """`RECURRENCE_SETS=100000` makes it a run of half an hour."""
    number = int(os.environ.get("RECURRENCE_SETS", "5000"))
    seed = int(os.environ.get("RECURRENCE_SEED", "2026"))
    print(check_that_none_raises(seed, number, monkeypatch))


def check_that_just_what_is_named_is_taken(seed: int, number: int) -> None:
    """Compares so many sets, hard ones and such as people write by turns, with what their parts give."""
    random = Random(seed)
    compared = 0
    while compared < number:
        text, zone = (random_set if compared % 2 else everyday_set)(random)
        start, *lines = text.split("\n")
        whole = [line for line in lines if line.startswith(("RRULE", "RDATE"))]
        try:
            found = Recurrence.parse(text, created_at=CREATED, timezone=zone)
            given = Recurrence.parse("\n".join([start, *whole]), created_at=CREATED, timezone=zone)
            taken = [
                Recurrence.parse(f"{start}\n{line[2:]}", created_at=CREATED, timezone=zone)
                for line in lines
                if line.startswith("EXRULE")
            ]
        except InvalidRecurrence:
            continue
        instants = given.between(CREATED, LAST, 1000)
        if not instants:
            continue
        compared += 1
        end = instants[-1]
        names = {
            moment
            for moment in instants
            if any(each.after(moment, inclusive=True) == moment for each in taken)
        }
        days = {value for line in lines if line.startswith("EXDATE;") for value in line[18:].split(",")}
        locals_ = {value for line in lines if line.startswith("EXDATE:") for value in line[7:].split(",")}
        if locals_:
            exact = Recurrence.parse(f"RDATE:{','.join(locals_)}", created_at=CREATED, timezone=zone)
            names |= set(exact.between(CREATED, LAST))
        info = found.dtstart.tzinfo
        expected = [
            moment
            for moment in instants
            if moment not in names and f"{moment.astimezone(info):%Y%m%d}" not in days
        ]
        assert found.between(CREATED, end + timedelta(seconds=1)) == expected, f"{zone}\n{text}"


def test_a_change_of_the_clock_right_after_excluded_instants_ends_no_day() -> None:
    # Minute 59 is excluded: the clock of Zurich goes back right after it, and the rest of the day remains.
    text = (
        "DTSTART;TZID=Europe/Zurich:20260701T010000\nRRULE:FREQ=SECONDLY;INTERVAL=5\n"
        "EXRULE:FREQ=SECONDLY;BYMINUTE=59"
    )
    found = Recurrence.parse(text, created_at=CREATED)
    begin = datetime(2026, 10, 25, tzinfo=UTC)
    an_hour = 59 * 60 // 5
    assert len(found.between(begin, begin + timedelta(hours=4))) == 4 * an_hour
    change = begin + timedelta(hours=1)
    assert found.after(change - timedelta(seconds=61)) == change


def test_exactly_what_the_exceptions_name_is_taken_away() -> None:
    check_that_just_what_is_named_is_taken(7, 10)


@pytest.mark.long
def test_exactly_what_the_exceptions_of_hundreds_of_sets_name_is_taken_away() -> None:
    check_that_just_what_is_named_is_taken(2026, 600)
