"""`scheduler history`: what a schedule did."""

from itertools import islice

import click

from scheduler_app.cli.client_options import as_json, limit, remote
from scheduler_app.cli.output import show_json, table
from scheduler_app.client import Json, Scheduler

_COLORS = {"completed": "green", "error": "red", "expired": "yellow", "skipped": "yellow"}


@click.command()
@click.argument("schedule_id")
@click.option("--include-cancelled", is_flag=True, help="Also what was withdrawn before it was due.")
@limit
@as_json
@remote
def history(
    scheduler: Scheduler, schedule_id: str, include_cancelled: bool, limit: int, as_json: bool
) -> None:
    """Show what a schedule did, newest first.

    That of a deleted one too.
    """
    events = list(islice(scheduler.history(schedule_id, include_cancelled=include_cancelled), limit))
    if as_json:
        show_json(events)
        return
    table(
        ["state", "run time", "attempts", "lag", "what came of it", "event"],
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
        whole=("state", "run time", "event"),
    )


def _lag(event: Json) -> str:
    attempts = event.get("attempts")
    return f"{attempts[0]['lag_ms']:.0f} ms" if attempts and attempts[0].get("lag_ms") is not None else "–"


def _outcome(event: Json) -> str:
    lines = event.get("status")
    return str(lines[-1].get("message", "")) if lines else ""
