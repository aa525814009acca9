"""Random cron expressions of every form, and some that are none."""

from random import Random

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
SHORT = ["@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually", "@Daily"]


def random_cron(random: Random) -> tuple[str, str | None]:
    """`(expression, cron_seconds)`."""
    kind = random.random()
    if kind < 0.02:
        return random.choice(SHORT), None
    if kind < 0.06:
        return broken(random), None
    fields = [
        minutes(random),
        hours(random),
        month_days(random),
        months(random),
        weekdays(random),
    ]
    if kind < 0.12:  # both day fields, or impossible ones
        fields[2:] = random.choice(
            [
                [str(random.randrange(1, 32)), months(random), str(random.randrange(8))],
                [str(random.choice([29, 30, 31])), random.choice(["2", "feb", "2,4", "4,6,9,11"]), "*"],
                [str(random.choice([29, 30, 31])), random.choice(["2", "feb", "2,4"]), weekdays(random)],
                [f"{random.randrange(26, 32)}W", random.choice(["*", "2", "4", "2,3", "1-6"]), "?"],
                [f"*/{random.randrange(2, 16)}", "*", weekdays(random)],
                [month_days(random), "*", f"*/{random.randrange(2, 5)}"],
            ]
        )
    if random.random() < 0.1:
        fields = [field.upper() for field in fields]
    if random.random() < 0.12:
        at = random.choice(["first", "last"])
        second = field_of(random, 0, 59)
        return " ".join([second, *fields] if at == "first" else [*fields, second]), at
    return " ".join(fields), None


def minutes(random: Random) -> str:
    if random.random() < 0.5:
        return str(random.randrange(60))
    return field_of(random, 0, 59)


def hours(random: Random) -> str:
    if random.random() < 0.4:
        return str(random.randrange(24))
    return field_of(random, 0, 23)


def month_days(random: Random) -> str:
    kind = random.random()
    if kind < 0.4:
        return "*"
    if kind < 0.45:
        return "?"
    if kind < 0.7:
        return field_of(random, 1, 31)
    letters = ["L", "l", f"L-{random.randrange(1, 31)}", "LW", f"{random.randrange(1, 32)}W"]
    items = [random.choice(letters)]
    while random.random() < 0.3:
        items.append(random.choice([*letters, str(random.randrange(1, 32))]))
    return ",".join(items)


def months(random: Random) -> str:
    kind = random.random()
    if kind < 0.6:
        return "*"
    if kind < 0.7:
        return ",".join(random.sample(MONTHS, random.randrange(1, 4)))
    if kind < 0.75:
        first, last = sorted(random.sample(range(12), 2))
        return f"{MONTHS[first]}-{MONTHS[last]}"
    return field_of(random, 1, 12)


def weekdays(random: Random) -> str:
    kind = random.random()
    if kind < 0.4:
        return "*"
    if kind < 0.45:
        return "?"
    if kind < 0.6:
        return random.choice(
            ["1-5", "mon-fri", "MON-FRI", "6,0", "sat,sun", "0-7", "1-7", "5-7", "*/2", "0-6"]
        )
    if kind < 0.75:
        return field_of(random, 0, 7)
    ranked = [
        f"{random.randrange(8)}L",
        f"{random.randrange(8)}#{random.randrange(1, 6)}",
        f"{random.choice(WEEKDAYS)}#{random.randrange(1, 6)}",
        f"{random.choice(WEEKDAYS)}L",
    ]
    items = [random.choice(ranked)]
    while random.random() < 0.3:
        items.append(random.choice([*ranked, str(random.randrange(8)), random.choice(WEEKDAYS)]))
    return ",".join(items)


def field_of(random: Random, low: int, high: int) -> str:
    """`*`, a step, or a list of numbers, ranges and steps."""
    kind = random.random()
    if kind < 0.2:
        return "*"
    if kind < 0.4:
        return f"*/{random.randrange(1, high + 5)}"
    items: list[str] = []
    while not items or random.random() < 0.4:
        first, last = sorted([random.randrange(low, high + 1), random.randrange(low, high + 1)])
        step = random.randrange(1, high + 1)
        items.append(
            random.choice(
                [
                    *(str(first), str(first), f"{first:02d}"),
                    *(f"{first}-{last}", f"{first}-{last}/{step}", f"{first}/{step}"),
                ]
            )
        )
    if random.random() < 0.03:
        items.insert(random.choice([0, len(items)]), "*")
    return ",".join(items)


def broken(random: Random) -> str:
    """An expression with one field that is wrong."""
    fields = ["0", "9", "*", "*", "*"]
    at = random.randrange(5)
    wrong = [
        ["60", "-1", "5-2", "*/0", "", "1,,2", "a", "*-5", "1.5", "5#2", "L", "?", "1/", "/5", "99999"],
        ["24", "22-2", "*/0", "noon", "9-", "W", "?", "8-", "1-2-3"],
        ["0", "32", "25-5", "L-0", "L-31", "W", "32W", "0W", "1-5W", "LL", "L2", "?,1", "mon", "1#2"],
        ["0", "13", "nov-feb", "january", "foo", "*/0", "?", "L", "1L"],
        ["8", "fri-sun", "L", "1#0", "1#6", "8L", "monday", "mon-8", "#2", "2#", "?/2", "1W", "1-3L"],
    ][at]
    fields[at] = random.choice(wrong) or ","
    return " ".join(fields)
