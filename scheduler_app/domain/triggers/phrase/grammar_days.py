"""Grammar of days that repeat: weekdays, the first Monday, the 15th, of every month, every 25 December, at
the end of every month, the first Tuesday after the 10th.
"""

from scheduler_app.domain.triggers.phrase.clauses import (
    BUSINESS_DAY,
    DAY,
    WEEKDAY,
    Clause,
    Date,
    MonthDaysClause,
    NthClause,
    PeriodClause,
    WeekdayAndDayClause,
    WeekdaysClause,
    WithinMonthClause,
)
from scheduler_app.domain.triggers.phrase.tokens import (
    Found,
    Tokens,
    joined,
    number,
    ordinal,
    several,
    signed_ordinal,
)
from scheduler_app.domain.triggers.phrase.words import (
    EVERY,
    MONTHS,
    PARTS_OF_DAY,
    PLURAL_WEEKDAYS,
    TO,
    UNITS,
    WEEKDAYS,
)

WORKDAYS = (0, 1, 2, 3, 4)
WEEKEND = (5, 6)
_BUSINESS = tuple(
    f"{word}{end}"
    for word in ("business day", "working day", "workday", "work day", "businessday")
    for end in ("", "s")
)


def business_days(tokens: Tokens, position: int) -> int | None:
    """The position after "business day(s)" or a synonym."""
    return tokens.any_of(position, *_BUSINESS)


def day_group(tokens: Tokens, position: int) -> Found[WeekdaysClause]:
    """weekdays, weekends, business days."""
    if (after := tokens.any_of(position, "weekday", "weekdays", "week day", "week days")) is not None:
        return WeekdaysClause(WORKDAYS), after
    if (after := business_days(tokens, position)) is not None:
        return WeekdaysClause(WORKDAYS, business=True), after
    after = tokens.any_of(position, "weekend day", "weekend days", "weekend", "weekends")
    return None if after is None else (WeekdaysClause(WEEKEND), after)


def weekday_list(tokens: Tokens, position: int) -> Found[tuple[tuple[int, ...], bool]]:
    """Weekdays joined by commas, "and", "/" or nothing, or as ranges; and whether one was in the plural."""
    days: list[int] = []
    plural = False
    after: int | None = position
    while after is not None:
        after = tokens.skip(after, "on") if days else after
        if tokens.text(after) in EVERY and days:
            after += 1
        if (found := _weekdays(tokens, after)) is None:
            break
        (some, several_of_it), position = found
        days += [day for day in some if day not in days]
        plural = plural or several_of_it
        if tokens.text(position) == "/":
            after = position + 1
        else:
            after = position if one_weekday(tokens, position) else joined(tokens, position)
    return ((tuple(days), plural), position) if days else None


def _weekdays(tokens: Tokens, position: int) -> Found[tuple[tuple[int, ...], bool]]:
    if (first := one_weekday(tokens, position)) is None:
        return None
    (day, plural), position = first
    to = tokens.text(position) in TO - {"until", "til"}
    if to and (last := one_weekday(tokens, position + 1)) is not None:
        return (_weekday_range(day, last[0][0]), True), last[1]
    return ((day,), plural), position


def _weekday_range(first: int, last: int) -> tuple[int, ...]:
    """The weekdays from one to another, perhaps over Sunday."""
    return tuple((first + step) % 7 for step in range((last - first) % 7 + 1))


def one_weekday(tokens: Tokens, position: int) -> Found[tuple[int, bool]]:
    word = tokens.text(position)
    if word in PLURAL_WEEKDAYS:
        return (PLURAL_WEEKDAYS[word], True), position + 1
    return ((WEEKDAYS[word], False), position + 1) if word in WEEKDAYS else None


def weekdays(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """[on] mondays, monday and thursday, mon-fri, between monday and friday, weekdays: what repeats without
    "every"."""
    if tokens.text(position) == "between":
        first, last = one_weekday(tokens, position + 1), one_weekday(tokens, position + 3)
        if first is None or last is None or tokens.text(position + 2) not in ("and", "&"):
            return None
        return (WeekdaysClause(_weekday_range(first[0][0], last[0][0])),), last[1]
    position = tokens.skip(position, "on", "the")
    if tokens.text(position) == "from":
        position += 1
    if tokens.text(position) == "alternate":
        found = weekday_list(tokens, position + 1)
        return None if found is None else ((WeekdaysClause(found[0][0], 2),), found[1])
    group = day_group(tokens, position)
    if group is not None and (tokens.text(group[1] - 1).endswith("s") or _plural_part(tokens, group[1])):
        return (group[0],), group[1]
    if (found := weekday_list(tokens, position)) is None:
        return None
    (days, plural), after = found
    plural = plural or _plural_part(tokens, after)
    if not plural and len(days) == 1:
        return None
    return (WeekdaysClause(days, listed=not plural),), after


def _plural_part(tokens: Tokens, position: int) -> bool:
    """Whether "mornings" or the like follows, which repeats the day before it."""
    word = tokens.text(position)
    return word.endswith("s") and word[:-1] in PARTS_OF_DAY


def friday_the_13th(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """[every] friday the 13th."""
    position = tokens.skip(position, "on")
    repeated = tokens.text(position) in EVERY
    if (weekday := one_weekday(tokens, position + repeated)) is None or tokens.text(weekday[1]) != "the":
        return None
    day = ordinal(tokens, weekday[1] + 1)
    if day is None or tokens.text(day[1]) in ("of", *MONTHS) or not 1 <= day[0] <= 31:
        return None
    return (WeekdayAndDayClause(weekday[0][0], day[0], repeated or weekday[0][1]),), day[1]


def nth(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """[on] [every] [the] first and third monday, last business day, third to last day."""
    position = tokens.skip(position, "on")
    every = tokens.text(position) in EVERY
    position += every
    if (found := several(tokens, position, _positions)) is None:
        return None
    positions = tuple(pair for some, _ in found[0] for pair in some)
    return (NthClause(positions, any(joint for _, joint in found[0]), every),), found[1]


def _positions(tokens: Tokens, position: int) -> Found[tuple[tuple[tuple[int, int | str], ...], bool]]:
    """Ordinals and what they count; and whether several weekdays share them."""
    ordinals = _first_or_last_few(tokens, position) or several(
        tokens, tokens.skip(position, "the"), _the_ordinal
    )
    if ordinals is None or any(number == 0 for number in ordinals[0]):
        return None
    if (what := _counted(tokens, ordinals[1])) is None:
        return None
    counted, after = what
    return (tuple((number, one) for number in ordinals[0] for one in counted), len(counted) > 1), after


def _first_or_last_few(tokens: Tokens, position: int) -> Found[tuple[int, ...]]:
    """the first 2, the last three: each of them."""
    position = tokens.skip(position, "the")
    side = {"first": 1, "last": -1}.get(tokens.text(position))
    count = number(tokens, position + 1)
    if side is None or count is None or not 1 <= count[0] <= 31:
        return None
    return tuple(side * one for one in range(1, count[0] + 1)), count[1]


def _the_ordinal(tokens: Tokens, position: int) -> Found[int]:
    return signed_ordinal(tokens, tokens.skip(position, "the"))


def _counted(tokens: Tokens, position: int) -> Found[tuple[int | str, ...]]:
    if (after := business_days(tokens, position)) is not None:
        return (BUSINESS_DAY,), after
    if (after := tokens.any_of(position, "weekday", "weekdays", "week day")) is not None:
        return (WEEKDAY,), after
    if (after := tokens.any_of(position, "calendar day", "day", "days")) is not None:
        return (DAY,), after
    found = several(tokens, position, one_weekday)
    return None if found is None else (tuple(day for day, _ in found[0]), found[1])


def month_days(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """[on] [every] [the] 15th, the 1st and the 15th, the 1st to the 5th, day 10."""
    position = tokens.skip(position, "on")
    every = tokens.text(position) in EVERY
    position = tokens.skip(position + every, "the")
    if tokens.text(position) in ("day", "days"):
        if every:
            return None  # "every day 9" is not a day of the month
        numbers = several(tokens, position + 1, number)
        if numbers is None or not all(1 <= day <= 31 for day in numbers[0]):
            return None
        return (MonthDaysClause(numbers[0], every),), numbers[1]
    if (parity := {"odd": 1, "even": 2}.get(tokens.text(position))) is not None:
        after = tokens.any_of(position + 1, "numbered days", "days", "day", "dates")
        return None if after is None else ((MonthDaysClause(tuple(range(parity, 32, 2)), every=True),), after)
    if (found := several(tokens, position, _day_numbers)) is None or tokens.text(found[1]) in UNITS:
        return None
    days = tuple(dict.fromkeys(day for some in found[0] for day in some))
    return ((MonthDaysClause(days, every),), found[1]) if all(1 <= day <= 31 for day in days) else None


def _day_numbers(tokens: Tokens, position: int) -> Found[tuple[int, ...]]:
    if (first := _the_ordinal(tokens, position)) is None or first[0] < 0:
        return None
    to = tokens.text(first[1]) in TO - {"until", "till", "til"}
    if to and (last := _the_ordinal(tokens, first[1] + 1)) is not None and first[0] < last[0] <= 31:
        return tuple(range(first[0], last[0] + 1)), last[1]
    return (first[0],), first[1]


def period(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """of the month, of every quarter, each year, in every other month."""
    led = tokens.text(position) in ("of", "in")
    position = position + led
    every = tokens.text(position) in EVERY
    if not every and not led:
        return None
    position = position + 1 if every else tokens.skip(position, "the")
    step = 1
    if every and tokens.text(position) == "other":
        step, position = 2, position + 1
    elif every and led and (counted := ordinal(tokens, position) or number(tokens, position)) is not None:
        step, position = counted
    unit = UNITS.get(tokens.text(position), "")
    if unit not in ("month", "quarter", "year") or (not led and step > 1) or step < 1:
        return None
    return (PeriodClause(unit, step),), position + 1


def yearly_dates(dates: tuple[Date, ...]) -> bool:
    """Whether dates can repeat every year: none names its year or its weekday."""
    return all(date.year is None and date.weekday is None for date in dates)


#: Every month has a day so far before its last one.
_FARTHEST = 27
_BEFORE_THE_END = ("before the end", "before end", "before the last day", "before last day")


def edge_of_every(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """at the end of every month, at the beginning of each quarter."""
    after = tokens.skip(position, "at", "the")
    edge = {"end": -1, "start": 1, "beginning": 1}.get(tokens.text(after))
    found = period(tokens, after + 1) if tokens.text(after + 1) == "of" else None
    if edge is None or found is None or tokens.text(after + 2) not in EVERY:
        return None
    return (NthClause(((edge, DAY),)), *found[0]), found[1]


def before_the_end(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """[on] the day before the last day of the month, two days before the end of every month: a day is counted
    back from the last one."""
    position = tokens.skip(position, "on")
    count = (1, position + 1) if tokens.text(position) in ("the", "a") else number(tokens, position)
    if count is None or not 1 <= count[0] <= _FARTHEST or tokens.text(count[1]) not in ("day", "days"):
        return None
    end = tokens.any_of(count[1] + 1, *_BEFORE_THE_END)
    found = period(tokens, end) if end is not None and tokens.text(end) == "of" else None
    if found is None:
        return None
    return (NthClause(((-1 - count[0], DAY),)), *found[0]), found[1]


#: Every month has this day.
_EVERY_MONTH_HAS = 28


def span_of_days(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """between the 8th and the 14th, from the 25th to the 5th [of the month]: days of the month by numbers."""
    between = tokens.text(position) == "between"
    if not between and tokens.text(position) != "from":
        return None
    first = ordinal(tokens, tokens.skip(position + 1, "the"))
    if first is None or tokens.text(first[1]) not in (("and", "&") if between else ("to", "-")):
        return None
    last = ordinal(tokens, tokens.skip(first[1] + 1, "the"))
    if last is None or not (1 <= first[0] <= 31 and 1 <= last[0] <= 31):
        return None
    over = first[0] > last[0]
    days = (*range(first[0], 32), *range(1, last[0] + 1)) if over else tuple(range(first[0], last[0] + 1))
    return _of_every_month(tokens, last[1], (), WithinMonthClause(days))


def beside_a_day(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """the first tuesday after the 10th, the last friday before the 15th, the friday after the second tuesday,
    2 days after the first monday: a weekday that falls on one of seven days of the month."""
    position = tokens.skip(position, "on")
    every = tokens.text(position) in EVERY
    position = tokens.skip(position + every, "the")
    if (counted := _days_from_a_weekday(tokens, position)) is not None:
        (day, first), after = counted
        return _seven_days(tokens, after, day, first, every=every)
    ranked = tokens.text(position) if tokens.text(position) in ("first", "last") else ""
    day_found = one_weekday(tokens, position + bool(ranked))
    if day_found is None or day_found[0][1] or (every and not ranked):
        return None  # "every monday after the 7th" may be each of them
    (day, _), after = day_found
    on = tokens.any_of(after, "on or")
    side = tokens.text(after if on is None else on)
    after = (after if on is None else on) + 1
    if side not in ("after", "following", "before") or ranked == ("last" if side != "before" else "first"):
        return None
    if (based := _nth_weekday(tokens, after)) is not None:
        (base, rank), after = based
        ahead = (day - base) % 7 if side != "before" else -((base - day) % 7)
        if not ahead and on is None:
            ahead = 7 if side != "before" else -7
        return _seven_days(tokens, after, day, 7 * rank - 6 + ahead, every=every)
    numbered = ordinal(tokens, tokens.skip(after, "the"))
    if numbered is None or tokens.text(numbered[1]) in ("day", *MONTHS):
        return None
    near = 0 if on is not None else 1
    first = numbered[0] + near if side != "before" else numbered[0] - 6 - near
    return _seven_days(tokens, numbered[1], day, first, every=every)


def _days_from_a_weekday(tokens: Tokens, position: int) -> Found[tuple[int, int]]:
    """3 days after the second tuesday: the weekday that it is, and the first of its seven days."""
    count = (1, position) if tokens.text(position) == "day" else number(tokens, position)
    if count is None or tokens.text(count[1]) not in ("day", "days"):
        return None
    side = {"after": 1, "before": -1}.get(tokens.text(count[1] + 1))
    based = _nth_weekday(tokens, count[1] + 2)
    if side is None or based is None:
        return None
    (base, rank), after = based
    ahead = side * count[0]
    return ((base + ahead) % 7, 7 * rank - 6 + ahead), after


def _nth_weekday(tokens: Tokens, position: int) -> Found[tuple[int, int]]:
    """the second tuesday: the weekday and its ordinal."""
    if (rank := ordinal(tokens, tokens.skip(position, "the"))) is None or not 1 <= rank[0] <= 4:
        return None
    day = one_weekday(tokens, rank[1])
    return None if day is None else ((day[0][0], rank[0]), day[1])


def _seven_days(
    tokens: Tokens, position: int, day: int, first: int, *, every: bool
) -> Found[tuple[Clause, ...]]:
    """The weekday among the seven days from `first` on, if they lie in every month."""
    if first < 1 or first + 6 > _EVERY_MONTH_HAS:
        return None
    return _of_every_month(
        tokens,
        position,
        (WeekdaysClause((day,)),),
        WithinMonthClause(tuple(range(first, first + 7)), every=every),
    )


def _of_every_month(
    tokens: Tokens, position: int, days: tuple[Clause, ...], within: WithinMonthClause
) -> Found[tuple[Clause, ...]]:
    """The clauses, and "of every month" if that follows; nothing before the name of a month."""
    if tokens.text(position) in MONTHS or (
        tokens.text(position) == "of" and tokens.text(position + 1) in MONTHS
    ):
        return None
    of = period(tokens, position)
    return (*days, within, *(() if of is None else of[0])), position if of is None else of[1]
