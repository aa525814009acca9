"""`scheduler delete`: schedules by their ids, or all that match a filter."""

from typing import Any

import click

from scheduler_app.cli.bulk_edit import edit_many, names_ids, schedule_edit
from scheduler_app.cli.output import say
from scheduler_app.cli.several import for_each
from scheduler_app.client import Json, Scheduler


@click.command("delete")
@schedule_edit
def delete_schedules(
    scheduler: Scheduler, ids: tuple[str, ...], as_json: bool, yes: bool, **filters: Any
) -> None:
    """Delete schedules by their ids, or all that match.

    What was not sent yet is cancelled; the history stays.
    """

    def delete(schedule_id: str) -> Json:
        scheduler.cancel(schedule_id)
        return {"deleted": 1, "id": schedule_id}

    if names_ids(ids, filters):
        for_each(ids, delete, as_json, lambda done: say(f"deleted {done['id']}"))
    else:
        edit_many("delete", "deleted", scheduler.delete_many, filters, as_json, yes)
