"""Says why nothing is sent: kill switches are on, destinations are paused or their breakers open.

It names blackouts that cannot be read, too: what they should stop is sent.
"""

from collections.abc import Sequence

from scheduler_app.domain.destination import Destination
from scheduler_app.domain.flow_control import Limiter
from scheduler_app.domain.kill_switch import Target
from scheduler_app.health.check import Check, fine, first_few, note, unknown, wrong
from scheduler_app.store.stops import CorruptBlackout

#: How many breakers are looked at.
LOOKED_AT = 100


def check_kill_switches(targets: Sequence[Target], corrupt: Sequence[str] = ()) -> Check:
    """`corrupt` are ids that name nothing."""
    if corrupt:
        return wrong(
            "kill switches",
            f"{first_few(each[:200] for each in corrupt)} cannot be read, and stop nothing",
            "turn the switches on again by `scheduler kill-switch on`, and remove these documents from the"
            " collection kill_switches",
            on=len(targets),
        )
    if not targets:
        return fine("kill switches", "none is on")
    return note(
        "kill switches",
        f"on for {first_few(sorted(map(str, targets)))}: nothing of it is sent",
        "see `scheduler kill-switch list`; turn it off by `scheduler kill-switch off`",
        on=len(targets),
    )


def check_blackouts(corrupt: Sequence[CorruptBlackout]) -> Check:
    """`corrupt` are those that cannot be read."""
    if not corrupt:
        return fine("blackouts", "all can be read", corrupt=0)
    names = first_few((f"{each.name[:200]} ({each.reason})" for each in corrupt), "; ", ", and")
    return wrong(
        "blackouts",
        f"cannot be read, and stop nothing: {names}",
        "set each again by `scheduler blackout set`, or delete it by `scheduler blackout delete`",
        corrupt=len(corrupt),
    )


def check_destinations(found: Sequence[Destination], limiter: Limiter | None) -> Check:
    """`found` are those that are paused or have a breaker."""
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
    stopped = [f"{first_few(paused)} paused"] if paused else []
    stopped += [f"the breaker open of {first_few(opened)}"] if opened else []
    return note(
        "destinations",
        f"{'; '.join(stopped)}: their events wait",
        "see `scheduler destination list`; resume what is paused, and see why the receivers fail",
        paused=len(paused),
        open=len(opened),
    )
