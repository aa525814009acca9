"""A recurrence text as written: its lines read and checked one by one, times and zones understood."""

from dataclasses import dataclass, field

from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.recurrence.rules.rule import Rule
from scheduler_app.domain.recurrence.zones.zone import UnknownZone, Zone, find_zone
from scheduler_app.domain.recurrence.zones.zone_hint import better_zone

from .content_line import ContentLine, read_lines
from .rule_text import read_rule
from .time_text import ParsedTime, read_time

MAX_DATES = 2_000
MAX_RULES = 16
_TYPES = ("DATE", "DATE-TIME")


@dataclass(frozen=True)
class ParsedDate:
    """One DTSTART, RDATE or EXDATE value; `zone` is its own TZID's, None if it names none."""

    time: ParsedTime
    zone: Zone | None


@dataclass
class ParsedText:
    """The lines of a text, sorted by what they are."""

    start: ParsedDate | None = None
    rules: list[Rule] = field(default_factory=list)
    exception_rules: list[Rule] = field(default_factory=list)
    dates: list[ParsedDate] = field(default_factory=list)
    exception_dates: list[ParsedDate] = field(default_factory=list)


def read_text(text: str) -> ParsedText:
    """The text, read line by line; InvalidRecurrence names the line or the part that is wrong."""
    written = ParsedText()
    for line in read_lines(text):
        if line.name == "DTSTART":
            if written.start is not None:
                raise InvalidRecurrence("DTSTART", "is given twice; a recurrence has one start")
            found = _read_dates(line)
            if len(found) != 1:
                raise InvalidRecurrence("DTSTART", "has several values; a recurrence has one start")
            written.start = found[0]
        elif line.name in ("RRULE", "EXRULE"):
            _check_parameters(line, ())
            rules = written.rules if line.name == "RRULE" else written.exception_rules
            rules.append(read_rule(line.value))
            if len(written.rules) + len(written.exception_rules) > MAX_RULES:
                raise InvalidRecurrence(
                    line.name, f"there are more than {MAX_RULES} rules; split them over several schedules"
                )
        else:
            dates = written.dates if line.name == "RDATE" else written.exception_dates
            if len(dates) + line.value.count(",") >= MAX_DATES:
                raise InvalidRecurrence(
                    line.name, f"there are more than {MAX_DATES} dates; use a rule, or several schedules"
                )
            dates += _read_dates(line)
    if not (written.rules or written.dates or written.start):
        raise InvalidRecurrence(
            "RRULE", "is missing; without RRULE, RDATE or DTSTART there is nothing to repeat"
        )
    return written


def zone_named(part: str, name: str) -> Zone:
    """The zone of a TZID or of a `timezone` setting; InvalidRecurrence naming `part` when there is none."""
    try:
        return find_zone(name.removeprefix("/"))
    except UnknownZone:
        raise InvalidRecurrence(
            part, f"{name[:60]!r} is not an IANA time zone; {better_zone(name)}"
        ) from None


def _check_parameters(line: ContentLine, known: tuple[str, ...]) -> None:
    for name in line.parameters:
        if name not in known and not name.startswith("X-"):
            allowed = " and ".join(known) or "none"
            raise InvalidRecurrence(
                line.name, f"the parameter {name[:40]} is not allowed here; allowed: {allowed}"
            )


def _read_dates(line: ContentLine) -> list[ParsedDate]:
    _check_parameters(line, ("TZID", "VALUE"))
    kind = line.parameters["VALUE"].upper() if "VALUE" in line.parameters else None
    if kind == "PERIOD" or "/" in line.value:
        raise InvalidRecurrence(
            line.name,
            "VALUE=PERIOD is not supported: a callback has no length; give the starts as date-times",
        )
    if kind is not None and kind not in _TYPES:
        raise InvalidRecurrence(line.name, f"VALUE={kind[:40]} is not supported; use DATE or DATE-TIME")
    zone = zone_named("TZID", line.parameters["TZID"]) if "TZID" in line.parameters else None
    found = []
    for text in line.value.split(","):
        time = read_time(line.name, text.strip())
        if kind is not None and (kind == "DATE") != time.date_only:
            right = "a date such as 20250131" if kind == "DATE" else "a date-time such as 20250131T083000"
            raise InvalidRecurrence(line.name, f"{text.strip()} does not fit VALUE={kind}; give {right}")
        if time.date_only and zone is not None:
            raise InvalidRecurrence(
                line.name,
                f"a TZID cannot stand beside a date without a time (RFC 5545, 3.2.19); leave out the TZID or "
                f"give a time such as {text.strip()}T083000",
            )
        if time.utc and zone is not None:
            raise InvalidRecurrence(
                line.name,
                f"{text.strip()} is in UTC (Z) and cannot have a TZID as well; leave out the Z, or the TZID",
            )
        found.append(ParsedDate(time, zone))
    return found
