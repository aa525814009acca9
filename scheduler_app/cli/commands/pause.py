"""`scheduler pause`: schedules by their ids, or all that match a filter."""

from typing import Any

import click

from scheduler_app.cli.bulk_edit import edit_many, names_ids, schedule_edit
from scheduler_app.cli.several import for_each
from scheduler_app.client import Scheduler


@click.command("pause")
@schedule_edit
def pause_schedules(
    scheduler: Scheduler, ids: tuple[str, ...], as_json: bool, yes: bool, **filters: Any
) -> None:
    """Stop sending callbacks, for one schedule or for all that match."""
    if names_ids(ids, filters):
        for_each(ids, scheduler.pause, as_json)
    else:
        edit_many("pause", "paused", scheduler.pause_many, filters, as_json, yes)
