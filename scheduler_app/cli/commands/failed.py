"""`scheduler failed`: the dead letters, and why they failed."""

from collections.abc import Sequence
from typing import Any

import click

from scheduler_app.cli.client_options import json_option, limit_option, with_client
from scheduler_app.cli.event_filters import event_filters
from scheduler_app.cli.event_table import outcome
from scheduler_app.cli.output import table
from scheduler_app.cli.progress import counted
from scheduler_app.cli.shown_lists import show_list
from scheduler_app.cli.watching import watchable
from scheduler_app.client import Event, Scheduler


@click.command()
@event_filters
@limit_option
@json_option
@with_client
@watchable
def failed(scheduler: Scheduler, limit: int, as_json: bool, **filters: Any) -> None:
    """List the dead letters (events that ended in error), newest first; `redrive` sends them again."""
    show_list(counted(scheduler.events(state="error", **filters), "read"), limit, as_json, _show)


def _show(found: Sequence[Event]) -> None:
    table(
        ["event", "run time", "attempts", "why"],
        [[each["_id"], each["run_time"], each.get("attempt", ""), _why(each)] for each in found],
        unbroken=("event", "run time"),
        key="event",
    )


def _why(event: Event) -> str:
    attempts = event.get("attempts")
    last = attempts[-1] if attempts else {}
    code, error = last.get("status_code"), last.get("error")
    said = " ".join(str(each) for each in (code, error) if each is not None)
    return said or outcome(event)
