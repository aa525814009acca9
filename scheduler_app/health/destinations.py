"""Names the destinations to which nothing is sent: paused by a person, or their breakers are open."""

from collections.abc import Sequence

from scheduler_app.domain.destination import Destination
from scheduler_app.domain.flow import Limiter
from scheduler_app.health.check import Check, fine, note, unknown

#: How many a sentence names, and how many breakers are looked at.
NAMED, LOOKED_AT = 5, 100


def check_destinations(found: Sequence[Destination] | None, limiter: Limiter | None) -> Check:
    """`found` are those that are paused or have a breaker; None: MongoDB did not answer."""
    if found is None:
        return unknown("destinations", "MongoDB does not answer")
    paused = [each.id for each in found if each.paused]
    breakers = [each for each in found if each.breaker and not each.paused][:LOOKED_AT]
    opened: list[str] = []
    if limiter is not None:
        try:
            opened = [each.id for each in breakers if limiter.look(each).breaker != "closed"]
        except limiter.unavailable as error:
            return unknown("destinations", f"their limits cannot be read: {type(error).__name__}")
    if not paused and not opened:
        return fine("destinations", "none is paused, and no breaker is open")
    stopped = [f"{_named(paused)} paused"] if paused else []
    stopped += [f"the breaker open of {_named(opened)}"] if opened else []
    return note(
        "destinations",
        f"{'; '.join(stopped)}: their events wait",
        "see `scheduler destination list`; resume what is paused, and see why the receivers fail",
        paused=len(paused),
        open=len(opened),
    )


def _named(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return ", ".join(ids[:NAMED]) + more
