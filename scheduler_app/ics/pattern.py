"""A series of events as rules and dates, and what overriding events make of it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Final

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.recurrence.rule_text import write_date, write_time
from scheduler_app.domain.recurrence.rules.rule import Frequency, Rule, WrittenTime
from scheduler_app.domain.recurrence.timeline import floor_second, local_second, to_datetime
from scheduler_app.domain.recurrence.zones import find_zone

from .times import CalendarTime

_SECOND: Final = timedelta(seconds=1)
_END: Final = datetime(9999, 12, 31, tzinfo=UTC)
#: Occurrences by which it is checked that a series that was moved from some day on is what it must be.
COMPARED: Final = 100


@dataclass(frozen=True, slots=True)
class SeriesPattern:
    """When a series happens. The UNTIL of each rule is in UTC. Dates without a time have become midnights,
    but for `exception_days`, which take away whole days of a series that has times."""

    start: CalendarTime
    rules: tuple[Rule, ...] = ()
    exception_rules: tuple[Rule, ...] = ()
    dates: tuple[CalendarTime, ...] = ()
    exceptions: tuple[CalendarTime, ...] = ()
    exception_days: tuple[CalendarTime, ...] = ()

    def names_its_start(self) -> bool:
        """Whether the start is one of the times that the rules give, or is taken away. Raises
        InvalidRecurrence."""
        if not self.rules:
            return True
        start = self.start.instant
        days = {each.local.date() for each in self.exception_days}
        if self.start.local.date() in days or any(each.instant == start for each in self.exceptions):
            return True
        alone = SeriesPattern(self.start, self.rules).recurrence(start)
        return alone.after(start, inclusive=True) == start

    def with_its_start(self) -> "SeriesPattern":
        """The pattern whose start occurs although no rule gives it: COUNT counts it as the first instance."""
        counted = [rule if rule.count is None else replace(rule, count=rule.count - 1) for rule in self.rules]
        rules = tuple(rule for rule in counted if rule.count != 0)
        return replace(self, rules=rules, dates=(self.start, *self.dates))

    def overridden(self, original: CalendarTime, moved_to: CalendarTime | None) -> "SeriesPattern":
        """The pattern with the occurrence `original` moved, or cancelled where `moved_to` is None."""
        if moved_to is not None and moved_to.instant == original.instant:
            return self
        dates = self.dates if moved_to is None else (*self.dates, moved_to)
        return replace(self, dates=dates, exceptions=(*self.exceptions, original))

    def until(self, original: CalendarTime) -> "SeriesPattern":
        """The part before the occurrence `original`. Raises InvalidField."""
        end = original.instant - _SECOND
        return replace(
            self,
            rules=tuple(_ended(rule, end) for rule in self.rules),
            exception_rules=tuple(_ended(rule, end) for rule in self.exception_rules),
            dates=tuple(each for each in self.dates if each.instant <= end),
        )

    def since(self, original: CalendarTime, moved_to: CalendarTime) -> "SeriesPattern":
        """The part from the occurrence `original` on, moved as this one is. Raises InvalidField where no rule
        says that."""
        shift = moved_to.local - original.local
        days = moved_to.local.date().toordinal() - original.local.date().toordinal()
        zone = moved_to.zone

        def moved_until(until: WrittenTime) -> WrittenTime:
            local = to_datetime(until.second).astimezone(find_zone(original.zone).info).replace(tzinfo=None)
            return in_utc(CalendarTime(local, original.zone).moved(shift, zone))

        counted = self._counted_before(original.instant)
        rules = tuple(
            _moved(rule, done, moved_until, days) for rule, done in zip(self.rules, counted, strict=True)
        )
        if self.exception_rules:
            raise InvalidField(
                "RECURRENCE-ID", "with RANGE=THISANDFUTURE beside an EXRULE is not supported; write EXDATEs"
            )

        def after(times: Iterable[CalendarTime]) -> tuple[CalendarTime, ...]:
            later = (each for each in times if each.instant >= original.instant)
            return tuple(each.moved(shift, zone) for each in later)

        found = SeriesPattern(
            moved_to, rules, (), after(self.dates), after(self.exceptions), after(self.exception_days)
        )
        self._check_same(found, original, shift)
        return found

    def text(self) -> str:
        """The recurrence as RFC 5545 lines."""
        added = {each.instant for each in self.dates}
        exceptions = [each for each in self.exceptions if each.instant not in added]
        lines = [_line("DTSTART", [self.start])]
        # Where nothing repeats, the start itself occurs; beside dates it has to be said.
        if not self.rules and self.dates:
            lines += _lines("RDATE", [self.start])
        lines += [f"RRULE:{_rule_text(rule)}" for rule in self.rules]
        lines += [f"EXRULE:{_rule_text(rule)}" for rule in self.exception_rules]
        lines += _lines("RDATE", self.dates)
        lines += _lines("EXDATE", exceptions)
        if self.exception_days:
            days = sorted({local_second(each.local) for each in self.exception_days})
            lines.append("EXDATE;VALUE=DATE:" + ",".join(map(write_date, days)))
        return "\n".join(lines)

    def recurrence(self, now: datetime) -> Recurrence:
        """Raises InvalidRecurrence for a pattern that the engine refuses."""
        return Recurrence.parse(self.text(), created_at=now)

    def _counted_before(self, instant: datetime) -> list[int]:
        """For each rule, how many instances of it come before; 0 for a rule without COUNT."""
        found = []
        for rule in self.rules:
            done = [0]
            if rule.count is not None:
                alone = SeriesPattern(self.start, (rule,)).recurrence(self.start.instant)
                done = (alone.checkpoint(instant) or {}).get("done", [0])
            found.append(int(done[0]))
        return found

    def _check_same(self, found: "SeriesPattern", original: CalendarTime, shift: timedelta) -> None:
        if not self.rules:
            return
        old = SeriesPattern(self.start, self.rules).recurrence(self.start.instant)
        new = SeriesPattern(found.start, found.rules).recurrence(self.start.instant)
        expected = [
            each.local.replace(tzinfo=None) + shift
            for each in old.occurrences(original.instant, _END, COMPARED)
        ]
        got = [
            each.local.replace(tzinfo=None) for each in new.occurrences(found.start.instant, _END, COMPARED)
        ]
        if expected != got:
            raise InvalidField(
                "RECURRENCE-ID",
                "with RANGE=THISANDFUTURE moves the series in a way that its rule cannot say; end the series"
                " and write a new one",
            )


def _ended(rule: Rule, end: datetime) -> Rule:
    """The rule without its instances after `end`. Its COUNT is given up: UNTIL comes first."""
    last = WrittenTime(floor_second(end), utc=True)
    if rule.until is not None and rule.until.second < last.second:
        return rule
    return replace(rule, count=None, until=last)


def in_utc(time: CalendarTime) -> WrittenTime:
    """An UNTIL at that time; of a date, the end of its day."""
    end = time.moved(timedelta(seconds=86_399), time.zone) if time.date_only else time
    return WrittenTime(floor_second(end.instant), utc=True)


def _rule_text(rule: Rule) -> str:
    return rule.text(None if rule.until is None else write_time(rule.until.second, utc=True))


def _moved(rule: Rule, done: int, moved_until: Callable[[WrittenTime], WrittenTime], days: int) -> Rule:
    """The rule for a start that was moved by that many days; `done` instances of it came before."""
    if rule.count is not None:
        rule = replace(rule, count=rule.count - done)
        if rule.count is not None and rule.count < 1:
            raise InvalidField("RECURRENCE-ID", "with RANGE=THISANDFUTURE lies after the last of COUNT")
    if rule.until is not None:
        rule = replace(rule, until=moved_until(rule.until))
    if days and rule.by_day and rule.freq is Frequency.WEEKLY:
        moved = sorted({(day.weekday + days) % 7 for day in rule.by_day})
        rule = replace(
            rule,
            by_day=tuple(type(rule.by_day[0])(each) for each in moved),
            week_start=(rule.week_start + days) % 7,
        )
    return rule


def _lines(name: str, times: Iterable[CalendarTime]) -> list[str]:
    """One line for each zone."""
    ordered = sorted(set(times), key=lambda each: (each.zone, each.local))
    return [_line(name, list(group)) for _, group in groupby(ordered, key=lambda each: each.zone)]


def _line(name: str, times: list[CalendarTime]) -> str:
    zone = "" if times[0].zone == "UTC" else f";TZID={times[0].zone}"
    return f"{name}{zone}:{','.join(each.written() for each in times)}"
