"""Word salads: words of the grammar and others, thrown together."""

from collections.abc import Iterator
from random import Random
from typing import Final

from scheduler_app.domain.triggers.phrase import words

_KNOWN: Final = sorted(
    {
        *words.WEEKDAYS,
        *words.PLURAL_WEEKDAYS,
        *words.MONTHS,
        *words.UNITS,
        *words.NUMBERS,
        *words.ORDINALS,
        *words.ADVERBS,
        *words.DOUBTFUL_ADVERBS,
        *words.PARTS_OF_DAY,
        *words.EVERY,
        *words.AND,
        *words.TO,
        *words.STARTING,
        *words.UNTIL,
        *words.EXCEPT,
    }
)
_PIECES: Final = (
    "at 9|at 5pm|at 9:34|at noon|midnight|17h30|9am|half past nine|quarter to ten|at 8 and 20|at 25:00|0930|"
    "every other|once a day|twice a week|3 times a month|of the month|of every quarter|each year|in june|"
    "first business day|last friday|third to last day|2nd and 4th monday|the 15th|1st and 15th|31st|99th|0th|"
    "between 9 and 17|from 22:00 to 6|during business hours|20 past every hour|:15|minute 5 and 35|on the hour|"
    "starting tomorrow|from 1 december|until march|until friday|for 3 weeks|for 10 times|5 times|except sundays|"
    "but not on 25 december|except at noon|except holidays|or the business day before|in 10 minutes|in a month|"
    "tomorrow|tonight|today|now|next friday|this monday|monday next week|03/04/2027|24.12.2026|2026-12-24|"
    "2026-12-24T18:30|30 february|feb 29|friday the 13th|end of the month|utc|europe/zurich|zurich time|once|"
    "1h30m|1.5 hours|half an hour|every 7 seconds|every 999999999 years|every 0 minutes|-5|100000000000 days|"
    "the|a|an|of|in|on|at|past|(|)|.|,|;|/|-|@|last|next|this|other|half|quarter|am|pm|o'clock|every|per|x|time"
).split("|")
#: Whole clauses: phrases of these are mostly read, and contradict themselves.
_CLAUSES: Final = (
    "every day|every hour|every 15 minutes|every 90 seconds|every 7 hours|every 2 weeks|every other month|monthly|"
    "weekly|quarterly|yearly|biweekly|every monday|every weekday|every weekend|every other tuesday|tuesdays|mon-fri|"
    "every third friday|on friday|next friday|tomorrow|on the 31st|on the 1st and 15th|every 5th|the last day|"
    "the first business day|last weekday|third to last day|second and fourth friday|100th day|of the month|"
    "of each quarter|of the year|of every other month|in february|from june to august|every feb 29|31 december|"
    "friday the 13th|at 9|at 5|at 9:34|at 8:00, 12:30 and 18:00|at midnight|at 23:59:59|in the morning|at night|"
    "every evening|at 20 past every hour|at minute 5|on the hour|between 9 and 17|from 22:00 to 6:00|from 2 to 5|"
    "during working hours|starting tomorrow|starting in june|from 2026-12-01 to 2026-12-10|starting at 6:00|"
    "until friday|until march|until 18:00|till the end of the year|for 3 weeks|for 2 hours|for 10 years|10 times|"
    "for 1 times|twice a day|once a week|3 times a month|except mondays|except 25 december|except in august|"
    "except at noon|except the last friday of the month|except tomorrow|but not between 12 and 13|"
    "or the business day before|in 10 minutes|now|once|europe/zurich|utc"
).split("|")
_JUNK: Final = (
    "banana|blue|moon|delete|files|😀|ß|日本|\x00|'|\"|%|<b>|NaN|1e9|0x10|½|²|٣|9999-99-99|00/00/0000|99:99|:::|"
    "------|12345678901234567890|£|𝟗"
).split("|")


def salads(seed: int, count: int) -> Iterator[str]:
    """Random phrases, most of the grammar's own words, some with others among them."""
    random = Random(seed)
    for _ in range(count):
        length = random.choice((1, 2, 2, 3, 3, 3, 4, 4, 5, 6, 12))
        if random.random() < 0.6:
            yield " ".join(random.choice(_CLAUSES) for _ in range(length))
        else:
            yield " ".join(_word(random) for _ in range(length))


def _word(random: Random) -> str:
    kind = random.random()
    if kind < 0.03:
        return random.choice(_JUNK)
    if kind < 0.1:
        return str(random.randint(-3, 70))
    return random.choice(_PIECES if kind < 0.65 else _KNOWN)
