"""The text of an iCalendar file: reads it into components, within bounds, and writes content lines. Only this
file knows the icalendar package.

Of the package only the lines and the Windows names of zones are used, and not its tree of values: while it
builds that tree it evaluates each VTIMEZONE with dateutil, and a rule such as FREQ=SECONDLY there would
never end.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence.rule_text import shortened


@dataclass(frozen=True, slots=True)
class Property:
    """One content line: its name and those of its parameters in upper case, and its value."""

    name: str
    parameters: Mapping[str, str]
    value: str


@dataclass(frozen=True, slots=True)
class Component:
    """What stands between BEGIN and END: an event, a time zone, an alarm."""

    name: str
    properties: tuple[Property, ...]
    """Those that an import reads."""
    unread: tuple[str, ...] = ()
    """The names of the others, in order, without repeats."""
    components: tuple["Component", ...] = ()
    problem: str | None = None
    """Why one of its lines could not be read."""

    def all(self, name: str) -> Iterator[Property]:
        """The properties of that name."""
        return (each for each in self.properties if each.name == name)

    def first(self, name: str) -> Property | None:
        """The first property of that name."""
        return next(self.all(name), None)

    def text(self, name: str) -> str | None:
        """The value of the first property of that name, without the spaces around it."""
        found = self.first(name)
        return found.value.strip() if found else None


#: A property to be written: its name, its value and its parameters.
Line = tuple[str, str, dict[str, str]]
TEXTS = frozenset(("UID", "SUMMARY"))


def unfolded(text: str) -> list[str]:
    """The content lines of a text, folded lines joined, empty ones left out."""
    from icalendar.parser import Contentlines

    return [str(line) for line in Contentlines.from_ical(text) if line]  # type: ignore[no-untyped-call]


def line_reader() -> Callable[[str], Property]:
    """What reads a content line into its property; it raises ValueError for a malformed one."""
    from icalendar.parser import Contentline
    from icalendar.prop import vText

    def read(line: str) -> Property:
        name, parameters, value = Contentline(line).parts()  # type: ignore[no-untyped-call]
        upper = name.upper()
        named = {each.upper(): _one(given) for each, given in parameters.items()}
        return Property(upper, named, str(vText.from_ical(value)) if upper in TEXTS else value)

    return read


def _one(given: object) -> str:
    """A parameter's value; of several, as they stand."""
    return given if isinstance(given, str) else ",".join(map(str, given)) if isinstance(given, list) else ""


@lru_cache(maxsize=1)
def windows_zones() -> dict[str, str]:
    """The IANA zone of each Windows zone name, in lower case."""
    from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

    return {name.lower(): zone for name, zone in WINDOWS_TO_OLSON.items()}


def written(name: str, properties: Iterable[Line]) -> Sequence[str]:
    """The content lines of a component's own properties, folded; texts must be escaped already."""
    from icalendar.parser import Contentline, Parameters

    lines = [f"BEGIN:{name}"]
    for key, value, parameters in properties:
        line = Contentline.from_parts(key, Parameters(parameters), _Raw(value), sorted=False)
        lines.append(line.to_ical().decode())
    return [*lines, f"END:{name}"]


def escaped(text: str) -> str:
    """A TEXT value as a content line holds it."""
    from icalendar.prop import vText

    return vText(text).to_ical().decode()


class _Raw(str):
    """A value that is written as it stands."""

    def to_ical(self) -> bytes:
        return self.encode()


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
    the components of all calendars, time zones aside."""
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
                expected = "BEGIN:VCALENDAR" if len(open_) == 1 else "an event, a to-do or a time zone"
                raise InvalidField("ics", f"has BEGIN:{name} where {expected} is expected")
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


def _shown(line: str) -> str:
    return ascii(shortened(line))
