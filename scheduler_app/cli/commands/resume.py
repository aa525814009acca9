"""`scheduler resume`: schedules by their ids, or all that match a filter."""

from typing import Any

import click

from scheduler_app.cli.bulk_edit import edit_many, names_ids, schedule_edit
from scheduler_app.cli.several import for_each
from scheduler_app.client import Scheduler


@click.command("resume")
@schedule_edit
def resume_schedules(
    scheduler: Scheduler, ids: tuple[str, ...], as_json: bool, yes: bool, **filters: Any
) -> None:
    """Continue after a pause, or after the cause of an error was removed."""
    if names_ids(ids, filters):
        for_each(ids, scheduler.resume, as_json)
    else:
        edit_many("resume", "resumed", scheduler.resume_many, filters, as_json, yes)
