"""`scheduler resume`: one schedule, or all that match a filter."""

from typing import Any

import click

from scheduler_app.cli.bulk_edit import edit_many, is_single, schedule_edit
from scheduler_app.cli.output import show_record
from scheduler_app.client import Scheduler


@click.command("resume")
@schedule_edit
def resume_schedules(
    scheduler: Scheduler, schedule_id: str | None, as_json: bool, yes: bool, **filters: Any
) -> None:
    """Continue after a pause, or after the cause of an error was removed."""
    if is_single(schedule_id, filters):
        show_record(scheduler.resume(schedule_id), as_json)
    else:
        edit_many("resume", "resumed", scheduler.resume_many, filters, as_json, yes)
