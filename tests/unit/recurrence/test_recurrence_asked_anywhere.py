"""The occurrence after an instant is the first one beyond it in a listing that began days earlier, wherever
the question falls: before a clock change, in the first or the second pass of a repeated hour, after a gap."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random

import pytest

from scheduler_app.domain.calendars import FIRST_YEAR, Calendar, NamedDate, days_of
from scheduler_app.domain.recurrence import InvalidRecurrence, Observance, Occurrence, Recurrence
from scheduler_app.domain.recurrence.timeline import to_datetime
from scheduler_app.domain.recurrence.zones import Zone, find_zone

ZONES = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "Africa/El_Aaiun",
    "Africa/Monrovia",
    "Africa/Windhoek",
    "America/Asuncion",
    "America/Caracas",
    "America/Godthab",
    "America/Havana",
    "America/Juneau",
    "America/Managua",
    "America/New_York",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/Scoresbysund",
    "America/St_Johns",
    "Antarctica/Casey",
    "Antarctica/Macquarie",
    "Antarctica/Troll",
    "Asia/Amman",
    "Asia/Beirut",
    "Asia/Damascus",
    "Asia/Gaza",
    "Asia/Hebron",
    "Asia/Kathmandu",
    "Asia/Manila",
    "Asia/Pyongyang",
    "Asia/Tehran",
    "Atlantic/Azores",
    "Australia/Eucla",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Europe/Istanbul",
    "Europe/London",
    "Europe/Volgograd",
    "Europe/Zurich",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Easter",
    "Pacific/Kwajalein",
]
WIDE = timedelta(days=12)
NEAR = timedelta(days=3)
QUESTIONS = 200
"""Asked of one listing: a listing costs as much as hundreds of questions."""
LISTINGS = 4
"""Of the rest, made from some of the instants."""
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


def clock_change(random: Random, zone: Zone) -> datetime:
    """An instant at which the offset of a zone changes: mostly of this century, else of any."""
    recent = [start for start in zone.starts if 2000 <= to_datetime(start).year < 2040]
    known = [start for start in zone.starts if to_datetime(start).year < 2100]
    return to_datetime(random.choice(recent if recent and random.random() < 0.7 else known))


def recurrence_around(random: Random, zone: Zone, change: datetime) -> Recurrence:
    """A set whose occurrences lie around a clock change; a calendar may drop or move some of them."""
    local = change.astimezone(zone.info).replace(tzinfo=None)
    start = local - timedelta(days=random.choice([20, 40, 400]), seconds=random.randrange(7200))
    lines = [f"DTSTART;TZID={zone.name}:{start:%Y%m%dT%H%M%S}"]
    lines += [f"RRULE:{rule(random, local)}" for _ in range(random.choice([1, 1, 2, 3]))]
    if random.random() < 0.3:
        lines.append(f"EXRULE:{rule(random, local)}")
    if random.random() < 0.3:
        lines.append(f"RDATE;TZID={zone.name}:{near(random, local):%Y%m%dT%H%M%S}")
    if random.random() < 0.3:
        lines.append(f"EXDATE;TZID={zone.name}:{near(random, local):%Y%m%dT%H%M%S}")
    found = Recurrence.parse(
        "\n".join(lines),
        created_at=change,
        gap=random.choice(["shift", "skip"]),
        overlap=random.choice(["first", "last", "last"]),
    )
    if random.random() < 0.5:
        return found
    days = {local.date() + timedelta(days=random.randrange(-3, 4)) for _ in range(4)}
    holidays = tuple(NamedDate(day) for day in days if day.year >= FIRST_YEAR)
    weekend = tuple(random.sample(range(7), random.choice([1, 1, 2])))
    closed = days_of(Calendar.of(dates=holidays, weekend=weekend))
    return found.observing(Observance("closed", closed, random.choice(["skip", "next", "previous"])))


def rule(random: Random, local: datetime) -> str:
    """A rule that names times of day around that of a clock change."""
    if random.random() < 0.15:
        return random.choice(
            [
                f"FREQ=MINUTELY;INTERVAL={random.choice([7, 30, 90])}",
                f"FREQ=HOURLY;BYHOUR={local.hour},{(local.hour + 1) % 24}",
                "FREQ=HOURLY;INTERVAL=5;BYMINUTE=0,30",
            ]
        )
    times = [near(random, local, timedelta(hours=3)) for _ in range(random.choice([1, 2, 3]))]
    hours = ",".join(str(hour) for hour in sorted({time.hour for time in times}))
    minutes = ",".join(str(minute) for minute in sorted({time.minute for time in times}))
    clock = f"BYHOUR={hours};BYMINUTE={minutes};BYSECOND={random.choice(['0', '0,59', '1'])}"
    days = random.choice(
        [
            "FREQ=DAILY",
            "FREQ=DAILY",
            "FREQ=DAILY;INTERVAL=2",
            f"FREQ=WEEKLY;BYDAY={','.join(random.sample(WEEKDAYS, 3))}",
            f"FREQ=MONTHLY;BYMONTHDAY={local.day},-1,1",
            f"FREQ=MONTHLY;BYDAY={','.join(random.sample(WEEKDAYS, 4))};BYSETPOS=-1,1,-3,9",
            "FREQ=DAILY;BYSETPOS=-1",
            "RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=29,30,31;SKIP=BACKWARD",
            "RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=29,30,31;SKIP=FORWARD",
        ]
    )
    ends = random.choice(["", "", "", f";COUNT={random.choice([30, 50, 500])}"])
    return f"{days};{clock}{ends}"


def near(random: Random, local: datetime, within: timedelta = NEAR) -> datetime:
    """A whole minute, mostly on a quarter of an hour, around a local time."""
    moment = local + timedelta(seconds=random.randrange(-1, 1) * 60) + within * random.uniform(-1, 1)
    return moment.replace(
        minute=moment.minute // 15 * 15 if random.random() < 0.6 else moment.minute, second=0
    )


def asked(
    random: Random, change: datetime, listed: list[datetime], questions: int = QUESTIONS
) -> Iterator[datetime]:
    """Instants around a clock change, some of them at an occurrence or a second before one."""
    begin, end = change - NEAR, change + NEAR
    inner = listed[bisect_left(listed, begin) : bisect_right(listed, end)]
    for number in range(questions):
        if inner and number % 4 == 0:
            yield random.choice(inner) - timedelta(seconds=random.randrange(2))
        else:
            span = random.choice([1.5 * 3600, 1.5 * 3600, 26 * 3600, NEAR.total_seconds()])
            yield change + timedelta(seconds=int(random.uniform(-span, span)))


def check(questions: int, seed: int) -> None:
    random = Random(seed)
    done = 0
    while done < questions:
        zone = find_zone(random.choice(ZONES))
        change = clock_change(random, zone)
        try:
            recurrence = recurrence_around(random, zone, change)
        except InvalidRecurrence as error:
            if "can never fire" in error.message:
                continue
            raise
        occurrences = recurrence.occurrences(change - WIDE, change + WIDE)
        listed = [one.instant for one in occurrences]
        for instant in asked(random, change, listed):
            where = f"{recurrence} after {instant:%Y-%m-%dT%H:%M:%SZ}"
            following = bisect_right(listed, instant)
            told = recurrence.after(instant)
            if following < len(listed):
                assert told == listed[following], where
            else:
                assert told is None or told >= change + WIDE, where
            done += 1
        for instant in asked(random, change, listed, LISTINGS):
            check_rest(recurrence, instant, change + WIDE, occurrences[bisect_left(listed, instant) :])
            done += 1


def check_rest(recurrence: Recurrence, since: datetime, end: datetime, expected: list[Occurrence]) -> None:
    """What a listing, an expansion and a counted rule that goes on from a checkpoint give from `since` on."""
    where = f"{recurrence} from {since:%Y-%m-%dT%H:%M:%SZ}"
    instants = [one.instant for one in expected]
    assert recurrence.occurrences(since, end) == expected, where
    half = len(expected) // 2
    found, following = recurrence.between_and_next(since, end, half)
    assert found == instants[:half], where
    assert following == instants[half] if expected else following is None or following >= end, where
    checkpoint = recurrence.checkpoint(since)
    if checkpoint is not None:
        resumed = Recurrence.parse(
            recurrence.text,
            created_at=since,
            gap=recurrence.gap,
            overlap=recurrence.overlap,
            checkpoint=checkpoint,
        )
        if recurrence.observed is not None:
            resumed = resumed.observing(recurrence.observed)
        assert resumed.between(since, end) == instants, where


def test_ten_thousand_questions_around_clock_changes_find_what_a_listing_from_days_before_has() -> None:
    assert len(set(ZONES)) == 40
    check(10_000, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 12))
def test_a_hundred_thousand_questions_around_clock_changes_find_the_same(seed: int) -> None:
    check(100_000, seed)
