"""`scheduler history`: the events of a schedule and their outcomes."""

from itertools import islice

import click

from scheduler_app.cli.client_options import json_option, limit_option, with_client
from scheduler_app.cli.output import show_json, table
from scheduler_app.client import Event, Scheduler

_COLORS = {"completed": "green", "error": "red", "expired": "yellow", "skipped": "yellow"}


@click.command()
@click.argument("schedule_id")
@click.option("--include-cancelled", is_flag=True, help="Show cancelled events, too.")
@limit_option
@json_option
@with_client
def history(
    scheduler: Scheduler, schedule_id: str, include_cancelled: bool, limit: int, as_json: bool
) -> None:
    """Show a schedule's events, newest first, also after it was deleted."""
    events = list(islice(scheduler.history(schedule_id, include_cancelled=include_cancelled), limit))
    if as_json:
        show_json(events)
        return
    table(
        ["state", "run time", "attempts", "lag", "outcome", "event"],
        [
            [
                f"[{_COLORS.get(event['state'], 'default')}]{event['state']}[/]",
                event["run_time"],
                event.get("attempt", ""),
                _lag(event),
                _outcome(event),
                event["_id"],
            ]
            for event in events
        ],
        unbroken=("state", "run time", "event"),
    )


def _lag(event: Event) -> str:
    attempts = event.get("attempts")
    return f"{attempts[0]['lag_ms']:.0f} ms" if attempts and attempts[0].get("lag_ms") is not None else "–"


def _outcome(event: Event) -> str:
    lines = event.get("status")
    return str(lines[-1].get("message", "")) if lines else ""
