"""Reads an iCalendar file into components, within bounds."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from scheduler_app.domain.errors import InvalidField

from .component import Component, Property
from .library import line_reader, unfolded

#: The file's text, in characters, and its lines before folded ones are joined. Reading takes some half a
#: second for a million characters.
MAX_CHARACTERS: Final = 4 * 1024 * 1024
MAX_LINES: Final = 100_000
#: Components inside of each other: a calendar, its events, their alarms.
MAX_DEPTH: Final = 8
MAX_NAME: Final = 64
#: Names of lines that an import does not read, in one component.
MAX_UNREAD: Final = 50
_NAME: Final = re.compile(r"[A-Za-z0-9-]+")
_READ: Final = frozenset(
    (
        *("UID", "SUMMARY", "STATUS", "DTSTART", "DTEND", "DUE", "RECURRENCE-ID"),
        *("RRULE", "RDATE", "EXDATE", "EXRULE", "X-WR-TIMEZONE", "METHOD"),
        *("TZID", "X-LIC-LOCATION", "TZOFFSETFROM", "TZOFFSETTO"),
    )
)


class TooLarge(InvalidField):
    """The file exceeds a bound; the message names it, and what to do."""


@dataclass
class _Open:
    """A component whose END has not come yet."""

    name: str
    properties: list[Property] = field(default_factory=list)
    unread: dict[str, None] = field(default_factory=dict)
    components: list[Component] = field(default_factory=list)
    problem: str | None = None

    def take(self, line: str, read: Callable[[str], Property]) -> None:
        match = _NAME.match(line)
        name = match[0].upper() if match else ""
        if not name:
            self.problem = self.problem or f"the line {_shown(line)} has no name"
        elif name not in _READ:
            if len(self.unread) < MAX_UNREAD:
                self.unread[name[:MAX_NAME]] = None
        else:
            try:
                self.properties.append(read(line))
            except ValueError:
                self.problem = self.problem or f"the line {_shown(line)} is malformed"

    def closed(self) -> Component:
        return Component(
            self.name, tuple(self.properties), tuple(self.unread), tuple(self.components), self.problem
        )


def read_calendars(text: str, *, max_items: int) -> list[Component]:
    """The VCALENDARs of a file. Raises InvalidField("ics"), and TooLarge beyond a bound; `max_items` bounds
    the components of all calendars that are no time zones."""
    _check_size(text)
    root, read = _Open(""), line_reader()
    open_, items = [root], 0
    for line in unfolded(text.removeprefix("\ufeff")):
        word, _, rest = line.partition(":")
        word, name = word.strip().upper(), rest.strip().upper()[:MAX_NAME]
        if word == "BEGIN":
            if len(open_) > MAX_DEPTH:
                raise InvalidField("ics", f"has components inside of each other more than {MAX_DEPTH} deep")
            if not _NAME.fullmatch(name):
                raise InvalidField("ics", f"has a BEGIN without a proper name: {_shown(line)}")
            if (len(open_) == 1) is not (name == "VCALENDAR"):
                raise InvalidField("ics", f"has BEGIN:{name} where {_expected(len(open_))} is expected")
            items += len(open_) == 2 and name != "VTIMEZONE"
            if items > max_items:
                raise TooLarge(
                    "ics", f"holds more than {max_items:,} events and to-dos; split it into several files"
                )
            open_.append(_Open(name))
        elif word == "END":
            if name != open_[-1].name or len(open_) == 1:
                raise InvalidField("ics", f"has END:{name} where END:{open_[-1].name} is expected")
            done = open_.pop().closed()
            open_[-1].components.append(done)
        elif len(open_) == 1:
            raise InvalidField("ics", f"must begin with BEGIN:VCALENDAR, not with {_shown(line)}")
        else:
            open_[-1].take(line, read)
    if len(open_) > 1:
        raise InvalidField("ics", f"ends before END:{open_[-1].name}; the file is cut off")
    if not root.components:
        raise InvalidField("ics", "is empty; it must begin with BEGIN:VCALENDAR")
    return root.components


def _check_size(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise TooLarge("ics", f"has more than {MAX_CHARACTERS:,} characters; split it into several files")
    if text.count("\n") + text.count("\r") - text.count("\r\n") > MAX_LINES:
        raise TooLarge("ics", f"has more than {MAX_LINES:,} lines; split it into several files")


def check_time(is_out_of_time: Callable[[], bool], read: int) -> None:
    """Raises TooLarge if there is no time left for another item, after `read` of them."""
    if is_out_of_time():
        raise TooLarge(
            "ics",
            f"takes too long to read, after {read:,} items: its rules are hard to evaluate; split it into"
            " several files",
        )


def _expected(depth: int) -> str:
    return "BEGIN:VCALENDAR" if depth == 1 else "an event, a to-do or a time zone"


def _shown(line: str) -> str:
    return ascii(line if len(line) <= 40 else line[:40] + "…")
