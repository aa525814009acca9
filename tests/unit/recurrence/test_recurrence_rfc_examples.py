"""The 39 examples of RFC 5545, 3.8.5.3, with errata 3883 and 4271, in America/New_York as there.

Times are 09:00 local unless a row says otherwise. An expectation that ends with "..." goes on for ever.
"""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.recurrence import Recurrence

NEVER = datetime(2100, 1, 1, tzinfo=UTC)
WEEKDAYS = "MO,TU,WE,TH,FR"


def days(*months: str, times: str = "09:00") -> list[str]:
    """`"1997-09: 2 4-6"` as "1997-09-02 09:00", "1997-09-04 09:00" and so on, for each of the times."""
    found = []
    for month in months:
        name, numbers = month.split(":")
        for number in numbers.split():
            first, _, last = number.partition("-")
            for day in range(int(first), int(last or first) + 1):
                found += [f"{name}-{day:02d} {time}" for time in times.split()]
    return found


JANUARIES = days("1998-01: 1-31", "1999-01: 1-31", "2000-01: 1-31")
THIRDS = "09:00 09:20 09:40 10:00 10:20 10:40 11:00 11:20 11:40 12:00 12:20 12:40"
THIRDS += " 13:00 13:20 13:40 14:00 14:20 14:40 15:00 15:20 15:40 16:00 16:20 16:40"
SUMMER = [
    *days("1997-06: 5 12 19 26", "1997-07: 3 10 17 24 31", "1997-08: 7 14 21 28"),
    *days("1998-06: 4 11 18 25", "1998-07: 2 9 16 23 30", "1998-08: 6 13 20 27"),
    *days("1999-06: 3 10 17 24", "1999-07: 1 8 15 22 29", "1999-08: 5 12 19 26"),
]

EXAMPLES = [
    ("01-ten-days", "19970902", "FREQ=DAILY;COUNT=10", days("1997-09: 2-11")),
    (
        "02-daily-until-christmas-eve",
        "19970902",
        "FREQ=DAILY;UNTIL=19971224T000000Z",
        days("1997-09: 2-30", "1997-10: 1-31", "1997-11: 1-30", "1997-12: 1-23"),
    ),
    (
        "03-every-other-day",
        "19970902",
        "FREQ=DAILY;INTERVAL=2",
        [*days("1997-09: 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30", "1997-10: 2 4 6 8 10"), "..."],
    ),
    (
        "04-every-tenth-day",
        "19970902",
        "FREQ=DAILY;INTERVAL=10;COUNT=5",
        days("1997-09: 2 12 22", "1997-10: 2 12"),
    ),
    (
        "05-january-days-by-year",
        "19980101",
        f"FREQ=YEARLY;UNTIL=20000131T140000Z;BYMONTH=1;BYDAY=SU,SA,{WEEKDAYS}",
        JANUARIES,
    ),
    ("05-january-days-by-day", "19980101", "FREQ=DAILY;UNTIL=20000131T140000Z;BYMONTH=1", JANUARIES),
    (
        "06-ten-weeks",
        "19970902",
        "FREQ=WEEKLY;COUNT=10",
        days("1997-09: 2 9 16 23 30", "1997-10: 7 14 21 28", "1997-11: 4"),
    ),
    (
        "07-weekly-until-christmas-eve",
        "19970902",
        "FREQ=WEEKLY;UNTIL=19971224T000000Z",
        days("1997-09: 2 9 16 23 30", "1997-10: 7 14 21 28", "1997-11: 4 11 18 25", "1997-12: 2 9 16 23"),
    ),
    (
        "08-every-other-week",
        "19970902",
        "FREQ=WEEKLY;INTERVAL=2;WKST=SU",
        [
            *days("1997-09: 2 16 30", "1997-10: 14 28", "1997-11: 11 25", "1997-12: 9 23", "1998-01: 6 20"),
            "...",
        ],
    ),
    (
        "09-tuesdays-and-thursdays-until",
        "19970902",
        "FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH",
        days("1997-09: 2 4 9 11 16 18 23 25 30", "1997-10: 2"),
    ),
    (
        "09-tuesdays-and-thursdays-count",
        "19970902",
        "FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH",
        days("1997-09: 2 4 9 11 16 18 23 25 30", "1997-10: 2"),
    ),
    (
        "10-three-days-of-every-other-week",
        "19970901",
        "FREQ=WEEKLY;INTERVAL=2;UNTIL=19971224T000000Z;WKST=SU;BYDAY=MO,WE,FR",
        days(
            "1997-09: 1 3 5 15 17 19 29",
            "1997-10: 1 3 13 15 17 27 29 31",
            "1997-11: 10 12 14 24 26 28",
            "1997-12: 8 10 12 22",
        ),
    ),
    (
        "11-two-days-of-every-other-week",
        "19970902",
        "FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH",
        days("1997-09: 2 4 16 18 30", "1997-10: 2 14 16"),
    ),
    (
        "12-first-friday-ten-times",
        "19970905",
        "FREQ=MONTHLY;COUNT=10;BYDAY=1FR",
        days("1997-09: 5", "1997-10: 3", "1997-11: 7", "1997-12: 5", "1998-01: 2", "1998-02: 6", "1998-03: 6")
        + days("1998-04: 3", "1998-05: 1", "1998-06: 5"),
    ),
    (
        "13-first-friday-until-christmas-eve",
        "19970905",
        "FREQ=MONTHLY;UNTIL=19971224T000000Z;BYDAY=1FR",
        days("1997-09: 5", "1997-10: 3", "1997-11: 7", "1997-12: 5"),
    ),
    (
        "14-first-and-last-sunday",
        "19970907",
        "FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU",
        days("1997-09: 7 28", "1997-11: 2 30", "1998-01: 4 25", "1998-03: 1 29", "1998-05: 3 31"),
    ),
    (
        "15-second-to-last-monday",
        "19970922",
        "FREQ=MONTHLY;COUNT=6;BYDAY=-2MO",
        days("1997-09: 22", "1997-10: 20", "1997-11: 17", "1997-12: 22", "1998-01: 19", "1998-02: 16"),
    ),
    (
        "16-third-to-last-day",
        "19970928",
        "FREQ=MONTHLY;BYMONTHDAY=-3",
        [
            *days("1997-09: 28", "1997-10: 29", "1997-11: 28", "1997-12: 29", "1998-01: 29", "1998-02: 26"),
            "...",
        ],
    ),
    (
        "17-second-and-fifteenth",
        "19970902",
        "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15",
        days("1997-09: 2 15", "1997-10: 2 15", "1997-11: 2 15", "1997-12: 2 15", "1998-01: 2 15"),
    ),
    (
        "18-first-and-last-day",
        "19970930",
        "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1",
        days("1997-09: 30", "1997-10: 1 31", "1997-11: 1 30", "1997-12: 1 31", "1998-01: 1 31", "1998-02: 1"),
    ),
    (
        "19-six-days-every-18-months",
        "19970910",
        "FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15",
        days("1997-09: 10-15", "1999-03: 10-13"),
    ),
    (
        "20-tuesdays-of-every-other-month",
        "19970902",
        "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU",
        [
            *days("1997-09: 2 9 16 23 30", "1997-11: 4 11 18 25", "1998-01: 6 13 20 27"),
            *days("1998-03: 3 10 17 24 31"),
            "...",
        ],
    ),
    (
        "21-june-and-july",
        "19970610",
        "FREQ=YEARLY;COUNT=10;BYMONTH=6,7",
        [day for year in range(1997, 2002) for day in days(f"{year}-06: 10", f"{year}-07: 10")],
    ),
    (
        "22-first-quarter-of-every-other-year",
        "19970310",
        "FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3",
        [
            *days("1997-03: 10"),
            *(
                f"{year}-{month} 09:00"
                for year in (1999, 2001, 2003)
                for month in ("01-10", "02-10", "03-10")
            ),
        ],
    ),
    (
        "23-days-of-every-third-year",
        "19970101",
        "FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200",
        days("1997-01: 1", "1997-04: 10", "1997-07: 19", "2000-01: 1", "2000-04: 9", "2000-07: 18")
        + days("2003-01: 1", "2003-04: 10", "2003-07: 19", "2006-01: 1"),
    ),
    (
        "24-twentieth-monday",
        "19970519",
        "FREQ=YEARLY;BYDAY=20MO",
        [*days("1997-05: 19", "1998-05: 18", "1999-05: 17"), "..."],
    ),
    (
        "25-monday-of-week-20",
        "19970512",
        "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
        [*days("1997-05: 12", "1998-05: 11", "1999-05: 17"), "..."],
    ),
    (
        "26-thursdays-in-march",
        "19970313",
        "FREQ=YEARLY;BYMONTH=3;BYDAY=TH",
        [*days("1997-03: 13 20 27", "1998-03: 5 12 19 26", "1999-03: 4 11 18 25"), "..."],
    ),
    ("27-thursdays-of-summer", "19970605", "FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8", [*SUMMER, "..."]),
    (
        "28-friday-the-13th",
        "19970902",
        "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
        [*days("1998-02: 13", "1998-03: 13", "1998-11: 13", "1999-08: 13", "2000-10: 13"), "..."],
    ),
    (
        "29-saturday-after-the-first-sunday",
        "19970913",
        "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
        [
            *days("1997-09: 13", "1997-10: 11", "1997-11: 8", "1997-12: 13", "1998-01: 10", "1998-02: 7"),
            *days("1998-03: 7", "1998-04: 11", "1998-05: 9", "1998-06: 13"),
            "...",
        ],
    ),
    (
        "30-election-day",
        "19961105",
        "FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8",
        [*days("1996-11: 5", "2000-11: 7", "2004-11: 2"), "..."],
    ),
    (
        "31-third-of-three-weekdays",
        "19970904",
        "FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3",
        days("1997-09: 4", "1997-10: 7", "1997-11: 6"),
    ),
    (
        "32-second-to-last-weekday",
        "19970929",
        f"FREQ=MONTHLY;BYDAY={WEEKDAYS};BYSETPOS=-2",
        [
            *days("1997-09: 29", "1997-10: 30", "1997-11: 27", "1997-12: 30", "1998-01: 29", "1998-02: 26"),
            *days("1998-03: 30"),
            "...",
        ],
    ),
    (
        "33-every-three-hours-erratum-3883",
        "19970902",
        "FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T210000Z",
        days("1997-09: 2", times="09:00 12:00 15:00"),
    ),
    (
        "34-six-quarters-of-an-hour",
        "19970902",
        "FREQ=MINUTELY;INTERVAL=15;COUNT=6",
        days("1997-09: 2", times="09:00 09:15 09:30 09:45 10:00 10:15"),
    ),
    (
        "35-every-ninety-minutes",
        "19970902",
        "FREQ=MINUTELY;INTERVAL=90;COUNT=4",
        days("1997-09: 2", times="09:00 10:30 12:00 13:30"),
    ),
    (
        "36-working-hours-by-day",
        "19970902",
        "FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40",
        [*days("1997-09: 2 3", times=THIRDS), "..."],
    ),
    (
        "36-working-hours-by-minute",
        "19970902",
        "FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11,12,13,14,15,16",
        [*days("1997-09: 2 3", times=THIRDS), "..."],
    ),
    (
        "37-weeks-from-monday",
        "19970805",
        "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO",
        days("1997-08: 5 10 19 24"),
    ),
    (
        "38-weeks-from-sunday",
        "19970805",
        "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU",
        days("1997-08: 5 17 19 31"),
    ),
    (
        "39-days-that-do-not-exist",
        "20070115",
        "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5",
        days("2007-01: 15 30", "2007-02: 15", "2007-03: 15 30"),
    ),
]


@pytest.mark.parametrize(
    ("start", "rule", "expected"), [row[1:] for row in EXAMPLES], ids=[e[0] for e in EXAMPLES]
)
def test_an_example_of_the_rfc_gives_the_dates_printed_there(
    start: str, rule: str, expected: list[str]
) -> None:
    recurrence = Recurrence.parse(
        f"DTSTART;TZID=America/New_York:{start}T090000\nRRULE:{rule}",
        created_at=datetime(1996, 1, 1, tzinfo=UTC),
    )
    endless = expected[-1] == "..."
    known = expected[:-1] if endless else expected
    found = recurrence.occurrences(recurrence.dtstart, NEVER, len(known) if endless else None)
    assert [occurrence.local.strftime("%Y-%m-%d %H:%M") for occurrence in found] == known
    assert (recurrence.after(found[-1].instant) is None) is not endless


def test_the_rfc_examples_cross_the_clock_change_at_the_same_local_time() -> None:
    recurrence = Recurrence.parse(
        "DTSTART;TZID=America/New_York:19970902T090000\nRRULE:FREQ=DAILY;UNTIL=19971224T000000Z",
        created_at=datetime(1996, 1, 1, tzinfo=UTC),
    )
    around = datetime(1997, 10, 25, tzinfo=UTC)
    assert recurrence.between(around, around + timedelta(days=2)) == [
        datetime(1997, 10, 25, 13, tzinfo=UTC),
        datetime(1997, 10, 26, 14, tzinfo=UTC),
    ]


def test_friday_the_13th_stands_beside_an_exdate_of_its_own_start() -> None:
    recurrence = Recurrence.parse(
        "DTSTART;TZID=America/New_York:19970902T090000\n"
        "EXDATE;TZID=America/New_York:19970902T090000\n"
        "RRULE:FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
        created_at=datetime(1996, 1, 1, tzinfo=UTC),
    )
    assert recurrence.after(recurrence.dtstart, inclusive=True) == datetime(1998, 2, 13, 14, tzinfo=UTC)
