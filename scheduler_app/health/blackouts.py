"""Names blackouts that cannot be read: what they should stop is sent."""

from collections.abc import Sequence

from scheduler_app.health.check import Check, fine, unknown, wrong
from scheduler_app.store.blackouts import CorruptBlackout

#: How many a sentence names.
NAMED = 5


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
