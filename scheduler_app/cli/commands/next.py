"""`scheduler next`: when schedules run next."""

from itertools import islice

import click

from scheduler_app.cli.client_options import json_option, limit_option, with_client
from scheduler_app.cli.output import say, show_json, table
from scheduler_app.cli.progress import counted
from scheduler_app.cli.watching import watchable
from scheduler_app.client import Json, Schedule, Scheduler

#: Schedules that are looked at for the soonest among them.
MOST_SCHEDULES = 10_000


@click.command("next")
@click.argument("schedule_id", required=False)
@click.option("--tag", help="Only schedules with this tag.")
@limit_option
@json_option
@with_client
@watchable
def next_runs(
    scheduler: Scheduler, schedule_id: str | None, tag: str | None, limit: int, as_json: bool
) -> None:
    """Show when a schedule runs next, or which schedules run next."""
    if schedule_id is None:
        _of_all(scheduler, tag, limit, as_json)
        return
    if tag is not None:
        raise click.UsageError("give an id or --tag, not both")
    schedule = scheduler.get(schedule_id)
    active = schedule["state"] == "active"
    found = (
        [dict(each) for each in scheduler.occurrences(schedule_id, limit=limit)["occurrences"]]
        if active
        else []
    )
    if as_json:
        show_json(found)
        return
    if not found:
        say(f"{schedule_id} is {schedule['state']} and has no run to come", err=True)
        return
    rows = [[one["run_time"], one["local"], _blackout(one)] for one in found]
    if not any(row[-1] for row in rows):
        rows = [row[:-1] for row in rows]
    table(["UTC", "local", ""][: len(rows[0])], rows, unbroken=("UTC", "local"), key="UTC")


def _blackout(occurrence: Json) -> str:
    """What a blackout makes of it."""
    found = occurrence.get("blackout")
    if found is None:
        return ""
    became = "skipped" if found["policy"] == "skip" else f"postponed to {found['until']}"
    return f"{became} by the blackout {found['name']}"


def _of_all(scheduler: Scheduler, tag: str | None, limit: int, as_json: bool) -> None:
    looked_at = list(islice(counted(scheduler.list(state="active", tag=tag), "read"), MOST_SCHEDULES + 1))
    if len(looked_at) > MOST_SCHEDULES:
        click.echo(f"Among the newest {MOST_SCHEDULES:,} schedules alone; --tag chooses others", err=True)
    due = sorted(
        (each for each in looked_at[:MOST_SCHEDULES] if each.get("next_run_at")),
        key=lambda each: (str(each["next_run_at"]), str(each["id"])),
    )[:limit]
    if as_json:
        show_json([_shown(each) for each in due])
        return
    table(
        ["next run", "id", "name"],
        [[each["next_run_at"], each["id"], each.get("name", "")] for each in due],
        unbroken=("next run", "id"),
        key="id",
    )


def _shown(schedule: Schedule) -> Json:
    names = ("id", "name", "next_run_at", "next_run")
    return {name: schedule[name] for name in names if name in schedule}
