"""Grammar of times of day and of how often: "9:34", "half past nine", "20 past every hour", "between 9 and
17"; "every 2 weeks", "every other tuesday", "twice a day".
"""

import re
from functools import partial
from typing import Final

from scheduler_app.domain.triggers.phrase.clauses import (
    Clause,
    Date,
    EasterDay,
    OftenClause,
    OnClause,
    PartOfDayClause,
    PastHourClause,
    RepeatClause,
    Time,
    TimesClause,
    WeekdaysClause,
    WindowClause,
    WorkingHoursClause,
    YearlyDatesClause,
)
from scheduler_app.domain.triggers.phrase.grammar_dates import dates, day
from scheduler_app.domain.triggers.phrase.grammar_days import day_group, weekday_list, yearly_dates
from scheduler_app.domain.triggers.phrase.tokens import (
    Found,
    Tokens,
    amount,
    joined,
    number,
    ordinal,
    several,
    unit,
)
from scheduler_app.domain.triggers.phrase.words import (
    ADVERBS,
    DOUBTFUL_ADVERBS,
    EVERY,
    MONTHS,
    PARTS_OF_DAY,
    TO,
    UNITS,
)

_HOUR: Final = 24
_NOT_AFTER_A_TIME: Final = frozenset(
    {"times", "time", "occurrences", "runs", "x", "st", "nd", "rd", "th", "past", "to"}
)


def time(tokens: Tokens, position: int, *, bare: bool, worded: bool = True) -> Found[Time]:
    """A time of day: an hour alone ("at 9") where `bare` allows it, "ten to five" where `worded` does."""
    token = tokens.at(position)
    if token.text in ("noon", "midday"):
        return Time(12, sure=True), position + 1
    if token.text == "midnight":
        return Time(0, sure=True), position + 1
    if token.text == "12" and tokens.text(position + 1) in ("noon", "midnight"):
        return Time(12 if tokens.text(position + 1) == "noon" else 0, sure=True), position + 2
    if worded and (in_words := _worded(tokens, position)) is not None:
        return in_words
    if token.kind in ("clock", "dotted"):
        return _clock(tokens, position)
    if token.kind == "number" and len(token.text) == 4 and (bare or _is_hours(tokens, position + 1)):
        hour, minute = divmod(token.number, 100)
        after = position + 1 + _is_hours(tokens, position + 1)
        counts = tokens.text(after) in UNITS or tokens.text(after) in _NOT_AFTER_A_TIME
        return (Time(hour, minute), after) if _fits(hour, minute) and not counts else None
    if (hour_found := number(tokens, position)) is None or (token.kind == "number" and len(token.text) > 2):
        return None
    hour, position = hour_found
    return _hour(tokens, hour, position, bare=bare, padded=token.text.startswith("0"))


def _hour(tokens: Tokens, hour: int, position: int, *, bare: bool, padded: bool) -> Found[Time]:
    after = tokens.at(position)
    if after.text in ("am", "pm"):
        return _with_meridiem(hour, 0, 0, after.text, position + 1)
    if hour >= _HOUR:
        return None
    if after.text == "h" and after.glued:
        minute = tokens.at(position + 1)
        if minute.kind == "number" and minute.glued:
            fits = len(minute.text) == 2 and minute.number < 60
            return (Time(hour, minute.number), position + 2) if fits else None
        return Time(hour), position + 1
    spoken = number(tokens, position) if tokens.at(position - 1).kind == "word" else None
    if spoken is not None and after.kind == "word" and spoken[0] % 5 == 0 and 10 <= spoken[0] < 60:
        half = tokens.text(spoken[1])  # "nine thirty"
        if half in ("am", "pm"):
            return _with_meridiem(hour, spoken[0], 0, half, spoken[1] + 1)
        if half not in UNITS and half not in _NOT_AFTER_A_TIME:
            return Time(hour, spoken[0], bare=1 <= hour <= 12), spoken[1]
    if after.text in ("o'clock", "oclock"):
        if tokens.text(position + 1) in ("am", "pm"):
            return _with_meridiem(hour, 0, 0, tokens.text(position + 1), position + 2)
        return Time(hour, bare=1 <= hour <= 12), position + 1
    taken = after.text in UNITS or after.text in MONTHS or after.text in _NOT_AFTER_A_TIME
    if not bare or (taken and not _ends_a_range(tokens, position)):
        return None
    return Time(hour, bare=1 <= hour <= 12 and not padded), position


def _ends_a_range(tokens: Tokens, position: int) -> bool:
    """Whether "to" follows that leads to another time, as in "from 9 to 17"."""
    return tokens.text(position) == "to" and tokens.at(position + 1).kind in (
        "number",
        "clock",
        "dotted",
        "word",
    )


def _is_hours(tokens: Tokens, position: int) -> bool:
    return tokens.text(position) in ("hours", "hrs", "h")


def _fits(hour: int, minute: int, second: int = 0) -> bool:
    return hour < _HOUR and minute < 60 and second < 60


def _clock(tokens: Tokens, position: int) -> Found[Time]:
    """9:34, 9:34:10 and 9.34, perhaps with am or pm."""
    text = tokens.text(position)
    if "." in text and len(text.partition(".")[2]) != 2:
        return None
    hour, minute, *rest = (int(piece) for piece in re.split("[:.]", text))
    second = rest[0] if rest else 0
    after = tokens.text(position + 1)
    if after in ("am", "pm"):
        return _with_meridiem(hour, minute, second, after, position + 2)
    if not _fits(hour, minute, second):
        return None
    return Time(hour, minute, second), position + 1 + (after in ("h", "hrs", "hours", "o'clock"))


def _with_meridiem(hour: int, minute: int, second: int, which: str, position: int) -> Found[Time]:
    if not 1 <= hour <= 12 or not _fits(hour, minute, second):
        return None
    return Time(hour % 12 + (12 if which == "pm" else 0), minute, second, sure=True), position


def _worded(tokens: Tokens, position: int) -> Found[Time]:
    """half past nine, (a) quarter to ten, ten (minutes) past eleven; the hour may have am or pm."""
    if (minutes := _minutes_and_side(tokens, position)) is None or _may_be_hours(tokens, position):
        return None
    past, after = minutes
    hour = time(tokens, after, bare=True) if tokens.at(after).kind in ("number", "word") else None
    if hour is None or hour[0].minute or hour[0].second or (hour[0].hour > 12 and not hour[0].sure):
        return None
    seconds = (hour[0].seconds + past * 60) % 86_400
    # "a quarter to one" is 12:45, before or after noon as the hour itself is.
    return Time(seconds // 3_600, seconds % 3_600 // 60, bare=hour[0].bare, sure=hour[0].sure), hour[1]


def _may_be_hours(tokens: Tokens, position: int) -> bool:
    """ "9 to 5" and "5 to 9" may be meant as hours; "ten to five", "20 to 9" and "5 minutes to 9" may not."""
    count = number(tokens, position)
    if count is None or tokens.text(count[1]) not in ("to", "before", "past", "after"):
        return False
    digits = tokens.at(position).kind == "number" and tokens.text(count[1]) in ("to", "before")
    return bool(count[0] % 5) or (digits and count[0] <= 12)


def _minutes_and_side(tokens: Tokens, position: int) -> Found[int]:
    """The minutes before (negative) or after an hour."""
    if tokens.text(position) == "half":
        after = tokens.says(position + 1, "past")
        return None if after is None else (30, after)
    position = tokens.skip(position, "a")
    if tokens.text(position) == "quarter":
        count: tuple[int, int] | None = (15, position + 1)
    else:
        if (count := number(tokens, position)) is not None:
            named = tokens.text(count[1]) in ("minutes", "minute", "min", "mins")
            count = count[0], count[1] + named
    if count is None or not 0 < count[0] < 60:
        return None
    side = tokens.text(count[1])
    if side in ("past", "after"):
        return count[0], count[1] + 1
    return (-count[0], count[1] + 1) if side in ("to", "before") else None


def times(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """[at] one or several times of day, perhaps followed by "in the morning" or "at night"."""
    bare = tokens.text(position) in ("at", "@")
    if (read := several(tokens, position + bare, partial(time, bare=bare), "at", "@")) is None:
        return None
    found, position = read
    listed = TimesClause(found)
    part = in_the_morning(tokens, position)
    return ((listed,), position) if part is None else ((listed, part[0]), part[1])


def in_the_morning(tokens: Tokens, position: int) -> Found[PartOfDayClause]:
    """in the morning, at night."""
    if (night := tokens.any_of(position, "at night", "in the night")) is not None:
        return PartOfDayClause("night"), night
    if (after := tokens.says(position, "in the")) is None or tokens.text(after) not in PARTS_OF_DAY:
        return None
    return PartOfDayClause(tokens.text(after)), after + 1


def past_hour(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """at 20 past [every hour], at minute 5 and 35, at :15, on the hour, at half past, at the top of every
    hour."""
    for words, minute in (("top of", 0), ("bottom of", 30)):
        edge = tokens.says(tokens.skip(position, "at", "the"), words)
        if edge is not None and (after := _of_every_hour(tokens, edge)) is not None:
            return (PastHourClause((minute,), of_every_hour=True),), after
    for words, minute in (("on the hour", 0), ("on the half hour", 30), ("at the half hour", 30)):
        if (after := tokens.says(position, words)) is not None:
            return (PastHourClause((minute,), of_every_hour=False),), after
    at = tokens.skip(position, "at", "on")
    if (minutes := _minute_list(tokens, at) or _sided_minutes(tokens, at)) is None:
        return None
    found, after = minutes
    if (hour := _of_every_hour(tokens, after)) is None:
        return (PastHourClause(found, of_every_hour=False),), after
    return (PastHourClause(found, of_every_hour=True, of_the_hour=tokens.text(hour - 2) == "the"),), hour


def _of_every_hour(tokens: Tokens, position: int) -> int | None:
    position = tokens.skip(position, "of", "past")
    if tokens.text(position) in EVERY and tokens.text(position + 1) == "hour":
        return position + 2
    return tokens.any_of(position, "the hour")


def _minute_list(tokens: Tokens, position: int) -> Found[tuple[int, ...]]:
    """:15 and :45, minute 5 and 35."""
    named = tokens.text(position) in ("minute", "minutes")
    position += named
    found: list[int] = []
    after: int | None = position
    while after is not None:
        token = tokens.at(after)
        if token.kind == "minute":
            value = int(token.text[1:])
        elif named and token.kind == "number" and len(token.text) <= 2:
            value = token.number
        else:
            break
        if value > 59:
            return None
        found.append(value)
        position = after + 1
        after = joined(tokens, position)
    return (tuple(found), position) if found else None


def _sided_minutes(tokens: Tokens, position: int) -> Found[tuple[int, ...]]:
    """20 past, 15 minutes past, quarter past, 5 to; not before an hour, which makes it a time of day."""
    sided = _minutes_and_side(tokens, position)
    if sided is None or time(tokens, sided[1], bare=True) is not None:
        return None
    return (sided[0] % 60,), sided[1]


def window(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """between 9 and 17, from 9:00 to 17:00, 9-17, during business hours."""
    hours = tokens.skip(position, "during", "in", "within")
    if tokens.text(hours) in ("business", "working", "office", "work") and tokens.text(hours + 1) == "hours":
        return (WorkingHoursClause(),), hours + 2
    between = tokens.text(position) == "between"
    led = between or tokens.text(position) == "from"
    if (first := time(tokens, position + led, bare=True, worded=False)) is None:
        return None
    to = tokens.text(first[1])
    if not (to in ("and", "&") if between else to in TO):
        return None
    if not led and to != "-" and tokens.at(position).kind == "word":
        return None
    if (last := time(tokens, first[1] + 1, bare=True, worded=False)) is None:
        return None
    return (WindowClause(first[0], last[0]),), last[1]


_TIMES = {"once": 1, "twice": 2, "thrice": 3}


def every(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """Everything that begins with "every" or "each", and the adverbs."""
    word = tokens.text(position)
    if word in ADVERBS:
        return (RepeatClause(*ADVERBS[word]),), position + 1
    if word in DOUBTFUL_ADVERBS:
        return (RepeatClause(*DOUBTFUL_ADVERBS[word], doubtful=True),), position + 1
    if word == "nightly":
        return (RepeatClause(1, "day"), PartOfDayClause("night")), position + 1
    start = tokens.skip(position, "once", "on")
    if tokens.text(start) not in EVERY:
        return None
    start = tokens.skip(start + 1, "single")
    return _every_group(tokens, start) or _every_length(tokens, start) or _every_date(tokens, start)


def _every_group(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """every weekday, every other tuesday, every monday and thursday, every morning."""
    if tokens.text(position) in PARTS_OF_DAY:
        return (PartOfDayClause(tokens.text(position), daily=True),), position + 1
    if (after := tokens.says(position, "leap day")) is not None:
        return (YearlyDatesClause((Date(2, 29),), every=True),), after
    if tokens.text(position) in ("noon", "midnight"):
        return (
            RepeatClause(1, "day"),
            TimesClause((Time(12 * (tokens.text(position) == "noon"), sure=True),)),
        ), position + 1
    if (after := tokens.any_of(position, "day of the week")) is not None:
        return (RepeatClause(1, "day"),), after
    other = tokens.text(position) in ("other", "alternate")
    position += other
    if (group := day_group(tokens, position)) is not None:
        found, after = group
        return (WeekdaysClause(found.days, 1 + other, found.business),), after
    days = weekday_list(tokens, position)
    return None if days is None else ((WeekdaysClause(days[0][0], 1 + other),), days[1])


def _every_length(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """every day, every 90 minutes, every other week, every third month, every fortnight."""
    for words, repeat in (
        ("fortnight", RepeatClause(2, "week")),
        ("other fortnight", RepeatClause(4, "week")),
    ):
        if (after := tokens.says(position, words)) is not None:
            return (repeat,), after
    if tokens.text(position) in ("half", "quarter") and (part := amount(tokens, position)) is not None:
        return (RepeatClause(*part[0]),), part[1]
    if (one := unit(tokens, position)) is not None and tokens.at(position).text != "second":
        if (half := tokens.says(one[1], "and a half")) is not None and one[0] == "hour":
            return (RepeatClause(90, "minute"),), half
        return (RepeatClause(1, one[0]),), one[1]
    if tokens.text(position) in ("other", "alternate"):
        of = unit(tokens, position + 1)
        return None if of is None else ((RepeatClause(2, of[0]),), of[1])
    if (counted := ordinal(tokens, position)) is not None and counted[0] > 1:
        of = unit(tokens, counted[1])
        # "every second day of the month" counts days, not steps.
        if of is not None and tokens.text(of[1]) != "of":
            return (RepeatClause(counted[0], of[0]),), of[1]
    if tokens.text(position) == "second":
        return (RepeatClause(1, "second"),), position + 1
    length = amount(tokens, position)
    return None if length is None else ((RepeatClause(*length[0]),), length[1])


def _every_date(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """every 25 december, every january 1st and july 1st, every january."""
    if (movable := day(tokens, position)) is not None and isinstance(movable[0], EasterDay):
        return (RepeatClause(1, "year"), OnClause((movable[0],))), movable[1]
    if (found := dates(tokens, position)) is None or not yearly_dates(found[0]):
        return None
    return (YearlyDatesClause(found[0], every=True),), found[1]


def often(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """twice a day, twice daily, once a week, 3 times per month, 7 days a week."""
    if (
        after := tokens.any_of(position, "7 days a week", "seven days a week", "7 days per week")
    ) is not None:
        return (RepeatClause(1, "day"),), after
    if (times := _TIMES.get(tokens.text(position))) is not None:
        position += 1
    else:
        counted = number(tokens, position)
        if counted is None or tokens.text(counted[1]) not in ("times", "time", "x"):
            return None
        times, position = counted[0], counted[1] + 1
    count, adverb = ADVERBS.get(tokens.text(position), (0, ""))
    if count == 1 and times > 0:
        return (OftenClause(times, adverb),), position + 1
    if tokens.text(position) not in ("a", "an", "per", *EVERY):
        return None
    of = UNITS.get(tokens.text(position + 1))
    return None if of is None or times == 0 else ((OftenClause(times, of),), position + 2)
