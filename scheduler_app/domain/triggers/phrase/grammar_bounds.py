"""Grammar of bounds: from when, until when, how long, how many times, and what is left out."""

from functools import lru_cache

from scheduler_app.domain.recurrence.zones import zone_names
from scheduler_app.domain.triggers.phrase.clauses import (
    AfterClause,
    Clause,
    Day,
    DayNumber,
    DaysAway,
    ExceptClause,
    ExceptedClause,
    ForClause,
    HolidaysClause,
    InZoneClause,
    MonthDaysClause,
    MonthOfYear,
    MonthsClause,
    NamedDay,
    OnceClause,
    OnClause,
    RepeatClause,
    RollClause,
    StartClause,
    Time,
    TotalClause,
    UntilClause,
    WeekdaysClause,
    YearlyDatesClause,
)
from scheduler_app.domain.triggers.phrase.grammar_dates import dates, day, month_list, month_of_year
from scheduler_app.domain.triggers.phrase.grammar_days import (
    WEEKEND,
    business_days,
    day_group,
    month_days,
    nth,
    period,
    weekday_list,
    yearly_dates,
)
from scheduler_app.domain.triggers.phrase.grammar_times import time, times, window
from scheduler_app.domain.triggers.phrase.tokens import Found, Tokens, amount, joined, number, several
from scheduler_app.domain.triggers.phrase.words import (
    EXCEPT,
    STARTING,
    TO,
    UNTIL,
    ZONES_BY_LETTERS,
    ZONES_BY_WORDS,
)

_DIRECTIONS = {"preceding": "previous", "following": "next", "closest": "nearest"}
_DIRECTIONS |= {direction: direction for direction in ("previous", "next", "nearest")}
_HOLIDAYS = ("public holidays", "bank holidays", "public holiday", "bank holiday", "holidays", "a holiday")

_CLOSED = (
    *("a saturday or a sunday", "a saturday or sunday", "saturday or sunday"),
    *("a weekend day", "a weekend", "the weekend", "weekend"),
    *("not a business day", "not a working day", "not a weekday", "no business day", "no working day"),
)


def start(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """starting tomorrow, from 1 december [to 10 december], starting at 6:00."""
    between = tokens.text(position) == "between"
    if (week := tokens.says(position, "counted from the week of")) is not None:
        named = dates(tokens, week)
        return (
            None if named is None or len(named[0]) > 1 else ((StartClause(named[0][0], week=True),), named[1])
        )
    if (after := tokens.any_of(position, "as of", "as from", "counted from")) is None:
        if not between and tokens.text(position) not in STARTING:
            return None
        after = tokens.skip(position + 1, "from", "on")
    if (now := tokens.any_of(after, "now on", "now", "today on")) is not None and not between:
        return (StartClause(DaysAway(0)),), now
    if between and (pair := dates(tokens, after)) is not None and len(pair[0]) == 2:
        return (StartClause(pair[0][0]), UntilClause(pair[0][1])), pair[1]
    if (point := _point(tokens, after)) is None:
        return None
    first, after = StartClause(*point[0]), point[1]
    to = tokens.text(after)
    last = _point(tokens, after + 1) if first.day and (to == "and" if between else to in TO) else None
    if last is None or last[0][0] is None:
        return None if between else ((first,), after)
    if _names_a_range(first.day) and _names_a_range(last[0][0]):
        return None  # "from monday to friday", "from june to august" repeat
    if all(isinstance(one, DayNumber) and not one.month for one in (first.day, last[0][0])) and (
        to not in UNTIL
    ):
        return None  # "from the 8th to the 14th" may mean those days of every month
    return (first, UntilClause(*last[0])), last[1]


def _names_a_range(day: Day | None) -> bool:
    if isinstance(day, NamedDay):
        return not day.which
    return isinstance(day, MonthOfYear) and day.year is None


def until(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """until 1 march, till friday, ending on 31 december, until 18:00 today."""
    if (after := tokens.any_of(position, "up to and including", "up to")) is None:
        if tokens.text(position) not in UNTIL:
            return None
        after = tokens.skip(position + 1, "on", "and", "including")
    # Our own sentences say "until the end of 31 December 2026", which a day without a time is.
    whole = tokens.says(after, "the end of")
    dated = dates(tokens, whole) if whole is not None else None
    if dated is not None and len(dated[0]) == 1:
        return (UntilClause(dated[0][0]),), dated[1]
    point = _point(tokens, after)
    return None if point is None else ((UntilClause(*point[0]),), point[1])


def _point(tokens: Tokens, position: int) -> Found[tuple[Day | None, Time | None, Time | None]]:
    """A day, a time of day with its day perhaps, or a month; and a time that follows a day."""
    if (found := day(tokens, position) or month_of_year(tokens, position)) is not None:
        at = tokens.text(found[1]) == "at"
        later = time(tokens, found[1] + at, bare=at)
        if later is None or (
            joined(tokens, later[1]) is not None and time(tokens, joined(tokens, later[1]) or 0, bare=True)
        ):
            return (found[0], None, None), found[1]
        return (found[0], None, later[0]), later[1]
    position = tokens.skip(position, "at")
    if (hour := time(tokens, position, bare=True)) is None:
        return None
    of = day(tokens, hour[1])
    return ((None, hour[0], None), hour[1]) if of is None else ((of[0], hour[0], None), of[1])


def length(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """for 3 weeks, for the next 2 hours, [for] 10 times, three times."""
    led = tokens.text(position) in ("for", "during")
    after = tokens.says(position, "for the next") or tokens.says(position, "during the next")
    after = after if after is not None else position + led
    counted = number(tokens, after)
    if (times := {"twice": 2, "thrice": 3}.get(tokens.text(after))) is not None:
        return (TotalClause(times),), after + 1
    if counted is not None and tokens.text(counted[1]) in ("times", "occurrences", "runs", "time", "x"):
        return (TotalClause(counted[0]),), tokens.skip(counted[1] + 1, "only", "in")
    if not led:
        return None
    if (found := amount(tokens, after)) is not None:
        return (ForClause(*found[0]),), found[1]
    one = after > position + 1 and tokens.text(after) in ("hour", "day", "week", "month")
    return ((ForClause(1, tokens.text(after)),), after + 1) if one else None


def in_so_long(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """in 10 minutes, 2 hours from now, now, once."""
    if (after := tokens.any_of(position, "right now", "now", "immediately")) is not None:
        return (AfterClause(0, "second"),), after
    led = tokens.text(position) in ("in", "after")
    if (found := amount(tokens, position + led)) is None:
        return None
    after = found[1]
    if (later := tokens.any_of(after, "from now", "from today", "time")) is None and not led:
        return None
    return (AfterClause(*found[0]),), after if later is None else later


def once(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """once, only once, just once."""
    after = tokens.any_of(position, "only once", "just once", "once")
    return None if after is None else ((OnceClause(),), after)


def roll(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """or the business day before, or the nearest weekday, or the next working day if it is a weekend; if it
    is a weekend, then the monday after; the nearest weekday to (a day of the month)."""
    if (near := _nearest_to(tokens, position)) is not None:
        return near
    condition = _if_it_is_closed(tokens, tokens.skip(position, "or", ","))
    after = tokens.skip(position, "or") if condition is None else tokens.skip(condition, ",", "then")
    if after == position:
        return None
    after = tokens.skip(after, "on", "to", "the")
    direction = _DIRECTIONS.get(tokens.text(after), "")
    edge = {"last": "previous", "first": "next"}.get(tokens.text(after), "")
    if (found := _open_day(tokens, after + bool(direction or edge))) is None:
        return None
    (weekday, named), end = found
    side = {"before": "previous", "after": "next"}.get(tokens.text(end), "")
    if side and not direction:
        direction, end = side, tokens.skip(end + 1, "it", "that")
    if not direction or (edge and edge != direction) or (named and named != direction):
        return None
    given = None if condition is not None else _if_it_is_closed(tokens, tokens.skip(end, ","))
    if named and condition is None and given is None:
        return None  # "the 15th or the monday after" may be any Monday
    return (RollClause(direction, weekday),), end if given is None else given


def _nearest_to(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """the weekday nearest (to) the 15th, the closest business day to the 15th: the day follows."""
    position = tokens.skip(position, "on", "the")
    leading = tokens.text(position) in ("nearest", "closest")
    found = _open_day(tokens, position + leading)
    if found is None or found[0][1] or not (leading or tokens.text(found[1]) in ("nearest", "closest")):
        return None
    after = found[1] + (not leading)
    to = tokens.skip(after, "to")
    days = month_days(tokens, tokens.skip(to, "the")) if to > after or not leading else None
    if days is None or not isinstance(days[0][0], MonthDaysClause):
        return None
    return (RollClause("nearest", found[0][0]), *days[0]), days[1]


def _open_day(tokens: Tokens, position: int) -> Found[tuple[bool, str]]:
    """A business day, a weekday, or the Monday or Friday beside a weekend: whether no calendar changes it,
    and the direction in which that Monday or Friday lies."""
    if (after := business_days(tokens, position)) is not None:
        return (False, ""), after
    if (after := tokens.any_of(position, "weekday", "week day")) is not None:
        return (True, ""), after
    beside = {"monday": "next", "friday": "previous"}.get(tokens.text(position))
    return None if beside is None else ((True, beside), position + 1)


def _if_it_is_closed(tokens: Tokens, position: int) -> int | None:
    """The position after "if it is a weekend", "when that falls on a saturday or sunday"."""
    position = tokens.skip(position, "but", "and")
    if tokens.text(position) not in ("if", "when", "where", "unless"):
        return None
    position += 1
    if (after := tokens.any_of(position, "it's", "that's")) is None:
        subject = tokens.any_of(position, "it", "that", "this", "the day", "the date", "that day", "this day")
        if subject is None:
            return None
        after = tokens.any_of(subject, "is", "falls", "lies", "lands", "happens to be")
    if after is None:
        return None
    after = tokens.skip(after, "on")
    return tokens.any_of(after, *_CLOSED)


def next_few(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """the next 4 fridays, the next 3 weekdays, the next 5 days: a number of times in all."""
    after = tokens.skip(position, "on", "for", "the")
    count = number(tokens, after + 1) if tokens.text(after) in ("next", "coming", "following") else None
    if count is None:
        return None
    if tokens.text(after - 1) != "for" and tokens.text(count[1]) == "days":
        return (RepeatClause(1, "day"), TotalClause(count[0])), count[1] + 1
    if (group := day_group(tokens, count[1])) is not None and group[0].days != WEEKEND:
        return (group[0], TotalClause(count[0])), group[1]
    if (found := weekday_list(tokens, count[1])) is None or len(found[0][0]) > 1:
        return None
    return (WeekdaysClause(found[0][0]), TotalClause(count[0])), found[1]


def left_out(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """except sundays, but not on 25 december, excluding august, except at midnight."""
    if tokens.text(position) not in EXCEPT:
        return None
    after = tokens.skip(position + 1, "not", "for", "on")
    named = tokens.text(after) in ("at", "in", "between") or tokens.text(after - 1) == "on"
    if tokens.text(position) == "not" and not named:
        return None
    if (found := several(tokens, after, _left)) is None:
        return None
    return (ExceptClause(tuple(one for some in found[0] for one in some)),), found[1]


def _left(tokens: Tokens, position: int) -> Found[tuple[ExceptedClause, ...]]:
    position = tokens.skip(position, "on")
    if (after := tokens.any_of(position, *_HOLIDAYS)) is not None:
        return (HolidaysClause(),), after
    if (group := day_group(tokens, position)) is not None:
        return (WeekdaysClause(group[0].days),), group[1]
    ordered = nth(tokens, position) or month_days(tokens, position)
    if ordered is not None and (scope := period(tokens, ordered[1])) is not None:
        return (*_left_of(ordered[0]), *_left_of(scope[0])), scope[1]
    if (dated := dates(tokens, tokens.skip(position, "the"))) is not None:
        whole = YearlyDatesClause(dated[0]) if yearly_dates(dated[0]) else OnClause(dated[0])
        return (whole,), dated[1]
    if ordered is not None:
        return _left_of(ordered[0]), ordered[1]
    if (days := weekday_list(tokens, position)) is not None:
        return (WeekdaysClause(days[0][0]),), days[1]
    if (of := month_list(tokens, tokens.skip(position, "in"))) is not None:
        return (MonthsClause(of[0]),), of[1]
    if (single := day(tokens, position)) is not None:
        return (OnClause((single[0],)),), single[1]
    if (between := window(tokens, position)) is not None and tokens.text(position) in ("between", "from"):
        return _left_of(between[0]), between[1]
    at = times(tokens, position) if tokens.text(position) == "at" else None
    return None if at is None else (_left_of(at[0]), at[1])


def _left_of(clauses: tuple[Clause, ...]) -> tuple[ExceptedClause, ...]:
    return tuple(clause for clause in clauses if isinstance(clause, ExceptedClause))


def zone(tokens: Tokens, position: int) -> Found[tuple[Clause, ...]]:
    """utc, europe/zurich, zurich time, new york time, eastern time, ET, CET."""
    position = tokens.skip(position, "in")
    if tokens.at(position).kind == "zone":
        return (InZoneClause((tokens.at(position).written,)),), tokens.skip(position + 1, "time")
    if (short := ZONES_BY_LETTERS.get(tokens.text(position))) is not None:
        return (InZoneClause(short),), tokens.skip(position + 1, "time")
    for words, names in ZONES_BY_WORDS.items():
        if (after := tokens.says(tokens.skip(position, "us"), words)) is not None:
            return (InZoneClause(names),), tokens.skip(after, "time")
    for length in (1, 2, 3):
        if tokens.text(position + length) == "time":
            city = " ".join(tokens.text(position + index) for index in range(length))
            name = _zones_by_city().get(city)
            return None if name is None else ((InZoneClause((name,)),), position + length + 1)
    return None


@lru_cache(maxsize=1)
def _zones_by_city() -> dict[str, str]:
    """The zones whose city no other zone has, by its name in small letters."""
    found: dict[str, list[str]] = {}
    for name in zone_names():
        area, _, city = name.rpartition("/")
        if area:
            found.setdefault(city.lower().replace("_", " "), []).append(name)
    return {city: names[0] for city, names in found.items() if len(names) == 1}
