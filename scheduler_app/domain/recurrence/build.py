"""From a written text to a recurrence set: DTSTART pinned, times turned into instants, UNTIL checked.

The canonical text is made here too. It is never made by `str()` of a dateutil rule, which loses the zone
and UNTIL's Z. UNTIL is inclusive, and in UTC wherever DTSTART has a zone (RFC 5545, 3.3.10).

What a rule does not contain is taken from DTSTART (RFC 5545, 3.3.10). Two combinations were read
otherwise in earlier releases: YEARLY with BYMONTHDAY but without BYMONTH fired in every month, YEARLY
with BYWEEKNO but without BYDAY on all seven days. The canonical text spells such a part out, so that it
has one reading for ever. A stored text that does not was pinned by an earlier release: it keeps its
occurrences, and a note says so.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby

from dateutil.rrule import weekday

from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.recurrence.parsed_text import ParsedDate, ParsedText
from scheduler_app.domain.recurrence.rule_text import write_date, write_time
from scheduler_app.domain.recurrence.rules.bound_rule import CountedRule, RuleOfSet, Start, bind
from scheduler_app.domain.recurrence.rules.recurrence_set import RecurrenceSet
from scheduler_app.domain.recurrence.rules.rule import DAY_NAMES, Frequency, Rule, WrittenTime
from scheduler_app.domain.recurrence.timeline import (
    DAY,
    FIRST_SECOND,
    LAST_SECOND,
    StepBudget,
    local_datetime,
)
from scheduler_app.domain.recurrence.zones import Zone, find_zone


def with_implied_parts(rule: Rule, start: date, *, stored: bool) -> tuple[Rule, str | None]:
    """The rule with the part spelled out that earlier releases read otherwise, and what to say of that.

    `start` is DTSTART's local day; `stored` tells a pinned text from one that is given now.
    """
    if rule.freq != Frequency.YEARLY:
        return rule, None
    if rule.by_week_no and not (rule.by_day or rule.by_month_day or rule.by_year_day):
        name = DAY_NAMES[start.weekday()]
        if stored:
            days = tuple(weekday(number) for number in range(7))
            return replace(rule, by_day=days), _kept_note(
                "YEARLY with BYWEEKNO but no BYDAY", "on all seven days of the week", f"BYDAY={name}"
            )
        return replace(rule, by_day=(weekday(start.weekday()),)), (
            f"YEARLY with BYWEEKNO but no BYDAY fires on DTSTART's day of the week, {name}; "
            "add BYDAY to choose others."
        )
    numbered = any(day.n for day in rule.by_day)  # with BYMONTH their numbers would count in the month
    if rule.by_month_day and not (rule.by_month or rule.by_week_no or rule.by_year_day or numbered):
        if stored:
            return replace(rule, by_month=tuple(range(1, 13))), _kept_note(
                "YEARLY with BYMONTHDAY but no BYMONTH", "in every month", f"BYMONTH={start.month}"
            )
        return replace(rule, by_month=(start.month,)), (
            f"YEARLY with BYMONTHDAY but no BYMONTH fires in DTSTART's month, BYMONTH={start.month}, once a "
            "year; add BYMONTH to choose others, or use FREQ=MONTHLY."
        )
    return rule, None


def _kept_note(what: str, how: str, now: str) -> str:
    return (
        f"This rule was made by an earlier release, which read {what} as {how}, and keeps its occurrences. "
        f"A new rule takes what is missing from DTSTART, as RFC 5545 says: {now}. "
        "Write the parts that you mean."
    )


def until_instant(until: WrittenTime, written_start: ParsedDate | None, start: Start) -> int:
    """The last UTC second of a rule; InvalidRecurrence, with the right value, where it must be UTC.

    Beside a floating or missing DTSTART a local UNTIL is read in the same zone, and a date means the whole
    day.
    """
    if until.utc:
        return until.second
    local = until.second + (DAY - 1 if until.date_only else 0)
    early, late, _ = start.zone.read(local)
    instant = min(max(late if start.last_in_overlap or until.date_only else early, FIRST_SECOND), LAST_SECOND)
    timed = written_start if written_start is not None and not written_start.time.date_only else None
    if timed is not None and (timed.time.utc or timed.zone is not None):
        written = write_date(until.second) if until.date_only else write_time(until.second, utc=False)
        raise InvalidRecurrence(
            "UNTIL",
            f"{written} must be in UTC, because DTSTART has a zone; in {start.zone.name} that is "
            f"UNTIL={write_time(instant, utc=True)}",
        )
    return instant


@dataclass(frozen=True)
class Built:
    """A set, its start, its canonical text, and what had to be read with a guess."""

    start: Start
    explicit_start: bool
    set: RecurrenceSet
    text: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Choices:
    """What the schedule says beside the text: the zone of floating times, and what to do at clock changes."""

    zone: Zone
    skip_gap: bool
    last_in_overlap: bool


def build(written: ParsedText, choices: Choices, now: int, steps: StepBudget, *, stored: bool) -> Built:
    """The set of a text; `now` is the UTC second that a missing DTSTART is pinned to. `stored`: the text is a
    canonical one, perhaps of an earlier release (see `with_implied_parts`)."""
    start = _start(written, choices, now)
    notes = _notes(written, start)
    day = local_datetime(start.local, None).date()
    readings = [with_implied_parts(rule, day, stored=stored) for rule in written.rules]
    exceptions = [with_implied_parts(rule, day, stored=stored) for rule in written.exception_rules]
    notes += tuple(note for _, note in (*readings, *exceptions) if note is not None)
    dates = dict(_instants(written.dates, start))
    if not written.rules and (written.start is not None or not written.dates):
        dates[start.instant] = False  # without a rule, the start itself is what occurs (RFC 5545, 3.8.2.4)
    whole_days = [date for date in written.exception_dates if _excludes_day(date, written)]
    exact = [date for date in written.exception_dates if not _excludes_day(date, written)]
    rules, rule_lines = _rules("RRULE", [rule for rule, _ in readings], written, start, steps)
    exception_rules, exception_lines = _rules(
        "EXRULE", [rule for rule, _ in exceptions], written, start, steps
    )
    found = RecurrenceSet(
        start.zone,
        rules,
        tuple(sorted(dates)),
        frozenset(instant for instant, shifted in dates.items() if shifted),
        exception_rules,
        frozenset(instant for instant, _ in _instants(exact, start)),
        frozenset(date.time.second // DAY for date in whole_days),
    )
    found.check(steps)
    lines = [
        _date_line("DTSTART", start.zone, [start.local]),
        *rule_lines,
        *exception_lines,
        *_date_lines("RDATE", written.dates, start.zone),
        *_date_lines("EXDATE", exact, start.zone),
    ]
    if whole_days:
        days = sorted({date.time.second for date in whole_days})
        lines.append("EXDATE;VALUE=DATE:" + ",".join(map(write_date, days)))
    return Built(start, written.start is not None, found, "\n".join(lines), notes)


def _start(written: ParsedText, choices: Choices, now: int) -> Start:
    """DTSTART; if it is missing, the first RDATE of a set without rules, else `now`."""
    zone = choices.zone
    if written.start is not None:
        local = written.start.time.second
        zone = find_zone("UTC") if written.start.time.utc else written.start.zone or zone
    elif written.rules:
        local = _implied_start(written.rules, now, choices)
    else:
        first = min(_instant(date, zone, choices.last_in_overlap)[0] for date in written.dates)
        local = first + zone.offset(first)
    instant = zone.read(local).instant(last=choices.last_in_overlap)
    if not FIRST_SECOND <= min(instant, local) <= max(instant, local) <= LAST_SECOND:
        raise InvalidRecurrence("DTSTART", "lies outside of the years 1 to 9999 in UTC; use one within them")
    return Start(local, zone, instant, choices.skip_gap, choices.last_in_overlap)


def _implied_start(rules: Iterable[Rule], now: int, choices: Choices) -> int:
    """The local second of `now`, to which a missing DTSTART is pinned.

    In a repeated hour that wall-clock time may name the pass that `now` does not lie in: an hour too late, or
    an hour ago. Rules that say their times of day themselves then begin with the repeated times or after them
    instead, so that none that is still to come is lost and none that is over is counted.
    """
    zone = choices.zone
    local = now + zone.offset(now)
    instant = zone.read(local).instant(last=choices.last_in_overlap)
    named = all(rule.by_hour and rule.by_minute and rule.by_second and not rule.elapsed for rule in rules)
    if instant == now or not named:
        return local
    since, change, _ = zone.segment(now)
    return change + zone.offset(change) if instant > now else since + zone.offset(since - 1)


def _instant(date: ParsedDate, zone: Zone, last: bool) -> tuple[int, str]:
    """`(UTC second, kind of its wall-clock reading)`."""
    if date.time.utc:
        return date.time.second, ""
    reading = (date.zone or zone).read(date.time.second)
    return reading.instant(last=last), reading.kind


def _instants(dates: Iterable[ParsedDate], start: Start) -> Iterable[tuple[int, bool]]:
    """`(UTC second, whether a gap moved it)` of each date that exists."""
    for each in dates:
        instant, kind = _instant(each, start.zone, start.last_in_overlap)
        if not (kind == "gap" and start.skip_gap):
            yield instant, kind == "gap"


def _excludes_day(date: ParsedDate, written: ParsedText) -> bool:
    """Whether an EXDATE means a whole day: a date beside a DTSTART that has a time."""
    return date.time.date_only and not (written.start is not None and written.start.time.date_only)


def _notes(written: ParsedText, start: Start) -> tuple[str, ...]:
    """How dates without a time are read, and how to give them one."""
    if written.start is not None and written.start.time.date_only:
        return ()
    notes = []
    for name, dates, how in (
        ("EXDATE", written.exception_dates, "takes away every occurrence of that local day"),
        ("RDATE", written.dates, "is read as midnight"),
    ):
        day = next((date.time.second for date in dates if date.time.date_only), None)
        if day is not None:
            timed = write_time(day + start.local % DAY, utc=False)
            notes.append(f"An {name} without a time {how}; write {name}:{timed} to name an instant.")
    ends = [rule.until for rule in written.rules if rule.until is not None and rule.until.date_only]
    if ends:
        notes.append(
            "An UNTIL without a time is read as the end of that local day; write it in UTC, such as "
            f"UNTIL={write_date(ends[0].second)}T120000Z, to end within the day."
        )
    return tuple(notes)


def _rules(
    name: str, rules: Iterable[Rule], written: ParsedText, start: Start, steps: StepBudget
) -> tuple[tuple[RuleOfSet, ...], list[str]]:
    """The rules bound to their start, and their canonical lines."""
    found: list[RuleOfSet] = []
    lines = []
    for rule in dict.fromkeys(rules):
        if written.start is not None and written.start.time.date_only:
            _check_has_no_time(rule)
        until = until_instant(rule.until, written.start, start) if rule.until is not None else None
        bound = bind(rule, start, until, name, steps)
        found.append(bound if rule.count is None else CountedRule(bound, rule.count))
        lines.append(f"{name}:{rule.text(None if until is None else write_time(until, utc=True))}")
    return tuple(found), lines


def _check_has_no_time(rule: Rule) -> None:
    """RFC 5545, 3.3.10: a rule whose DTSTART is a date cannot speak of times."""
    parts = (("BYHOUR", rule.by_hour), ("BYMINUTE", rule.by_minute), ("BYSECOND", rule.by_second))
    wrong = [name for name, values in parts if values]
    if rule.freq >= Frequency.HOURLY:
        wrong.append(f"FREQ={rule.freq.name}")
    if wrong:
        raise InvalidRecurrence(
            wrong[0].partition("=")[0],
            f"{wrong[0]} cannot stand beside a DTSTART without a time; write DTSTART:20250101T000000, say",
        )


def _date_line(name: str, zone: Zone, locals_: Iterable[int]) -> str:
    utc = zone.name == "UTC"
    values = ",".join(write_time(local, utc) for local in locals_)
    return f"{name}:{values}" if utc else f"{name};TZID={zone.name}:{values}"


def _date_lines(name: str, dates: Iterable[ParsedDate], default: Zone) -> list[str]:
    """One line for each zone, its dates in order."""
    utc = find_zone("UTC")
    pairs = {((utc if date.time.utc else date.zone or default), date.time.second) for date in dates}
    ordered = sorted(pairs, key=lambda pair: (pair[0].name, pair[1]))
    return [
        _date_line(name, zone, [second for _, second in group])
        for zone, group in groupby(ordered, key=lambda pair: pair[0])
    ]
