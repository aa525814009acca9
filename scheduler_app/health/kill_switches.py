"""Says which kill switches are on: whoever wonders why nothing is sent reads it here."""

from collections.abc import Sequence

from scheduler_app.domain.kill_switch import Target
from scheduler_app.health.check import Check, fine, note, unknown

#: How many a sentence names.
NAMED = 5


def check_kill_switches(targets: Sequence[Target] | None) -> Check:
    """`targets` is None when MongoDB did not answer."""
    if targets is None:
        return unknown("kill switches", "MongoDB does not answer")
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
