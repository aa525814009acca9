"""`scheduler pause`: one schedule, or all that match a filter."""

from typing import Any

import click

from scheduler_app.cli.bulk_edit import edit_many, is_single, schedule_edit
from scheduler_app.cli.output import show_record
from scheduler_app.client import Scheduler


@click.command("pause")
@schedule_edit
def pause_schedules(
    scheduler: Scheduler, schedule_id: str | None, as_json: bool, yes: bool, **filters: Any
) -> None:
    """Stop sending callbacks, for one schedule or for all that match."""
    if is_single(schedule_id, filters):
        show_record(scheduler.pause(schedule_id), as_json)
    else:
        edit_many("pause", "paused", scheduler.pause_many, filters, as_json, yes)
