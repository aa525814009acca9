"""`scheduler pause`: schedules by their ids, or all that match a filter."""

from datetime import timedelta
from functools import partial
from typing import Any

import click

from scheduler_app.cli.bulk_edit import edit_many, names_ids, schedule_edit
from scheduler_app.cli.durations import duration
from scheduler_app.cli.several import for_each
from scheduler_app.client import Scheduler
from scheduler_app.clock import clock


@click.command("pause")
@schedule_edit
@click.option("--until", help="Resume at this instant, as in 2027-01-04T08:00:00Z.")
@click.option("--for", "seconds", type=duration, help="Resume after this time: 90s, 10m, 1h30m, 2d.")
@click.option("--note", help="The reason, shown with the schedule.")
def pause_schedules(
    scheduler: Scheduler,
    ids: tuple[str, ...],
    as_json: bool,
    yes: bool,
    until: str | None,
    seconds: int | None,
    note: str | None,
    **filters: Any,
) -> None:
    """Stop sending callbacks, for one schedule or for all that match."""
    if until is not None and seconds is not None:
        raise click.UsageError("give --until or --for, not both")
    end = clock.now() + timedelta(seconds=seconds) if seconds is not None else until
    if names_ids(ids, filters):
        for_each(ids, partial(scheduler.pause, until=end, note=note), as_json)
    else:
        pause_many = partial(scheduler.pause_many, until=end, note=note)
        edit_many("pause", "paused", pause_many, filters, as_json, yes)
