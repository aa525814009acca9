"""Random recurrence sets whose exceptions take away much of what their rules give."""

from datetime import UTC, date, datetime, timedelta
from random import Random

FREQUENCIES = ["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"]
DAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
ZONES = [
    "UTC",
    "UTC",
    "America/New_York",
    "Europe/Zurich",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Asia/Gaza",
]
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
LAST = datetime(2100, 1, 1, tzinfo=UTC)


def random_set(random: Random) -> tuple[str, str]:
    """`(text, zone)`: rules and exceptions of like frequencies, often parts of one another."""
    start = FIRST + timedelta(seconds=random.choice([0, 1, 7, 3600]) + random.randrange(300) * 86_400)
    lines = [f"DTSTART:{start:%Y%m%dT%H%M%S}"]
    frequency = random.choice(FREQUENCIES)
    given = [_rule(random, frequency) for _ in range(random.choice([1, 1, 1, 2, 3]))]
    lines += [f"RRULE:{rule}" for rule in given]
    for _ in range(random.choice([0, 1, 1, 2, 2, 4])):
        kind = random.randrange(4)
        if kind == 0:
            lines += [f"EXRULE:{rule}" for rule in _halves(random, random.choice(given))]
        elif kind == 1:
            lines.append(f"EXRULE:{_rule(random, random.choice(FREQUENCIES))}")
        else:
            lines.append(f"EXRULE:{_narrowed(random, random.choice(given))}")
    if random.random() < 0.4:
        lines.append("EXDATE;VALUE=DATE:" + ",".join(_run_of_days(random, start.date())))
    if random.random() < 0.3:
        dates = [start + timedelta(seconds=random.randrange(10**7)) for _ in range(random.randrange(1, 20))]
        lines.append("EXDATE:" + ",".join(f"{moment:%Y%m%dT%H%M%S}" for moment in dates))
    if random.random() < 0.2:
        lines.append(f"RDATE:{start + timedelta(days=random.randrange(9000)):%Y%m%dT%H%M%S}")
    return "\n".join(lines), random.choice(ZONES)


def _rule(random: Random, frequency: str) -> str:
    parts = [f"FREQ={frequency}"]
    if random.random() < 0.4:
        parts.append(f"INTERVAL={random.choice([2, 3, 5, 7, 12, 24, 30, 60, 61, 90, 420, 1440, 86_399])}")
    parts += _some_parts(random, frequency, random.choice([0, 1, 1, 2, 3]))
    if len(parts) > 1 and any(part.startswith("BY") for part in parts) and random.random() < 0.15:
        parts.append(f"BYSETPOS={random.choice([1, 2, -1])}")
    ends = random.random()
    if ends < 0.1:
        parts.append(f"COUNT={random.choice([1, 5, 100, 20_000, 100_000])}")
    elif ends < 0.2:
        until = FIRST + timedelta(days=random.choice([30, 300, 3000, 20_000, 100_000]))
        parts.append(f"UNTIL={until:%Y%m%dT%H%M%SZ}")
    return ";".join(parts)


def _narrowed(random: Random, rule: str) -> str:
    """The rule itself, or what some further parts leave of it."""
    parts = [part for part in rule.split(";") if not part.startswith(("COUNT", "UNTIL", "BYSETPOS"))]
    named = {part.partition("=")[0] for part in parts}
    more = _some_parts(random, parts[0][5:], random.choice([0, 1, 1, 2]))
    return ";".join(parts + [part for part in more if part.partition("=")[0] not in named])


def _halves(random: Random, rule: str) -> list[str]:
    """Two rules that only together take everything away, in some months or always."""
    parts = [
        part for part in _narrowed(random, rule).split(";") if not part.startswith(("BYHOUR", "BYSECOND"))
    ]
    name, size = random.choice([("BYHOUR", 24), ("BYSECOND", 60)])
    values = list(range(size))
    random.shuffle(values)
    cut = random.randrange(1, size)
    return [";".join([*parts, f"{name}={','.join(map(str, half))}"]) for half in (values[:cut], values[cut:])]


def _some_parts(random: Random, frequency: str, number: int) -> list[str]:
    allowed = ["BYMONTH", "BYDAY", "BYHOUR", "BYMINUTE", "BYSECOND"]
    if frequency != "WEEKLY":
        allowed.append("BYMONTHDAY")
    if frequency in ("YEARLY", "HOURLY", "MINUTELY", "SECONDLY"):
        allowed.append("BYYEARDAY")
    if frequency == "YEARLY":
        allowed.append("BYWEEKNO")
    values = {
        "BYMONTH": range(1, 13),
        "BYDAY": DAYS,
        "BYHOUR": range(24),
        "BYMINUTE": range(0, 60, random.choice([1, 15])),
        "BYSECOND": range(0, 60, random.choice([1, 30])),
        "BYMONTHDAY": [*range(1, 32), -1, -2, -31],
        "BYYEARDAY": [1, 60, 100, 366, -1, -366],
        "BYWEEKNO": [1, 2, 20, 52, 53, -1],
    }
    found = []
    for name in random.sample(allowed, min(number, len(allowed))):
        choice = list(values[name])
        size = random.choice([1, 2, len(choice) // 2 or 1, max(len(choice) - 1, 1), len(choice)])
        found.append(f"{name}={','.join(map(str, random.sample(choice, size)))}")
    return found


def _run_of_days(random: Random, start: date) -> list[str]:
    first = start + timedelta(days=random.randrange(2000))
    gap = random.choice([1, 1, 2, 7])
    return [
        f"{first + timedelta(days=gap * number):%Y%m%d}" for number in range(random.choice([1, 2, 43, 400]))
    ]
