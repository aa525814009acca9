"""Random recurrence sets as people write them: one rule or two, holidays, a break, weekends left out."""

from datetime import UTC, datetime, timedelta
from random import Random

from tests.unit.recurrence.random_sets import DAYS, FIRST, ZONES

WORKDAYS = "MO,TU,WE,TH,FR"
HOLIDAYS = ["0101", "0501", "0704", "1031", "1224", "1225", "1226", "1231", "0229"]


def everyday_set(random: Random) -> tuple[str, str]:
    """`(text, zone)`."""
    year, month = random.choice([1970, 1999, 2018, 2024, 2025, 2026]), random.randrange(1, 13)
    time = timedelta(hours=random.randrange(24), minutes=random.choice([0, 0, 15, 30, 45]))
    start = datetime(year, month, 1, tzinfo=UTC) + timedelta(days=random.randrange(31)) + time
    lines = [f"DTSTART:{start:%Y%m%dT%H%M%S}"]
    lines += [f"RRULE:{_rule(random, start)}" for _ in range(random.choice([1, 1, 1, 1, 2]))]
    if random.random() < 0.5:
        lines.append(f"EXRULE:{_exception(random)}")
    if random.random() < 0.2:
        lines.append(f"EXRULE:{_exception(random)}")
    if random.random() < 0.4:
        lines.append("EXDATE;VALUE=DATE:" + ",".join(_days(random)))
    if random.random() < 0.3:
        dates = (start + timedelta(days=random.randrange(9000)) for _ in range(random.randrange(1, 12)))
        lines.append("EXDATE:" + ",".join(f"{date:%Y%m%dT%H%M%S}" for date in dates))
    if random.random() < 0.15:
        lines.append(f"RDATE:{start + timedelta(days=random.randrange(9000), hours=1):%Y%m%dT%H%M%S}")
    return "\n".join(lines), random.choice(ZONES)


def _rule(random: Random, start: datetime) -> str:
    time = f"BYHOUR={random.randrange(24)};BYMINUTE={random.choice([0, 15, 30, 45, 59])}"
    rule = random.choice(
        [
            "FREQ=DAILY",
            f"FREQ=DAILY;{time};BYSECOND=0",
            "FREQ=DAILY;BYHOUR=8,12,17",
            f"FREQ=DAILY;BYDAY={WORKDAYS}",
            f"FREQ=DAILY;INTERVAL={random.choice([2, 3, 10, 90])}",
            "FREQ=WEEKLY",
            f"FREQ=WEEKLY;BYDAY={WORKDAYS};{time}",
            f"FREQ=WEEKLY;BYDAY={','.join(random.sample(DAYS, random.choice([1, 2, 3])))}",
            f"FREQ=WEEKLY;INTERVAL=2;BYDAY={random.choice(DAYS)};WKST={random.choice(DAYS)}",
            "FREQ=MONTHLY",
            f"FREQ=MONTHLY;BYMONTHDAY={random.choice([1, 15, 28, 29, 30, 31, -1])}",
            "FREQ=MONTHLY;BYMONTHDAY=1,15",
            f"FREQ=MONTHLY;BYDAY={random.choice([1, 2, 3, 4, 5, -1])}{random.choice(DAYS)}",
            f"FREQ=MONTHLY;BYDAY={WORKDAYS};BYSETPOS={random.choice([1, -1, -2])}",
            "FREQ=MONTHLY;INTERVAL=3;BYMONTHDAY=1",
            "RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD",
            "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
            "FREQ=YEARLY",
            "FREQ=YEARLY;BYMONTH=3,6,9,12;BYMONTHDAY=-1",
            "FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3",
            "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
            "FREQ=HOURLY",
            f"FREQ=HOURLY;BYHOUR=9,10,11,12,13,14,15,16,17;BYDAY={WORKDAYS}",
            f"FREQ=HOURLY;INTERVAL={random.choice([2, 4, 6, 8, 12])}",
            f"FREQ=MINUTELY;INTERVAL={random.choice([5, 10, 15, 20, 30])}",
            f"FREQ=MINUTELY;INTERVAL=5;BYDAY={WORKDAYS}",
            "FREQ=MINUTELY",
            f"FREQ=SECONDLY;INTERVAL={random.choice([10, 15, 30])}",
        ]
    )
    ends = random.random()
    if ends < 0.1:
        return f"{rule};COUNT={random.choice([1, 5, 10, 12, 52, 100, 1000])}"
    if ends < 0.2:
        return f"{rule};UNTIL={start + timedelta(days=random.choice([30, 365, 3650, 20_000])):%Y%m%dT%H%M%SZ}"
    return rule


def _exception(random: Random) -> str:
    """Weekends, a month, a night, a holiday that comes again, or every so many-th time."""
    frequency = random.choice(["DAILY", "HOURLY", "MINUTELY", "SECONDLY"])
    return random.choice(
        [
            f"FREQ={frequency};BYDAY=SA,SU",
            f"FREQ={frequency};BYMONTH={random.choice(['12', '7,8', '1,2,3,4,5,6'])}",
            f"FREQ={frequency};BYMONTH=12;BYMONTHDAY=24,25,26",
            f"FREQ={frequency};BYHOUR=22,23,0,1,2,3,4,5",
            "FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=1",
            "FREQ=YEARLY;BYMONTH=11;BYDAY=4TH",
            "FREQ=MONTHLY;BYDAY=-1FR",
            f"FREQ=WEEKLY;INTERVAL=2;BYDAY={random.choice(DAYS)}",
            f"FREQ=DAILY;INTERVAL={random.choice([2, 5, 10])}",
            "FREQ=WEEKLY;COUNT=3",
            f"FREQ={frequency};UNTIL={FIRST + timedelta(days=random.choice([30, 3000])):%Y%m%dT%H%M%SZ}",
        ]
    )


def _days(random: Random) -> list[str]:
    """The holidays of some years, or a break of some weeks."""
    if random.random() < 0.6:
        years = range(2026, 2026 + random.choice([1, 5, 20]))
        return [f"{year}{day}" for year in years for day in HOLIDAYS if day != "0229" or year % 4 == 0]
    first = FIRST + timedelta(days=random.randrange(3000))
    return [f"{first + timedelta(days=number):%Y%m%d}" for number in range(random.choice([5, 14, 60]))]
