"""Events in a table."""

from collections.abc import Sequence

from scheduler_app.cli.output import table
from scheduler_app.client import Event

_COLORS = {"completed": "green", "error": "red", "expired": "yellow", "skipped": "yellow", "running": "cyan"}


def event_table(events: Sequence[Event]) -> None:
    """Prints events, a line for each."""
    table(
        ["state", "run time", "attempts", "lag", "outcome", "event"],
        [
            [
                f"[{_COLORS.get(event['state'], 'default')}]{event['state']}[/]",
                event["run_time"],
                event.get("attempt", ""),
                lag(event),
                outcome(event),
                event["_id"],
            ]
            for event in events
        ],
        unbroken=("state", "run time", "event"),
        key="event",
    )


def lag(event: Event) -> str:
    """How late the first attempt was."""
    attempts = event.get("attempts")
    return f"{attempts[0]['lag_ms']:.0f} ms" if attempts and attempts[0].get("lag_ms") is not None else "–"


def outcome(event: Event) -> str:
    """The last line of its history."""
    lines = event.get("status")
    return str(lines[-1].get("message", "")) if lines else ""
