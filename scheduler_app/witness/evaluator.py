"""When a rule fires, found a second time: by python-dateutil and `zoneinfo`, from the pinned text alone.

It shares no code with `domain.recurrence`, so that a fault there is seen here. It is slower, and judges
windows of hours; what dateutil reads differently from RFC 5545, or what would take too long, it does not
judge: `Unjudged` says why.

dateutil is given naive local times from the beginning of a rule's period on, with the parts spelled out that
DTSTART implies. A start in the middle of a period would change BYSETPOS (dateutil issue 1398).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dateutil.rrule import rrule, rrulestr

#: How many steps of a rule, and how many occurrences, are looked at for one window.
MOST_STEPS: Final = 100_000
#: How many closed days in a row are looked at; no calendar closes two whole years.
MOST_CLOSED_DAYS: Final = 740
_DAY: Final = timedelta(days=1)
_ELAPSED: Final = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}
_WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


class Unjudged(Exception):
    """This evaluator cannot say when the rule fires; its message says why."""


@dataclass(frozen=True)
class OwedRule:
    """What is known of a rule: its pinned text, and what a schedule says beside it."""

    text: str
    gap: str = "shift"
    overlap: str = "first"
    is_closed: Callable[[date], bool] | None = None
    """Whether a local day is closed, where a calendar is observed."""
    on_holiday: str = "skip"

    def instants(self, first: datetime, end: datetime) -> list[datetime]:
        """The instants from `first` up to, and without, `end`, in order and in UTC. Raises Unjudged."""
        if self.on_holiday not in ("skip", "next", "previous") and self.is_closed is not None:
            raise Unjudged(f"on_holiday {self.on_holiday} changes what the rule counts")
        found = _Set.of(self.text, self.gap, self.overlap)
        moments: Iterator[datetime]
        if self.is_closed is None:
            moments = (each.instant for each in found.between(first, end))
        elif self.on_holiday == "skip":
            moments = (each.instant for each in found.between(first, end) if not self.is_closed(each.day))
        else:
            moments = self._moved(found, self.is_closed, first, end)
        return sorted({moment for moment in moments if first <= moment < end})

    def _moved(
        self, found: "_Set", is_closed: Callable[[date], bool], first: datetime, end: datetime
    ) -> Iterator[datetime]:
        """Occurrences of closed days, moved to the nearest open day after or before them."""
        step = _DAY if self.on_holiday == "next" else -_DAY
        since, until = first - _DAY, end + _DAY
        # What lies in the window may come from the run of closed days beside it, on one side.
        if self.on_holiday == "next":
            since = found.midnight(_past_closed(is_closed, found.local(since).date(), -_DAY))
        else:
            until = found.midnight(_past_closed(is_closed, found.local(until).date(), _DAY) + _DAY)
        for each in found.between(since, until):
            if not is_closed(each.day):
                yield each.instant
                continue
            moved = found.at(datetime.combine(_past_closed(is_closed, each.day, step), each.written.time()))
            if moved is not None:
                yield moved


def _past_closed(is_closed: Callable[[date], bool], day: date, step: timedelta) -> date:
    """The first open day from `day` on, in the direction of `step`."""
    for _ in range(MOST_CLOSED_DAYS):
        if not is_closed(day):
            return day
        day += step
    raise Unjudged(f"more than {MOST_CLOSED_DAYS} days in a row are closed")


@dataclass(frozen=True)
class _Moment:
    """An occurrence: its instant, and the local time that names it, which a gap may have moved."""

    instant: datetime
    written: datetime

    @property
    def day(self) -> date:
        return self.written.date()


@dataclass(frozen=True)
class _Set:
    """A recurrence set (RFC 5545, 3.8.5): its start, rules, dates, and what is left out."""

    zone: tzinfo
    start: datetime
    """DTSTART as it is written, without a zone."""
    gap: str
    overlap: str
    rules: tuple[dict[str, str], ...]
    exceptions: tuple[dict[str, str], ...]
    dates: tuple[tuple[tzinfo, datetime], ...]
    without: frozenset[datetime]
    without_days: frozenset[date]

    @classmethod
    def of(cls, text: str, gap: str, overlap: str) -> "_Set":
        zone: tzinfo = UTC
        start: datetime | None = None
        rules, exceptions, dates, without = [], [], [], []
        days: set[date] = set()
        for line in text.splitlines():
            name, _, value = line.partition(":")
            name, *parameters = name.split(";")
            if name == "DTSTART":
                zone, start = _times(parameters, value)[0]
            elif name == "RRULE":
                rules.append(_parts(value))
            elif name == "EXRULE":
                exceptions.append(_parts(value))
            elif name == "RDATE":
                dates += _times(parameters, value)
            elif name == "EXDATE" and "VALUE=DATE" in parameters:
                days |= {_time(each).date() for each in value.split(",")}
            elif name == "EXDATE":
                without += _times(parameters, value)
            else:
                raise Unjudged(f"the line {name[:40]} of its text is not known")
        if start is None:
            raise Unjudged("its text has no DTSTART")
        if not rules and not dates:
            dates = [(zone, start)]
        left_out = (_instant(own, written, gap, overlap) for own, written in without)
        return cls(
            zone,
            start,
            gap,
            overlap,
            tuple(rules),
            tuple(exceptions),
            tuple(dates),
            frozenset(each for each in left_out if each is not None),
            frozenset(days),
        )

    def local(self, instant: datetime) -> datetime:
        """What the clock of the zone shows."""
        return instant.astimezone(self.zone).replace(tzinfo=None)

    def at(self, written: datetime) -> datetime | None:
        """The instant of a local time; None for one in a gap that is left out."""
        return _instant(self.zone, written, self.gap, self.overlap)

    def midnight(self, day: date) -> datetime:
        """An instant about the beginning of a local day."""
        return _instant(self.zone, datetime.combine(day, time()), "shift", "first") or datetime.max.replace(
            tzinfo=UTC
        )

    def between(self, first: datetime, end: datetime) -> list[_Moment]:
        """The occurrences from `first` to `end`, before a calendar moves them. Raises Unjudged."""
        found: dict[datetime, _Moment] = {}
        for rule in self.rules:
            found |= {each.instant: each for each in self._of_rule(rule, first, end)}
        for zone, written in self.dates:
            instant = _instant(zone, written, self.gap, self.overlap)
            if instant is not None and first <= instant < end:
                own = written if zone is self.zone else self.local(instant)
                found.setdefault(instant, _Moment(instant, own))
        excluded = set(self.without)
        for rule in self.exceptions:
            excluded |= {each.instant for each in self._of_rule(rule, first, end)}
        return [
            moment
            for instant, moment in sorted(found.items())
            if instant not in excluded and moment.day not in self.without_days
        ]

    def _of_rule(self, rule: dict[str, str], first: datetime, end: datetime) -> list[_Moment]:
        if "RSCALE" in rule or "SKIP" in rule or "BYWEEKNO" in rule:
            raise Unjudged("dateutil does not know SKIP, and numbers weeks otherwise at the turn of a year")
        ended = _until(rule)
        if ended is not None:
            end = min(end, ended + timedelta(seconds=1))
        if end <= first:
            return []
        if rule["FREQ"] in _ELAPSED:
            return list(self._elapsed(rule, _ELAPSED[rule["FREQ"]], first, end))
        return list(self._by_calendar(rule, first, end))

    def _by_calendar(self, rule: dict[str, str], first: datetime, end: datetime) -> Iterator[_Moment]:
        count = int(rule["COUNT"]) if "COUNT" in rule else None
        parts = _spelled_out(rule, self.start)
        beginning = self.at(self.start) or self.midnight(self.start.date())
        near = self.local(max(first, beginning)) - 2 * _DAY
        begin = _period_start(parts, self.start, self.start if count is not None else max(near, self.start))
        last = self.local(end) + 2 * _DAY
        text = ";".join(f"{name}={value}" for name, value in parts.items())
        made = rrulestr(text, dtstart=begin)
        if not isinstance(made, rrule):
            raise Unjudged("its rule is not one that dateutil reads")
        seen: set[datetime] = set()
        for steps, written in enumerate(made.replace(until=last)):
            if steps > MOST_STEPS:
                raise Unjudged(f"it takes more than {MOST_STEPS} steps")
            instant = self.at(written)
            if instant is None or written < self.start or instant < beginning or instant in seen:
                continue
            if count is not None:
                seen.add(instant)
                if len(seen) > count:
                    return
            if first <= instant < end:
                yield _Moment(instant, written)

    def _elapsed(self, rule: dict[str, str], unit: int, first: datetime, end: datetime) -> Iterator[_Moment]:
        """HOURLY, MINUTELY and SECONDLY step in exact time; their parts are tested on the local clock."""
        start = self.at(self.start) or self.midnight(self.start.date())
        step = unit * int(rule.get("INTERVAL", "1"))
        expands = (unit > 1 and "BYSECOND" in rule) or (unit == 3600 and "BYMINUTE" in rule)
        into = (self.start.minute * 60 + self.start.second) % unit if expands else 0
        origin = start - timedelta(seconds=into)
        count = int(rule["COUNT"]) if "COUNT" in rule else None
        tests = _tests(rule, unit)
        period = 0
        if count is None or not (tests or expands):
            period = max(0, int((first - origin).total_seconds() // step))
        counted = 0 if tests or expands else period
        for _ in range(MOST_STEPS):
            base = origin + timedelta(seconds=period * step)
            if base >= end or (count is not None and counted >= count):
                return
            period += 1
            members = _within(rule, self.start, base, unit, self.local) if expands else [base]
            for instant in members:
                local = self.local(instant)
                if instant < start or not all(test(local) for test in tests):
                    continue
                counted += 1
                if count is not None and counted > count:
                    return
                if first <= instant < end:
                    yield _Moment(instant, local)
        raise Unjudged(f"it takes more than {MOST_STEPS} steps")


def _instant(zone: tzinfo, written: datetime, gap: str, overlap: str) -> datetime | None:
    """The instant of a local time. PEP 495: in a gap, fold 0 reads it with the offset before the change."""
    early = written.replace(tzinfo=zone).astimezone(UTC)
    if early.astimezone(zone).replace(tzinfo=None, fold=0) != written:
        return None if gap == "skip" else early
    late = written.replace(tzinfo=zone, fold=1).astimezone(UTC)
    return max(early, late) if overlap == "last" else min(early, late)


def _times(parameters: Iterable[str], value: str) -> list[tuple[tzinfo, datetime]]:
    names = [each.removeprefix("TZID=") for each in parameters if each.startswith("TZID=")]
    try:
        zone = ZoneInfo(names[0]) if names else UTC
    except (ZoneInfoNotFoundError, ValueError):
        raise Unjudged(f"its zone {names[0][:60]} is not known here") from None
    return [(zone, _time(each)) for each in value.split(",")]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.removesuffix("Z"))


def _parts(value: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in value.split(";"))


def _until(rule: dict[str, str]) -> datetime | None:
    return _time(rule["UNTIL"]).replace(tzinfo=UTC) if "UNTIL" in rule else None


def _spelled_out(rule: dict[str, str], start: datetime) -> dict[str, str]:
    """The parts of a calendar rule with those that DTSTART implies (RFC 5545, 3.3.10), without its end."""
    parts = {name: value for name, value in rule.items() if name not in ("COUNT", "UNTIL")}
    days = parts.keys() & {"BYMONTHDAY", "BYDAY", "BYYEARDAY"}
    if rule["FREQ"] == "WEEKLY" and not days:
        parts["BYDAY"] = _WEEKDAYS[start.weekday()]
    elif rule["FREQ"] in ("MONTHLY", "YEARLY") and not days:
        parts["BYMONTHDAY"] = str(start.day)
        if rule["FREQ"] == "YEARLY":
            parts.setdefault("BYMONTH", str(start.month))
    parts.setdefault("BYHOUR", str(start.hour))
    parts.setdefault("BYMINUTE", str(start.minute))
    parts.setdefault("BYSECOND", str(start.second))
    return parts


def _period_start(parts: dict[str, str], start: datetime, near: datetime) -> datetime:
    """The beginning of the last period that takes part and begins no later than `near`."""
    interval = int(parts.get("INTERVAL", "1"))
    midnight = datetime.combine(start.date(), time())
    match parts["FREQ"]:
        case "YEARLY":
            years = (near.year - start.year) // interval * interval
            return datetime.combine(date(start.year + years, 1, 1), time())
        case "MONTHLY":
            months = start.year * 12 + start.month - 1
            passed = (near.year * 12 + near.month - 1 - months) // interval * interval
            year, month = divmod(months + passed, 12)
            return datetime.combine(date(year, month + 1, 1), time())
        case "WEEKLY":
            first = _WEEKDAYS.index(parts.get("WKST", "MO"))
            week = midnight - (start.weekday() - first) % 7 * _DAY
            return week + (near - week).days // (7 * interval) * (7 * interval) * _DAY
        case _:
            return midnight + (near - midnight).days // interval * interval * _DAY


def _numbers(value: str) -> set[int]:
    return {int(each) for each in value.split(",")}


def _tests(rule: dict[str, str], unit: int) -> list[Callable[[datetime], bool]]:
    """What a rule of elapsed time asks of the local clock."""
    tests: list[Callable[[datetime], bool]] = []

    def add(name: str, test: Callable[[datetime, set[int]], bool]) -> None:
        if name in rule:
            wanted = _numbers(rule[name])
            tests.append(lambda local: test(local, wanted))

    add("BYMONTH", lambda local, wanted: local.month in wanted)
    add("BYMONTHDAY", _is_month_day)
    add("BYYEARDAY", _is_year_day)
    add("BYHOUR", lambda local, wanted: local.hour in wanted)
    if unit <= 60:
        add("BYMINUTE", lambda local, wanted: local.minute in wanted)
    if unit == 1:
        add("BYSECOND", lambda local, wanted: local.second in wanted)
    if "BYDAY" in rule:
        days = {_WEEKDAYS.index(name) for name in rule["BYDAY"].split(",")}
        tests.append(lambda local: local.weekday() in days)
    return tests


def _is_month_day(local: datetime, wanted: set[int]) -> bool:
    length = ((local.replace(day=28) + 4 * _DAY).replace(day=1) - _DAY).day
    return local.day in wanted or local.day - length - 1 in wanted


def _is_year_day(local: datetime, wanted: set[int]) -> bool:
    day = local.timetuple().tm_yday
    return day in wanted or day - date(local.year, 12, 31).timetuple().tm_yday - 1 in wanted


def _within(
    rule: dict[str, str], start: datetime, base: datetime, unit: int, local: Callable[[datetime], datetime]
) -> list[datetime]:
    """The instants of a period of an hour or a minute that BYMINUTE and BYSECOND name, or DTSTART does."""
    minutes = _numbers(rule.get("BYMINUTE", str(start.minute))) if unit == 3600 else None
    seconds = _numbers(rule.get("BYSECOND", str(start.second)))
    found = []
    for into in range(unit):
        instant = base + timedelta(seconds=into)
        shown = local(instant)
        if shown.second in seconds and (minutes is None or shown.minute in minutes):
            found.append(instant)
    if "BYSETPOS" not in rule:
        return found
    places = {each - 1 if each > 0 else len(found) + each for each in _numbers(rule["BYSETPOS"])}
    return [found[place] for place in sorted(places) if 0 <= place < len(found)]
