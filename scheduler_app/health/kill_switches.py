"""Says which kill switches are on: whoever wonders why nothing is sent reads it here."""

from collections.abc import Sequence

from scheduler_app.domain.kill_switch import Target
from scheduler_app.health.check import Check, fine, note, unknown, wrong

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
