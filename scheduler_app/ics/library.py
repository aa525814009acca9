"""The one door to the icalendar package: content lines in, components out, and the Windows names of zones.

Of the package only the lines are used, and not its tree of values: while it builds that tree it evaluates
each VTIMEZONE with dateutil, and a rule such as FREQ=SECONDLY there would never end.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from .component import Property

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
