"""Says why nothing is sent: kill switches are on, destinations are paused or their breakers open.

It names blackouts that cannot be read, too: what they should stop is sent.
"""

from collections.abc import Sequence

from scheduler_app.domain.destination import Destination
from scheduler_app.domain.flow_control import Limiter
from scheduler_app.domain.kill_switch import Target
from scheduler_app.health.check import Check, fine, note, unknown, wrong
from scheduler_app.store.blackouts import CorruptBlackout

#: How many a sentence names.
NAMED = 5


def check_kill_switches(targets: Sequence[Target] | None, corrupt: Sequence[str] = ()) -> Check:
    """`targets` is None when MongoDB did not answer; `corrupt` are ids that name nothing."""
    if targets is None:
        return unknown("kill switches", "MongoDB does not answer")
    if corrupt:
        names = ", ".join(each[:200] for each in corrupt[:NAMED])
        more = f" and {len(corrupt) - NAMED} more" if len(corrupt) > NAMED else ""
        return wrong(
            "kill switches",
            f"{names}{more} cannot be read, and stop nothing",
            "turn the switches on again by `scheduler kill-switch on`, and remove these documents from the"
            " collection kill_switches",
            on=len(targets),
        )
    if not targets:
        return fine("kill switches", "none is on")
    names = ", ".join(sorted(map(str, targets))[:NAMED])
    more = f" and {len(targets) - NAMED} more" if len(targets) > NAMED else ""
    return note(
        "kill switches",
        f"on for {names}{more}: nothing of it is sent",
        "see `scheduler kill-switch list`; turn it off by `scheduler kill-switch off`",
        on=len(targets),
    )


#: How many a sentence names.


def check_blackouts(corrupt: Sequence[CorruptBlackout] | None) -> Check:
    """`corrupt` is None when MongoDB did not answer."""
    if corrupt is None:
        return unknown("blackouts", "MongoDB does not answer")
    if not corrupt:
        return fine("blackouts", "all can be read", corrupt=0)
    names = "; ".join(f"{each.name[:200]} ({each.reason})" for each in corrupt[:NAMED])
    more = f", and {len(corrupt) - NAMED} more" if len(corrupt) > NAMED else ""
    return wrong(
        "blackouts",
        f"cannot be read, and stop nothing: {names}{more}",
        "set each again by `scheduler blackout set`, or delete it by `scheduler blackout delete`",
        corrupt=len(corrupt),
    )


#: How many a sentence names, and how many breakers are looked at.
DESTINATIONS_NAMED, LOOKED_AT = 5, 100


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
    stopped = [f"{_first_ids(paused)} paused"] if paused else []
    stopped += [f"the breaker open of {_first_ids(opened)}"] if opened else []
    return note(
        "destinations",
        f"{'; '.join(stopped)}: their events wait",
        "see `scheduler destination list`; resume what is paused, and see why the receivers fail",
        paused=len(paused),
        open=len(opened),
    )


def _first_ids(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - DESTINATIONS_NAMED} more" if len(ids) > DESTINATIONS_NAMED else ""
    return ", ".join(ids[:DESTINATIONS_NAMED]) + more
