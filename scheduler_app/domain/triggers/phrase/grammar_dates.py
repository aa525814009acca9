"""Grammar of single days and of months: "tomorrow", "next friday", "24 december", "03/04/2027", "the end of
the year"; in June, from June to August, in Q1.
"""

import re

from scheduler_app.domain.triggers.phrase.clauses import (
    BUSINESS_DAY,
    WEEKDAY,
    Clause,
    Date,
    Day,
    DayNumber,
    DaysAway,
    EasterDay,
    EndOf,
    Later,
    MonthOfYear,
    MonthsClause,
    NamedDay,
    NthDay,
    NumericDate,
    OnClause,
    PartOfDayClause,
    WeeksClause,
)
from scheduler_app.domain.triggers.phrase.clauses import DAY as _DAY
from scheduler_app.domain.triggers.phrase.grammar_days import business_days, one_weekday
from scheduler_app.domain.triggers.phrase.tokens import (
    Found,
    Tokens,
    amount,
    number,
    ordinal,
    several,
    signed_ordinal,
)
from scheduler_app.domain.triggers.phrase.words import (
    EASTER_FEASTS,
    EVERY,
    FEASTS,
    MONTHS,
    PARTS_OF_DAY,
    TO,
    UNITS,
    WEEKDAYS,
)

_NEXT = ("next", "this", "coming")


def dates(tokens: Tokens, position: int) -> Found[tuple[Date, ...]]:
    """24 december, december 24th 2026, friday 20 november; lists of them; several days or months of one."""
    found = several(tokens, position, _dates, "on")
    return None if found is None else (tuple(date for some in found[0] for date in some), found[1])


def _dates(tokens: Tokens, position: int) -> Found[tuple[Date, ...]]:
    if (weekday := WEEKDAYS.get(tokens.text(position))) is not None:
        position = tokens.skip(position + 1, ",", "the")
    for name, (month, number_) in FEASTS.items():
        if (after := tokens.says(position, name)) is not None:
            year = _year(tokens, after)
            return (Date(month, number_, year[0], weekday),), year[1]
    if (iso := _iso(tokens, position)) is not None:
        return (Date(iso[0].month, iso[0].day, iso[0].year, weekday),), iso[1]
    return _day_then_month(tokens, position, weekday) or _month_then_day(tokens, position, weekday)


def _iso(tokens: Tokens, position: int) -> Found[Date]:
    if tokens.at(position).kind != "iso":
        return None
    year, month, day = (int(piece) for piece in re.split("[-/]", tokens.text(position)))
    return Date(month, day, year), position + 1


def _day_number(tokens: Tokens, position: int) -> Found[int]:
    position = tokens.skip(position, "the")
    found = ordinal(tokens, position) or number(tokens, position)
    return found if found is not None and 1 <= found[0] <= 31 else None


def _day_then_month(tokens: Tokens, position: int, weekday: int | None) -> Found[tuple[Date, ...]]:
    if (days := several(tokens, position, _day_number)) is None:
        return None
    if (months := several(tokens, tokens.skip(days[1], "day", "of"), _month)) is None:
        return None
    year = _year(tokens, months[1])
    found = tuple(Date(month, day, year[0], weekday) for month in months[0] for day in days[0])
    return found, year[1]


def _month(tokens: Tokens, position: int) -> Found[int]:
    month = MONTHS.get(tokens.text(position))
    return None if month is None else (month, position + 1)


def _month_then_day(tokens: Tokens, position: int, weekday: int | None) -> Found[tuple[Date, ...]]:
    if (month := _month(tokens, position)) is None:
        return None
    if (days := several(tokens, month[1], _date_in_month)) is None:
        return None
    year = _year(tokens, days[1])
    return tuple(Date(month[0], day, year[0], weekday) for day in days[0]), year[1]


def _date_in_month(tokens: Tokens, position: int) -> Found[int]:
    """A day after its month; "december 24 and 9am" holds one only."""
    found = _day_number(tokens, position)
    if found is None or tokens.text(found[1]) in ("am", "pm", "h", "o'clock", "times", *MONTHS):
        return None
    return None if tokens.text(found[1]) in UNITS else found


def _year(tokens: Tokens, position: int) -> tuple[int | None, int]:
    after = tokens.skip(position, ",")
    token = tokens.at(after)
    if (
        token.kind == "number"
        and len(token.text) == 4
        and tokens.text(after + 1) not in ("h", "hours", "hrs")
    ):
        return token.number, after + 1
    return None, position


def day(tokens: Tokens, position: int) -> Found[Day]:
    """A single day, after "on", "starting", "until" or alone."""
    position = tokens.skip(position, "on")
    return (
        _later(tokens, position)
        or _relative(tokens, position)
        or _easter(tokens, position)
        or _nth_of_month(tokens, position)
        or _end(tokens, position)
        or _numeric(tokens, tokens.skip(position, "the"))
        or _single_date(tokens, position)
        or _named(tokens, position)
        or _numbered(tokens, position)
    )


def _later(tokens: Tokens, position: int) -> Found[Day]:
    """a week from tuesday, 3 days before christmas, a week on friday, tuesday week, a week tomorrow."""
    weekday = WEEKDAYS.get(tokens.text(position))
    if (
        weekday is not None
        and tokens.text(position + 1) == "week"
        and tokens.at(position + 2).kind != "number"
    ):
        return Later(1, "week", NamedDay(weekday)), position + 2
    if (length := amount(tokens, position)) is None or length[0][1] not in ("day", "week", "month", "year"):
        return None
    (count, unit), after = length
    side = tokens.text(after)
    if side in ("from", "after", "before"):
        base = _base(tokens, after + 1)
    elif count <= 2 and unit == "week" and (side == "on" or side in ("today", "tomorrow")):
        base = _base(tokens, after + (side == "on"))
    else:
        return None
    if base is None or (side == "from" and base[0] == DaysAway(0)):
        return None
    return Later(-count if side == "before" else count, unit, base[0]), base[1]


def _base(tokens: Tokens, position: int) -> Found[Day]:
    """The day from which others are counted."""
    found = _relative(tokens, position) or _easter(tokens, position) or _single_date(tokens, position)
    return found or _named(tokens, position)


def _easter(tokens: Tokens, position: int) -> Found[Day]:
    """easter monday, good friday 2027."""
    for name, days in EASTER_FEASTS.items():
        if (after := tokens.says(position, name)) is not None:
            year = _year(tokens, after)
            return EasterDay(days, year[0]), year[1]
    return None


def _nth_of_month(tokens: Tokens, position: int) -> Found[Day]:
    """the first monday of next month, the last friday of june 2027, the end of next month."""
    position = tokens.skip(position, "at", "the")
    what: int | str
    if (end := tokens.says(position, "end of")) is not None:
        number, what, after = -1, _DAY, tokens.skip(end, "the")
        after -= tokens.text(after - 1) == "of"
    else:
        ordered = signed_ordinal(tokens, position)
        counted = None if ordered is None else _one_counted(tokens, ordered[1])
        if ordered is None or counted is None or ordered[0] == 0:
            return None
        (number, _), (what, after) = ordered, counted
    for words, which in (("next month", "next"), ("this month", "this")):
        if end is not None and which == "this":
            continue
        found = tokens.any_of(after, f"of {words}", f"in {words}", f"of the {words}", words)
        if found is not None:
            return NthDay(number, what, which), found
    month = _month(tokens, after + 1) if tokens.text(after) in ("of", "in") else None
    year = (None, 0) if month is None else _year(tokens, month[1])
    return None if month is None or year[0] is None else (NthDay(number, what, month[0], year[0]), year[1])


def _one_counted(tokens: Tokens, position: int) -> Found[int | str]:
    if (after := business_days(tokens, position)) is not None:
        return BUSINESS_DAY, after
    if (after := tokens.any_of(position, "weekday", "week day")) is not None:
        return WEEKDAY, after
    if tokens.text(position) == "day":
        return _DAY, position + 1
    weekday = one_weekday(tokens, position)
    return None if weekday is None else (weekday[0][0], weekday[1])


def _relative(tokens: Tokens, position: int) -> Found[Day]:
    after_that = ((2, "the day after tomorrow"), (2, "day after tomorrow"))
    for days, words in ((0, "today"), (1, "tomorrow"), *after_that):
        if (after := tokens.says(position, words)) is not None:
            return DaysAway(days), after
    return None


def _end(tokens: Tokens, position: int) -> Found[Day]:
    if (after := tokens.any_of(position, "at the end of", "the end of", "at end of", "end of")) is None:
        after = tokens.any_of(position, "the last day of", "last day of")
        if after is not None and tokens.text(after) != "this":
            return None
    if after is None:
        return None
    after = tokens.skip(after, "the", "this")
    this = tokens.text(after - 1) == "this"
    unit = UNITS.get(tokens.text(after), "")
    return (EndOf(unit, this), after + 1) if unit in ("day", "week", "month", "quarter", "year") else None


def _numeric(tokens: Tokens, position: int) -> Found[Day]:
    if tokens.at(position).kind != "numeric":
        return None
    pieces = re.split("[/.]", tokens.text(position))
    first, second = int(pieces[0]), int(pieces[1])
    year = int(pieces[2]) if len(pieces) == 3 else None
    # With dots the day comes first everywhere.
    if "." in tokens.text(position) or first > 12:
        return (Date(second, first, year), position + 1) if second <= 12 else None
    return (Date(first, second, year) if second > 12 else NumericDate(first, second, year)), position + 1


def _single_date(tokens: Tokens, position: int) -> Found[Day]:
    found = dates(tokens, position)
    return None if found is None or len(found[0]) > 1 else (found[0][0], found[1])


def _named(tokens: Tokens, position: int) -> Found[Day]:
    """friday, this friday, next friday, friday next week, next week on friday."""
    if (after := tokens.says(position, "next week")) is not None:
        later = WEEKDAYS.get(tokens.text(tokens.skip(after, "on")))
        return None if later is None else (NamedDay(later, "next week"), tokens.skip(after, "on") + 1)
    which = tokens.text(position) if tokens.text(position) in _NEXT else ""
    if (weekday := WEEKDAYS.get(tokens.text(position + bool(which)))) is None:
        return None
    position += 1 + bool(which)
    if not which and (after := tokens.any_of(position, "next week", "of next week")) is not None:
        return NamedDay(weekday, "next week"), after
    return NamedDay(weekday, which), position


def _numbered(tokens: Tokens, position: int) -> Found[Day]:
    """the 15th, the 15th of next month, next month on the 15th."""
    leading = tokens.says(position, "next month")
    start = position if leading is None else tokens.skip(leading, "on")
    found = ordinal(tokens, tokens.skip(start, "the"))
    if found is None or not 1 <= found[0] <= 31 or tokens.text(found[1]) in UNITS:
        return None
    trailing = tokens.any_of(found[1], "of next month", "next month")
    if (this := tokens.any_of(found[1], "of this month", "this month")) is not None:
        return DayNumber(found[0], "this"), this
    if leading is not None or trailing is not None:
        return DayNumber(found[0], "next"), trailing if trailing is not None else found[1]
    return DayNumber(found[0]), found[1]


def month_of_year(tokens: Tokens, position: int) -> Found[Day]:
    """in june, march 2027: for a start or an end."""
    if (month := _month(tokens, tokens.skip(position, "in", "of"))) is None:
        return None
    year = _year(tokens, month[1])
    return MonthOfYear(month[0], year[0]), year[1]


def on(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """The day of a single callback: tomorrow [morning], this evening, tonight, friday, monday or tuesday.
    "This weekend" is one of two days."""
    if tokens.text(position) == "tonight":
        return (OnClause((DaysAway(0),)), PartOfDayClause("night")), position + 1
    if tokens.text(position) == "this" and tokens.text(position + 1) in PARTS_OF_DAY:
        return (OnClause((DaysAway(0),)), PartOfDayClause(tokens.text(position + 1))), position + 2
    for which in _NEXT:
        if (after := tokens.any_of(position, f"{which} weekend", f"on {which} weekend")) is not None:
            return (OnClause((NamedDay(5, which), NamedDay(6, which))),), after
    if (found := day(tokens, position)) is None:
        return None
    days, position = [found[0]], found[1]
    while tokens.text(position) == "or" and (more := day(tokens, position + 1)) is not None:
        days.append(more[0])
        position = more[1]
    return (OnClause(tuple(days)),), position


def month_list(tokens: Tokens, position: int) -> Found[tuple[int, ...]]:
    """Months joined by commas or "and", or as ranges."""
    if (found := several(tokens, position, _months)) is None:
        return None
    return tuple(dict.fromkeys(month for some in found[0] for month in some)), found[1]


def _months(tokens: Tokens, position: int) -> Found[tuple[int, ...]]:
    if (first := MONTHS.get(tokens.text(position))) is None:
        return None
    last = MONTHS.get(tokens.text(position + 2)) if tokens.text(position + 1) in TO else None
    if last is None:
        return (first,), position + 1
    return _month_range(first, last), position + 3


def _month_range(first: int, last: int) -> tuple[int, ...]:
    """The months from one to another, perhaps over New Year."""
    return tuple((first - 1 + step) % 12 + 1 for step in range((last - first) % 12 + 1))


def months(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """in january and july, of june, from june to august, between june and august, every january."""
    word = tokens.text(position)
    if word == "between":
        ends = [MONTHS.get(tokens.text(position + 1)), MONTHS.get(tokens.text(position + 3))]
        if None in ends or tokens.text(position + 2) not in ("and", "&"):
            return None
        return (MonthsClause(_month_range(*(end for end in ends if end is not None))),), position + 4
    led = word in ("in", "of", "during") or word in EVERY
    position = tokens.skip(position + led, "each", "every") if led else position
    if (found := month_list(tokens, position + (word == "from"))) is None or not (led or len(found[0]) > 1):
        return None
    return (MonthsClause(found[0]),), found[1]


def quarters(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """in q1, in q1 and q3, during the first quarter: the months of calendar quarters."""
    if tokens.text(position) not in ("in", "during"):
        return None
    if (found := several(tokens, position + 1, _quarter)) is None:
        return None
    firsts = (3 * number - 2 for number in dict.fromkeys(found[0]))
    months = tuple(month for first in firsts for month in range(first, first + 3))
    return (MonthsClause(months, quarters=True),), found[1]


def _quarter(tokens: Tokens, position: int) -> Found[int]:
    if tokens.text(position) == "q" and tokens.at(position + 1).glued:
        after = tokens.text(position + 1)
        return (int(after), position + 2) if after in ("1", "2", "3", "4") else None
    found = ordinal(tokens, tokens.skip(position, "the"))
    if found is None or not 1 <= found[0] <= 4 or tokens.text(found[1]) != "quarter":
        return None
    return found[0], found[1] + 1


def weeks(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """in week 12, of weeks 1 and 20 [of the year], in odd weeks."""
    led = tokens.text(position) in ("in", "of", "during", "on")
    position = tokens.skip(position + led, *EVERY)
    if (parity := {"odd": 1, "even": 2}.get(tokens.text(position))) is not None:
        after = tokens.any_of(position + 1, "numbered weeks", "weeks", "week", "calendar weeks")
        return None if after is None or not led else ((WeeksClause(tuple(range(parity, 54, 2))),), after)
    if not led or tokens.text(position) not in ("week", "weeks"):
        return None
    found = several(tokens, position + 1, number)
    if found is None or not all(1 <= week <= 53 for week in found[0]):
        return None
    return (WeeksClause(tuple(dict.fromkeys(found[0]))),), found[1]
