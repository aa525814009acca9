"""A recurrence text as written: its content lines (RFC 5545, 3.1) read and checked one by one, times and
zones understood.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.recurrence.rule_text import read_rule, read_time, shortened
from scheduler_app.domain.recurrence.rules.rule import Rule, WrittenTime
from scheduler_app.domain.recurrence.zones import UnknownZone, Zone, better_zone, find_zone

_LONGEST: Final = 100
_NAMES: Final = "jan feb mar apr may jun jul aug sep oct nov dec sun mon tue wed thu fri sat"
_FIELD: Final = re.compile(rf"(?:[0-9*?LW/,#-]|{_NAMES.replace(' ', '|')})+", re.IGNORECASE)


def cron_hint(text: str) -> str | None:
    """The end of a sentence that begins with the quoted `text`; None if it is not a cron expression."""
    if len(text) > _LONGEST:
        return None
    fields = text.split()
    if not text.startswith("@") and not (5 <= len(fields) <= 7 and all(map(_FIELD.fullmatch, fields))):
        return None
    return "is a cron expression; give it as the field cron in the place of rrule"


MAX_TEXT: Final = 65_536
MAX_LINES: Final = 1_000
_FOLD: Final = re.compile(r"\r?\n[ \t]")
_BARE: Final = re.compile(r"\s*[A-Za-z]+\s*=")
_PARAMETER: Final = re.compile(r';\s*([A-Za-z0-9-]+)\s*=\s*("[^"]*"|[^";:,]*)')
_NAME: Final = re.compile(r"\s*([A-Za-z0-9-]+)\s*")
_FREQ: Final = re.compile(r"\s*FREQ\s*:\s*([A-Z]{1,20})", re.IGNORECASE)
_KNOWN: Final = ("DTSTART", "RRULE", "EXRULE", "RDATE", "EXDATE")


@dataclass(frozen=True)
class ContentLine:
    """One property: its name and those of its parameters in upper case, their values without quotes, and its
    value, as they were written."""

    name: str
    parameters: dict[str, str]
    value: str


def read_lines(text: str) -> list[ContentLine]:
    """The properties of a recurrence text; a bare `FREQ=…` is an RRULE. InvalidRecurrence when there are
    none."""
    if len(text) > MAX_TEXT:
        raise InvalidRecurrence(
            "RRULE", f"the text has {len(text)} characters; at most {MAX_TEXT} are allowed"
        )
    try:
        text.encode("ascii")
    except UnicodeEncodeError as problem:
        raise InvalidRecurrence(
            "RRULE", f"{text[problem.start]!r} is not allowed; the text of a rule is plain ASCII"
        ) from None
    lines = [line for line in _FOLD.sub("", text).splitlines() if line.strip()]
    if not lines:
        raise InvalidRecurrence("RRULE", "is empty; give a rule such as FREQ=DAILY")
    if len(lines) > MAX_LINES:
        raise InvalidRecurrence("RRULE", f"the text has {len(lines)} lines; at most {MAX_LINES} are allowed")
    return [_read_line(line) for line in lines]


def _read_line(line: str) -> ContentLine:
    if _BARE.match(line):
        return ContentLine("RRULE", {}, line.strip())
    match = _NAME.match(line)
    name = match[1].upper() if match else ""
    if match is None or name not in _KNOWN:
        raise InvalidRecurrence("RRULE", _no_line(line.strip()))
    parameters: dict[str, str] = {}
    at = match.end()
    while parameter := _PARAMETER.match(line, at):
        if parameter[1].upper() in parameters:
            raise InvalidRecurrence(name, f"the parameter {parameter[1][:40]} is given twice; give it once")
        parameters[parameter[1].upper()] = parameter[2].strip('"').strip()
        at = parameter.end()
    if line[at : at + 1] != ":":
        raise InvalidRecurrence(name, f"a colon is missing before the value; write it like {_example(name)}")
    return ContentLine(name, parameters, line[at + 1 :].strip())


def _no_line(line: str) -> str:
    """The refusal of a line that does not belong to a recurrence, as it was written."""
    shown = repr(shortened(line))
    if (hint := cron_hint(line)) is not None:
        return f"{line!r} {hint}"
    if match := _FREQ.match(line):
        return f"{shown} has a colon in the place of an equals sign; write FREQ={match[1].upper()}"
    if ":" in line or "=" in line:
        return (
            f"{shown} is not a line that a recurrence can hold; use {', '.join(_KNOWN)}, or the value of an "
            "RRULE alone, which begins with FREQ="
        )
    return (
        f"{shown} is not a recurrence rule (RRULE of RFC 5545); write one such as "
        "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"
    )


def _example(name: str) -> str:
    if name in ("RRULE", "EXRULE"):
        return f"{name}:FREQ=DAILY"
    return f"{name}:20250101T083000Z or {name};TZID=Europe/Paris:20250101T083000"


MAX_DATES = 2_000
MAX_RULES = 16
_TYPES = ("DATE", "DATE-TIME")


@dataclass(frozen=True)
class ParsedDate:
    """One DTSTART, RDATE or EXDATE value; `zone` is its own TZID's, None if it names none."""

    time: WrittenTime
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
    """The zone of a TZID or of a `timezone` setting; InvalidRecurrence naming `part` for an unknown name."""
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
