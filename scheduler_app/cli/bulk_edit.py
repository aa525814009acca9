"""`scheduler pause`, `resume`, `delete`: one schedule, or all that match a filter."""

from collections.abc import Callable
from typing import Any, TypeGuard

import click

from scheduler_app.cli.client_options import as_json, remote
from scheduler_app.cli.commands.list import LAST_OUTCOMES, STATES, show_schedule
from scheduler_app.cli.output import say, show_json
from scheduler_app.client import Json, Scheduler

Command = Callable[..., None]


def _chosen(command: Command) -> Command:
    """Gives a command `schedule_id`, and the options that choose many instead."""
    for decorate in (
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--all", "all_", is_flag=True, help="Every schedule there is."),
        click.option("--last-outcome", type=click.Choice(LAST_OUTCOMES), help="All whose last run ended so."),
        click.option("--tag", help="All with this tag."),
        click.option("--name", help="All of exactly this name."),
        click.option("--state", type=click.Choice(STATES), help="All in this state."),
        click.argument("schedule_id", required=False),
    ):
        command = decorate(command)
    return command


@click.command("pause")
@_chosen
@as_json
@remote
def pause_schedule(
    scheduler: Scheduler, schedule_id: str | None, as_json: bool, yes: bool, **which: Any
) -> None:
    """Send nothing from now on, of one schedule or of all that match."""
    if _is_one(schedule_id, which):
        show_schedule(scheduler.pause(schedule_id), as_json)
    else:
        edit_many("pause", "paused", scheduler.pause_many, which, as_json, yes)


@click.command("resume")
@_chosen
@as_json
@remote
def resume_schedule(
    scheduler: Scheduler, schedule_id: str | None, as_json: bool, yes: bool, **which: Any
) -> None:
    """Go on after a pause, or after an error that was mended."""
    if _is_one(schedule_id, which):
        show_schedule(scheduler.resume(schedule_id), as_json)
    else:
        edit_many("resume", "resumed", scheduler.resume_many, which, as_json, yes)


@click.command("delete")
@_chosen
@as_json
@remote
def delete_schedule(
    scheduler: Scheduler, schedule_id: str | None, as_json: bool, yes: bool, **which: Any
) -> None:
    """Delete one schedule, or all that match.

    What was not sent is withdrawn, the history stays.
    """
    if _is_one(schedule_id, which):
        scheduler.cancel(schedule_id)
        if as_json:
            show_json({"deleted": 1})
        else:
            click.echo(f"deleted {schedule_id}")
    else:
        edit_many("delete", "deleted", scheduler.delete_many, which, as_json, yes)


def _is_one(schedule_id: str | None, which: Json) -> TypeGuard[str]:
    many = any(which.values())
    if schedule_id is not None and many:
        raise click.UsageError("give an id, or what chooses many, not both")
    if schedule_id is None and not many:
        raise click.UsageError("give an id, or --tag, --name, --state, --last-outcome, or --all")
    return schedule_id is not None


def edit_many(
    verb: str,
    done: str,
    edit: Callable[..., Json],
    which: Json,
    as_json: bool,
    yes: bool,
    noun: tuple[str, str] = ("schedule", "schedules"),
) -> None:
    """Counts first, and asks; `done` is the count's name, `noun` what is counted, one and several."""
    which["all"] = which.pop("all_") or None
    count = edit(**which, dry_run=True)[done]
    if not as_json:
        click.echo(f"{count} {noun[count != 1]} to {verb}")
    if not count:
        if as_json:
            show_json({done: 0, "skipped": []})
        return
    if not yes:
        click.confirm(f"{verb} {'it' if count == 1 else 'them'}?", abort=True, err=True)
    made = edit(**which)
    if as_json:
        show_json(made)
        return
    click.echo(f"{done} {made[done]}")
    for each in made["skipped"]:
        say(f"  left as it is: {each['id']}: {each['reason']}", err=True)
    if made.get("skipped_omitted"):
        click.echo(f"  and {made['skipped_omitted']} more", err=True)
