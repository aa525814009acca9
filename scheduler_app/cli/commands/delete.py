"""`scheduler delete`: one schedule, or all that match a filter."""

from typing import Any

import click

from scheduler_app.cli.bulk_edit import edit_many, is_single, schedule_edit
from scheduler_app.cli.output import show_json
from scheduler_app.client import Scheduler


@click.command("delete")
@schedule_edit
def delete_schedules(
    scheduler: Scheduler, schedule_id: str | None, as_json: bool, yes: bool, **filters: Any
) -> None:
    """Delete one schedule, or all that match.

    Callbacks that were not sent yet are cancelled; the history stays.
    """
    if is_single(schedule_id, filters):
        scheduler.cancel(schedule_id)
        if as_json:
            show_json({"deleted": 1})
        else:
            click.echo(f"deleted {schedule_id}")
    else:
        edit_many("delete", "deleted", scheduler.delete_many, filters, as_json, yes)
