"""`scheduler blackout`: windows that recur, in which nothing is sent."""

from typing import Any

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.command_group import CommandGroup
from scheduler_app.cli.durations import duration
from scheduler_app.cli.output import say, show_json, table
from scheduler_app.client import Json, Scheduler


@click.group(cls=CommandGroup)
def blackout() -> None:
    """Windows in which nothing is sent, such as a night or a freeze."""


@blackout.command("set")
@click.argument("name")
@click.option("--cron", help="When windows begin, as a cron expression.")
@click.option("--rrule", help="The same as an RFC 5545 recurrence.")
@click.option("--phrase", help="The same in words.")
@click.option("--at", "run_at", help="The beginning of a single window.")
@click.option("--timezone", help="The zone of these times; UTC by default.")
@click.option("--lasts", "duration_seconds", type=duration, required=True, help="90m, 8h, 7d.")
@click.option(
    "--policy",
    type=click.Choice(["postpone", "skip"]),
    help="What becomes of occurrences within; postpone by default.",
)
@click.option("--all", "all", is_flag=True, default=None, help="It is of everything.")
@click.option("--tag", help="It is of what has this tag.")
@click.option("--destination", help="It is of what goes to this destination.")
@click.option("--schedule", help="It is of this schedule.")
@click.option("--note", help="Why.")
@json_option
@with_client
def set_blackout(scheduler: Scheduler, name: str, as_json: bool, **fields: Any) -> None:
    """Set a blackout, or replace the one of that name. It holds within two seconds."""
    found = scheduler.put_blackout(name, {key: value for key, value in fields.items() if value is not None})
    if as_json:
        show_json(found)
    else:
        say(f"{found['result']}: {name}, {_next(found)}")


@blackout.command("list")
@json_option
@with_client
def list_blackouts(scheduler: Scheduler, as_json: bool) -> None:
    """Show the blackouts, and the present or next window of each."""
    found = scheduler.blackouts()
    if as_json:
        show_json(found)
    elif not found:
        say("There is no blackout.")
    else:
        rows = [[each["name"], _of(each), each.get("policy", ""), _next(each)] for each in found]
        table(["name", "of", "policy", "window"], rows)


@blackout.command("delete")
@click.argument("name")
@with_client
def delete_blackout(scheduler: Scheduler, name: str) -> None:
    """Delete a blackout."""
    scheduler.delete_blackout(name)
    say(f"deleted: {name}")


def _of(found: Json) -> str:
    kinds = ("schedule", "tag", "destination")
    return next((f"{kind} {found[kind]}" for kind in kinds if kind in found), "everything")


def _next(found: Json) -> str:
    if "corrupt" in found:
        return str(found["corrupt"])
    window = found.get("window")
    if window is None:
        return "no window to come"
    return f"{'on' if found['is_on'] else 'next'} from {window['begins']} to {window['ends']}"
