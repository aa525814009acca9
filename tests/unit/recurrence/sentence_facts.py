"""Reads a description as a person would, and says what in it the occurrences contradict.

Nothing of the description's own code is used here: names, times, ordinals, steps and limits are taken from
the sentence and compared with a sample of occurrences that spans several years.
"""

import re
from calendar import day_name, month_name
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from random import Random

from scheduler_app.domain.recurrence import Recurrence

DAYS = list(day_name)
MONTHS = list(month_name)[1:]
_DAY = "|".join(DAYS)
_MONTH = "|".join(MONTHS)
_NUMBERS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
_RANK = r"(first|second|third|fourth|fifth|\d+(?:st|nd|rd|th)|last)(-to-last)?"
_RANKS = re.sub(r"\((?!\?)", "(?:", rf"{_RANK}(?:(?:, | and | or ){_RANK})*")
_UNITS = {"hour": 3600, "minute": 60, "second": 1}
_YEARS = 8


def contradictions(found: Recurrence, sentence: str) -> list[str]:
    """What the sentence says and the occurrences do not do; sentences of one rule are understood."""
    if (
        sentence.startswith(("As the rule", "Once", "On "))
        or ";" in sentence
        or re.search("except|and also on", sentence)
    ):
        return []
    body, _, tail = sentence.partition(f" ({found.timezone})")
    body = re.sub(r" \(weeks begin on \w+\)", "", body)
    sample = _sample(found)
    return [
        problem
        for check in (_weekdays, _months, _dates, _ordinals, _ranks, _positions, _times, _steps)
        for problem in check(body, tail, sample)
    ] + list(_limits(tail, found, sample))


def _sample(found: Recurrence) -> list[datetime]:
    """Local times of occurrences, the first and others here and there, but for those that a gap moved."""
    start = found.dtstart.astimezone(UTC)
    end = start + timedelta(days=366 * _YEARS)
    random = Random(found.text)
    found_at = {each.instant: each for each in found.occurrences(start, datetime(9999, 1, 1, tzinfo=UTC), 60)}
    for _ in range(120):
        after = start + (end - start) * random.random()
        for each in found.occurrences(after, datetime(9999, 1, 1, tzinfo=UTC), 1):
            found_at[each.instant] = each
    return [found_at[instant].local for instant in sorted(found_at) if found_at[instant].dst != "gap_shifted"]


def _names(text: str, names: list[str]) -> set[int]:
    """Indexes of the names in a text; `Monday to Friday` and `from March to October` are all between."""
    pattern = "|".join(names)
    found = {names.index(name) for name in re.findall(rf"\b({pattern})\b", text)}
    for low, high in re.findall(rf"\b({pattern}) to ({pattern})\b", text):
        found |= set(range(names.index(low), names.index(high) + 1))
    return found


def _same(what: str, said: set[int], seen: set[int], enough: bool) -> Iterator[str]:
    if said and (not seen <= said or (enough and seen != said)):
        yield f"{what}: said {sorted(said)}, seen {sorted(seen)}"


def _weekdays(body: str, _: str, sample: list[datetime]) -> Iterator[str]:
    said = _names(body, DAYS)
    # A sample may miss what comes once a year, and steps of days or hours may meet some weekdays only.
    enough = len(sample) > 100 and not re.search(
        r"of the year|^Every (?:second|\d+) (?:day|hour|min|sec)", body
    )
    yield from _same("weekdays", said, {each.weekday() for each in sample}, enough)
    everything = not said and not re.search(r"month|year|week|only|\bin\b|from .* to|\d (?:Jan|Dec)", body)
    if everything and body.startswith("Every day") and len(sample) > 100:
        yield from _same("weekdays of every day", set(range(7)), {each.weekday() for each in sample}, True)


def _months(body: str, _: str, sample: list[datetime]) -> Iterator[str]:
    said = {index + 1 for index in _names(body, MONTHS)}
    if re.search(r"next (?:month|year)|(?:month|year) before", body):
        said = set()
    yield from _same("months", said, {each.month for each in sample}, len(sample) > 100)


def _dates(body: str, _: str, sample: list[datetime]) -> Iterator[str]:
    """`25 December`."""
    said = {(MONTHS.index(month) + 1, int(day)) for day, month in re.findall(rf"(\d+) ({_MONTH})", body)}
    seen = {(each.month, each.day) for each in sample}
    if said and (not seen <= said or (len(sample) > 100 and seen != said)) and "missing" not in body:
        yield f"dates: said {sorted(said)}, seen {sorted(seen)}"


def _ordinals(body: str, _: str, sample: list[datetime]) -> Iterator[str]:
    """`the 1st, the 15th and the last day`, `the 2nd to the 8th`, `in the last 7 days`."""
    body = body.split(", where")[0]
    text = re.sub(rf"\bthe {_RANKS} (?:{_DAY}|week|day)", "", body)
    said = {int(number) for number in re.findall(r"\bthe (\d+)(?:st|nd|rd|th)\b", text)}
    for low, high in re.findall(r"the (\d+)\w\w to the (\d+)", text):
        said |= set(range(int(low), int(high) + 1))
    last = {1} if re.search(r"the last day\b(?! (?:that|of the year))", body) else set()
    for match in re.finditer(rf"the {_RANK}-to-last day\b(?! (?:that|of the year))", body):
        last.add(_number(match[1]))
    for count in re.findall(r"the last (\d+) days", body):
        last |= set(range(1, int(count) + 1))
    if not (said or last) or re.search(r" days? (?:\d[\d, and]* )?of the year", body):
        return
    for each in sample:
        from_end = (
            (each.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
        ).day - each.day
        if each.day not in said and from_end + 1 not in last:
            yield f"days: said {sorted(said)} and from the end {sorted(last)}, seen {each}"
            return


def _number(word: str) -> int:
    return _NUMBERS.get(word) or (1 if word == "last" else int(re.sub(r"\D", "", word)))


def _ranks(body: str, _: str, sample: list[datetime]) -> Iterator[str]:
    """`the first Monday`, `the third-to-last Friday`, `the 20th Monday of the year`."""
    said = set()
    for ranks, name in re.findall(rf"\bthe ({_RANKS}) ({_DAY})\b", body):
        for word, behind in re.findall(_RANK, ranks):
            number = _number(word)
            said.add((DAYS.index(name), -number if behind or word == "last" else number))
    if not said:
        return
    whole = {DAYS.index(name) for name in re.findall(rf"\b(?:every|a) ({_DAY})\b", body)}
    by_year = "of the year" in body and not re.search(rf"(?:{_DAY}) of the month", body)
    for each in sample:
        first = date(each.year, 1 if by_year else each.month, 1)
        last = (
            date(each.year, 12, 31) if by_year else (first + timedelta(days=31)).replace(day=1) - timedelta(1)
        )
        forward = (each.date() - first).days // 7 + 1
        backward = -((last - each.date()).days // 7 + 1)
        if each.weekday() in whole:
            continue
        if not {(each.weekday(), forward), (each.weekday(), backward)} & said:
            yield f"ranks: said {sorted(said)}, seen {each}"
            return


def _positions(body: str, _: str, sample: list[datetime]) -> Iterator[str]:
    """`the last weekday (Monday to Friday)`, `the first weekend day (Saturday or Sunday) of June`."""
    match = re.search(rf"\bthe ({_RANKS}) (weekday|weekend day) \([^)]*\)(?! that)", body)
    if match is None:
        return
    ranks = [(_number(word), bool(behind) or word == "last") for word, behind in re.findall(_RANK, match[1])]
    numbers = {-number if behind else number for number, behind in ranks}
    pool = range(5) if match[2] == "weekday" else range(5, 7)
    for each in sample:
        day, months = each.date(), range(1, 13) if "of the year" in body else (each.month,)
        days = [date(day.year, month, 1) + timedelta(days=at) for month in months for at in range(31)]
        days = [other for other in days if other.month in months and other.weekday() in pool]
        days = sorted(set(days))
        at = days.index(day) if day in days else None
        if at is None or not {at + 1, at - len(days)} & numbers:
            yield f"positions: said {sorted(numbers)}, seen {each}"
            return


def _second(text: str) -> int:
    hour, minute, *second = (int(part) for part in text.split(":"))
    return hour * 3600 + minute * 60 + (second[0] if second else 0)


def _of_day(moment: datetime) -> int:
    return moment.hour * 3600 + moment.minute * 60 + moment.second


def _times(body: str, _: str, sample: list[datetime]) -> Iterator[str]:
    clock = r"\d\d:\d\d(?::\d\d)?"
    seen = {_of_day(each) for each in sample}
    if windows := re.findall(rf"between ({clock}) and ({clock})", body):
        spans = [(_second(low), _second(high)) for low, high in windows]
        outside = [time for time in seen if not any(low <= time <= high for low, high in spans)]
        if outside or (len(sample) > 150 and min(seen) > min(spans)[0] + 900):
            yield f"times: said {windows}, seen outside {outside[:3]}, first {min(seen)}"
    elif listed := re.search(rf" at ({clock}(?:, {clock})*(?: and {clock})?)$", body):
        said = {_second(time) for time in re.findall(clock, listed[1])}
        yield from _same("times", said, seen, len(sample) > 100)
    elif hours := re.findall(r"from (\d\d):00 to (\d\d):59", body):
        said = {hour for low, high in hours for hour in range(int(low), int(high) + 1)}
        yield from _same("hours", said, {time // 3600 for time in seen}, False)
    if len({(each.utcoffset() or timedelta()) % timedelta(hours=1) for each in sample}) > 1:
        return  # its clock is moved by half an hour
    if match := re.search(r"^Every hour at minute (\d+)(?: and second (\d+))?", body):
        said = {int(match[1]) * 60 + int(match[2] or 0)}
        yield from _same("minute of the hour", said, {time % 3600 for time in seen}, True)
    if re.match(r"Every hour, on the hour", body):
        yield from _same("on the hour", {0}, {time % 3600 for time in seen}, True)
    if match := re.search(
        r"starting (?:on the hour|at minute (\d+)(?: and second (\d+))? of the hour)", body
    ):
        step = int(re.search(r"Every (\d+) minutes", body)[1]) * 60  # type: ignore[index]
        into = (int(match[1] or 0) * 60 + int(match[2] or 0)) % step
        yield from _same("into the steps", {into}, {time % step for time in seen}, True)


def _moment(text: str) -> datetime:
    day, month, year, *rest = text.replace(" at ", " ").split(" ")
    hour, minute, *second = rest[0].split(":") if rest else ("0", "0")
    return datetime(  # noqa: DTZ001 (a wall clock)
        int(year), MONTHS.index(month) + 1, int(day), int(hour), int(minute), int(second[0]) if second else 0
    )


_MOMENT = rf"\d+ (?:{_MONTH}) \d{{4}}(?: at [\d:]+)?"


def _named(body: str, unit: str, local: datetime) -> Iterator[date]:
    """The day itself, and one of the month or year that named it, where it may lie beside that."""
    yield local.date()
    if f"next {unit} where it is missing" in body:
        yield local.date() - timedelta(days=1)
    if f"{unit} before where it is missing" in body:
        yield local.date() + timedelta(days=1)


def _steps(body: str, tail: str, sample: list[datetime]) -> Iterator[str]:
    """What INTERVAL counts, from where the sentence says."""
    match = re.search(r"[Ee]very (second|\d+) (hour|minute|second|day|week|month|year)s?\b(?! week)", body)
    anchor = re.search(
        r"(?:counted from|from)(?: the week (?:of|that begins on \w+))? (.*?)(?:,|$| on\b)", tail
    )
    if match is None or anchor is None or ("counted" not in tail and match[2] in ("week", "month", "year")):
        return
    step, unit, since = 2 if match[1] == "second" else int(match[1]), match[2], anchor[1]
    for each in sample:
        local = each.replace(tzinfo=None)
        if unit in _UNITS:
            if "between" in body or "starting" in body:
                return
            begin = _moment(since).replace(tzinfo=each.tzinfo)
            passed = round((each.astimezone(UTC) - begin.astimezone(UTC)).total_seconds())
            inside = re.search(r"^Every \d+ (?:hours|minutes)(?: at (?:minute|second)|, on the hour)", body)
            # An hour or a minute that is counted may fire at several instants in it.
            ok = (passed // _UNITS[unit] if inside else passed / _UNITS[unit]) % step == 0
        elif unit == "day":
            ok = (local.date() - _moment(since).date()).days % step == 0
        elif unit == "week":
            ok = (local.date() - _moment(since).date()).days // 7 % step == 0
        elif unit == "month":
            name, year = since.split(" ")
            first = int(year) * 12 + MONTHS.index(name)
            ok = any((day.year * 12 + day.month - 1 - first) % step == 0 for day in _named(body, unit, local))
        else:
            if "week" in body:
                return  # a week's year is not the calendar's
            ok = any((day.year - int(since)) % step == 0 for day in _named(body, unit, local))
        if not ok:
            yield f"steps: said every {step} {unit}s from {since}, seen {each}"
            return


def _limits(tail: str, found: Recurrence, sample: list[datetime]) -> Iterator[str]:
    """`from … on`, `until …`, `10 times`."""
    local = [each.replace(tzinfo=None) for each in sample]
    if (match := re.search(rf"from ({_MOMENT}) on", tail)) and local and local[0] < _moment(match[1]):
        yield f"begin: said {match[1]}, seen {local[0]}"
    if (match := re.search(rf"until (the end of )?({_MOMENT})", tail)) and local:
        last = _moment(match[2]) + (timedelta(days=1, seconds=-1) if match[1] else timedelta(0))
        if local[-1] > last:
            yield f"end: said {last}, seen {local[-1]}"
    if match := re.search(r"(\d+) times", tail):
        number = len(found.between(datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC), 100_001))
        if number != int(match[1]):
            yield f"count: said {match[1]}, seen {number}"
    # After the last change of its zone's clock, steps of hours may never meet an hour again.
    by_clock = found.timezone != "UTC" and re.search(r"(?:HOUR|MINUTE|SECOND)LY.*INTERVAL", found.text)
    if not by_clock and not re.search(r"until|times", tail):
        later = found.after(datetime(2400, 1, 1, tzinfo=UTC))
        if later is None:
            yield "the sentence says no end, but there is one"
