"""What a kill switch stops, in words."""

from typing import Final

from scheduler_app.client import KillSwitch

#: The API counts held events up to here.
MOST_HELD: Final = 10_000


def kill_switch_name(found: KillSwitch) -> str:
    return next((f"{name} {found[name]}" for name in ("tag", "destination") if name in found), "everything")


def counted(count: int, noun: str, *, at_least: bool) -> str:
    """`3 events`, `1 event`, or `10,000+ events` where not all of them were counted."""
    return f"{count:,}{'+' if at_least else ''} {noun}{'' if count == 1 and not at_least else 's'}"


def held_of(found: KillSwitch) -> str:
    """How many events one holds."""
    held = found.held or 0
    return f"{held:,}{'+' if held >= MOST_HELD else ''}"
