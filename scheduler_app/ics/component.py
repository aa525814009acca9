"""The parts of an iCalendar file, as they were written."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


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
