"""Which causes a notification or a silence is about: by tag, schedule and destination."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from scheduler_app.domain.cause import Cause
from scheduler_app.domain.http_action import destination_of_key
from scheduler_app.domain.ids import WholeId, name_of, whole_id

#: Values of one field, and the length of a pattern.
MAX_VALUES: Final = 50
MAX_PATTERN: Final = 100


@dataclass(frozen=True, slots=True)
class CauseMatch:
    """All that is given must match, each by one of its values. With nothing given every cause matches."""

    tags: tuple[str, ...] = ()
    """Patterns: `*` is any text, `?` one character."""
    schedules: tuple[str, ...] = ()
    """Their ids, as their tenant calls them."""
    destinations: tuple[str, ...] = ()

    def covers(self, cause: Cause) -> bool:
        """Whether it is about this cause of its own tenant. Of a cause the first hundred tags count."""
        return (
            _any(self.tags, lambda pattern: _has_tag(cause.tags.names, pattern))
            and _any(self.schedules, lambda name: _touches(cause, whole_id(cause.tenant, name)))
            and _any(self.destinations, lambda name: _receiver(cause) == name)
        )


EVERYTHING: Final = CauseMatch()


def _any(wanted: Iterable[str], holds: Callable[[str], bool]) -> bool:
    values = tuple(wanted)
    return not values or any(map(holds, values))


def _has_tag(tags: Iterable[str], pattern: str) -> bool:
    # A bracket is part of the name of a tag, and no set of characters.
    plain = pattern.replace("[", "[[]")
    return any(fnmatchcase(tag, plain) for tag in tags)


def _touches(cause: Cause, schedule_id: WholeId) -> bool:
    return cause.key.subject == schedule_id or cause.schedules.has(schedule_id)


def _receiver(cause: Cause) -> str | None:
    destination = destination_of_key(cause.key.subject)
    return None if destination is None else name_of(destination)
