"""Content lines of RFC 5545, 3.1: folded lines joined, names and parameters apart from the value."""

import re
from dataclasses import dataclass
from typing import Final

from scheduler_app.domain.errors import InvalidRecurrence

from .cron_hint import cron_hint

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
    shown = repr(line if len(line) <= 40 else line[:40] + "…")
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
