"""A pause: why a schedule rests, and when it goes on by itself."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.not_given import NotGiven
from scheduler_app.domain.stored_years import check_storable

_PAUSED: Final = "paused"

#: A person or a program asked for it.
BY_REQUEST: Final = "by request"
#: So many events in a row ended in `error` as `pause_after_failures` says.
FAILURES: Final = "failures"
MAX_NOTE: Final = 500
#: How many failures in a row `pause_after_failures` may ask for.
MAX_FAILURES: Final = 100


@dataclass(frozen=True, slots=True)
class Pause:
    """What is kept of a pause while it lasts."""

    reason: str = BY_REQUEST
    """Why, in words that programs may compare."""
    note: str | None = None
    """What a person wrote beside it, or what led to it."""
    until: datetime | None = None
    """When it ends by itself; None: it lasts until the schedule is resumed."""


def pause_after_edit(
    old: Pause | None,
    before: str | None,
    state: str,
    *,
    note: str | NotGiven | None,
    until: datetime | NotGiven | None,
) -> Pause | None:
    """What is kept of a pause when an edit leads from the state `before` to `state`; `before` is None for a
    new schedule. Raises InvalidField for a note or an end of a schedule that is not paused."""
    if state != _PAUSED:
        for name, value in (("note", note), ("paused_until", until)):
            if not isinstance(value, NotGiven | None):
                raise InvalidField(name, f"is of a pause, and the schedule is {state}: give state paused")
        return None
    if isinstance(until, datetime):
        check_storable(until, "paused_until")
    if before == _PAUSED and isinstance(note, NotGiven) and isinstance(until, NotGiven):
        return old
    known = old or Pause()
    return replace(
        known,
        note=known.note if isinstance(note, NotGiven) else note,
        until=known.until if isinstance(until, NotGiven) else until,
    )
