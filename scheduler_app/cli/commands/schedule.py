"""`scheduler schedule`: run once, at a time to come."""

from typing import Any

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.durations import duration
from scheduler_app.cli.several import for_each, ids_argument
from scheduler_app.client import ScheduleFields, Scheduler


@click.command("schedule")
@ids_argument("SCHEDULE_ID")
@click.option("--at", metavar="TIME", help="With an offset (2030-12-01T15:00:00Z), or local to --tz.")
@click.option("--in", "delay", type=duration, metavar="DURATION", help="Such as 90s, 10m, 1h30m, 2d.")
@click.option("--tz", "--timezone", "timezone", help="The time zone of --at without an offset.")
@json_option
@with_client
def schedule_once(
    scheduler: Scheduler,
    ids: tuple[str, ...],
    at: str | None,
    delay: int | None,
    timezone: str | None,
    as_json: bool,
) -> None:
    """Run schedules that exist once, --at a time or --in a while; it displaces the trigger that they had."""
    if (at is None) == (delay is None):
        raise click.UsageError("give --at or --in")
    fields: ScheduleFields = {"delay_seconds": delay} if at is None else {"run_at": at}
    if timezone is not None:
        fields["timezone"] = timezone

    def schedule(schedule_id: str) -> Any:
        # Not a PUT alone, which creates what is not there.
        scheduler.get(schedule_id)
        return scheduler.update(schedule_id, **fields)

    for_each(ids, schedule, as_json)
