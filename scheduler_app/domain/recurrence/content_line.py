"""Content lines of RFC 5545, 3.1: folded lines joined, names and parameters apart from the value."""

import re
from dataclasses import dataclass
from typing import Final

from scheduler_app.domain.errors import InvalidRecurrence

MAX_TEXT: Final = 65_536
MAX_LINES: Final = 1_000
_FOLD: Final = re.compile(r"\r?\n[ \t]")
_BARE: Final = re.compile(r"\s*[A-Z]+\s*=")
_PARAMETER: Final = re.compile(r';\s*([A-Z0-9-]+)\s*=\s*("[^"]*"|[^";:,]*)')
_NAME: Final = re.compile(r"\s*([A-Z0-9-]+)\s*")
_KNOWN: Final = ("DTSTART", "RRULE", "EXRULE", "RDATE", "EXDATE")


@dataclass(frozen=True)
class ContentLine:
    """One property: its name, its parameters without quotes, its value. All in upper case."""

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
    lines = [line for line in _FOLD.sub("", text).upper().splitlines() if line.strip()]
    if not lines:
        raise InvalidRecurrence("RRULE", "is empty; give a rule such as FREQ=DAILY")
    if len(lines) > MAX_LINES:
        raise InvalidRecurrence("RRULE", f"the text has {len(lines)} lines; at most {MAX_LINES} are allowed")
    return [_read_line(line) for line in lines]


def _read_line(line: str) -> ContentLine:
    if _BARE.match(line):
        return ContentLine("RRULE", {}, line.strip())
    match = _NAME.match(line)
    name = match[1] if match else ""
    if match is None or name not in _KNOWN:
        raise InvalidRecurrence(
            name[:40] or "RRULE",
            f"{line.strip()[:40]!r} is not a line that a rule can hold; these are {', '.join(_KNOWN)} and a "
            "bare FREQ=…",
        )
    parameters: dict[str, str] = {}
    at = match.end()
    while parameter := _PARAMETER.match(line, at):
        if parameter[1] in parameters:
            raise InvalidRecurrence(name, f"the parameter {parameter[1][:40]} is given twice; give it once")
        parameters[parameter[1]] = parameter[2].strip('"').strip()
        at = parameter.end()
    if line[at : at + 1] != ":":
        raise InvalidRecurrence(name, f"a colon is missing before the value; write it like {_example(name)}")
    return ContentLine(name, parameters, line[at + 1 :].strip())


def _example(name: str) -> str:
    if name in ("RRULE", "EXRULE"):
        return f"{name}:FREQ=DAILY"
    return f"{name}:20250101T083000Z or {name};TZID=Europe/Paris:20250101T083000"
