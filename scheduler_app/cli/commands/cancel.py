"""`scheduler cancel`: events that are to come."""

import click

from scheduler_app.cli.bulk_edit import yes_option
from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.output import say
from scheduler_app.cli.progress import Progress
from scheduler_app.cli.several import for_each, ids_argument
from scheduler_app.client import Event, Scheduler


@click.command("cancel")
@ids_argument("EVENT_ID", required=False)
@click.option("--schedule", "schedule_id", help="All events of this schedule that wait now.")
@yes_option
@json_option
@with_client
def cancel_events(
    scheduler: Scheduler, ids: tuple[str, ...], schedule_id: str | None, yes: bool, as_json: bool
) -> None:
    """Cancel events that are neither running nor finished; their schedule stays active.

    To end a schedule use `delete`, to interrupt it `pause`.
    """
    if bool(ids) == (schedule_id is not None):
        raise click.UsageError("give ids of events, or --schedule")
    if schedule_id is None:
        for_each(ids, scheduler.cancel_event, as_json, lambda event: say(f"cancelled {event['_id']}"))
        return
    waiting = [each["_id"] for each in scheduler.pending(schedule_id) if each["state"] != "running"]
    if not as_json:
        say(f"{len(waiting)} {'event' if len(waiting) == 1 else 'events'} to cancel")
    if waiting and not yes:
        click.confirm(f"cancel {'it' if len(waiting) == 1 else 'them'}?", abort=True, err=True)
    with Progress("cancelled", len(waiting)) as progress:
        done = 0

        def cancel(event_id: str) -> Event:
            nonlocal done
            event = scheduler.cancel_event(event_id)
            done += 1
            progress(done)
            return event

        if waiting:
            for_each(waiting, cancel, as_json, lambda event: say(f"cancelled {event['_id']}"))
