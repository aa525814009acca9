"""What parse accepts never raises later, whatever EXDATE and EXRULE take away; and nothing else is taken."""

import os
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from scheduler_app.domain.recurrence import InvalidRecurrence, Recurrence, recurrence
from scheduler_app.domain.recurrence.steps import Steps
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


class Spent(Steps):
    """Remembers the most steps that any look-up took between two occurrences."""

    most = 0

    def spend(self, count: int = 1) -> None:
        super().spend(count)
        if not self.parsing:
            Spent.most = max(Spent.most, self.limit - self.left)


def check_that_none_raises(seed: int, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of so many sets that are accepted, looks up instants up to 2100.

    Those refused take away all of a rule in a way that cannot be told within the steps.
    """
    monkeypatch.setattr(recurrence, "Steps", Spent)
    random = Random(seed)
    accepted = refused = 0
    while accepted < number:
        text, zone = random_set(random)
        try:
            found = Recurrence.parse(text, created_at=CREATED, timezone=zone)
        except InvalidRecurrence as error:
            refused += "never fire" not in error.message
            continue
        accepted += 1
        for _ in range(3):
            moment = CREATED + (LAST - CREATED) * random.random()
            try:
                found.after(moment)
                found.checkpoint(moment)
                found.between(CREATED, moment, 5)
            except InvalidRecurrence as error:
                pytest.fail(f"accepted, and raised after {moment}: {zone}\n{text}\n{error}")
    assert refused < number / 6, f"{refused} of {number + refused} were refused"
    assert Spent.most > 0


def test_an_accepted_set_never_raises_later(monkeypatch: pytest.MonkeyPatch) -> None:
    check_that_none_raises(15, 200, monkeypatch)


@pytest.mark.long
def test_no_set_of_thousands_raises_after_it_was_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """`RECURRENCE_SETS=100000` makes it a run of hours."""
    number = int(os.environ.get("RECURRENCE_SETS", "5000"))
    check_that_none_raises(int(os.environ.get("RECURRENCE_SEED", "2026")), number, monkeypatch)


def test_exactly_what_the_exceptions_name_is_taken_away() -> None:
    random = Random(7)
    compared = 0
    while compared < 30:
        text, zone = random_set(random)
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
        instants = given.between(CREATED, LAST, 3000)
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
