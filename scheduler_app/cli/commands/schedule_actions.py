"""`scheduler pause`, `resume`, `delete`, `trigger` (or `execute`) and `schedule`: what is done with schedules
that exist.
"""

from datetime import timedelta
from functools import partial
from typing import Any

import click

from scheduler_app.cli.bulk import change_existing, edit_schedules, for_each, ids_argument, schedule_edit
from scheduler_app.cli.client_options import with_client_and_json
from scheduler_app.cli.options import duration
from scheduler_app.cli.output import say, say_result
from scheduler_app.client import Json, Scheduler
from scheduler_app.clock import clock


@click.command("pause")
@schedule_edit
@click.option("--until", help="Resume at this instant, as in 2027-01-04T08:00:00Z.")
@click.option("--for", "seconds", type=duration, help="Resume after this time: 90s, 10m, 1h30m, 2d.")
@click.option("--note", help="The reason, shown with the schedule.")
def pause_schedules(
    scheduler: Scheduler, until: str | None, seconds: int | None, note: str | None, **chosen: Any
) -> None:
    """Stop sending callbacks, for one schedule or for all that match."""
    if until is not None and seconds is not None:
        raise click.UsageError("give --until or --for, not both")
    end = clock.now() + timedelta(seconds=seconds) if seconds is not None else until
    pause = partial(scheduler.pause, until=end, note=note)
    edit_schedules("pause", "paused", pause, partial(scheduler.pause_many, until=end, note=note), **chosen)


@click.command("resume")
@schedule_edit
def resume_schedules(scheduler: Scheduler, **chosen: Any) -> None:
    """Continue after a pause, or after the cause of an error was removed."""
    edit_schedules("resume", "resumed", scheduler.resume, scheduler.resume_many, **chosen)


@click.command("delete")
@schedule_edit
def delete_schedules(scheduler: Scheduler, **chosen: Any) -> None:
    """Delete schedules by their ids, or all that match.

    What was not sent yet is cancelled; the history stays.
    """

    def delete(schedule_id: str) -> Json:
        scheduler.cancel(schedule_id)
        return {"deleted": 1, "id": schedule_id}

    def show(done: Json) -> None:
        say(f"deleted {done['id']}")

    edit_schedules("delete", "deleted", delete, scheduler.delete_many, show=show, **chosen)


@click.command("trigger")
@ids_argument("SCHEDULE_ID")
@with_client_and_json
def trigger_schedule(scheduler: Scheduler, ids: tuple[str, ...], as_json: bool) -> None:
    """Call back, or run the command, at once; print the event's id. `execute` is the same."""

    def trigger(schedule_id: str) -> Json:
        return {"event_id": scheduler.trigger(schedule_id)}

    for_each(ids, trigger, as_json, lambda made: say_result(made["event_id"]))


@click.command("schedule")
@ids_argument("SCHEDULE_ID")
@click.option("--at", metavar="TIME", help="With an offset (2030-12-01T15:00:00Z), or local to --tz.")
@click.option("--in", "delay", type=duration, metavar="DURATION", help="Such as 90s, 10m, 1h30m, 2d.")
@click.option("--tz", "--timezone", "timezone", help="The time zone of --at without an offset.")
@with_client_and_json
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
    fields: Json = {"delay_seconds": delay} if at is None else {"run_at": at}
    if timezone is not None:
        fields["timezone"] = timezone
    for_each(ids, partial(change_existing, scheduler, fields=fields), as_json)
