"""`scheduler audit`: who did what, when and why."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import click

from scheduler_app.cli.click_extensions import Command, CommandGroup
from scheduler_app.cli.client_options import with_client
from scheduler_app.cli.listing import shows_list, shows_verification
from scheduler_app.cli.output import say, say_result, table
from scheduler_app.client import Json, Scheduler


def _filters(command: Command) -> Command:
    for option in (
        click.option("--to", "until", help="Done before this instant."),
        click.option("--from", "after", help="Done at this instant or later."),
        click.option("--resource", help="Done to it: schedule/nightly, or schedule for all of the kind."),
        click.option("--what", help="What was done: created, edited, paused, deleted, …"),
        click.option("--who", help="Done by the key or the person of this name."),
    ):
        command = option(command)
    return command


@click.group(cls=CommandGroup)
def audit() -> None:
    """Who did what, when and why."""


def _show_lines(found: Sequence[Json]) -> None:
    if not found:
        say("Nothing like this was done.")
        return
    rows = [
        [
            each.get("at", ""),
            _who(each),
            each.get("what", ""),
            each.get("resource", ""),
            each.get("reason", ""),
        ]
        for each in found
    ]
    table(["at", "who", "what", "resource", "reason"], rows, unbroken=("at",))


def _who(line: Json) -> str:
    who = line.get("who") or {}
    return str(who.get("name") or who.get("kind") or "")


@audit.command("list")
@_filters
@shows_list(_show_lines)
def list_audit(scheduler: Scheduler, **given: Any) -> Iterator[Json]:
    """Show the newest lines; --json has the fields before and after."""
    return (dict(each) for each in scheduler.audit.lines(**given))


@audit.command("export")
@_filters
@with_client
def export_audit(scheduler: Scheduler, **given: Any) -> None:
    """Print all lines, newest first, one JSON object per line."""
    for each in scheduler.audit.lines(**given):
        say_result(json.dumps(dict(each), ensure_ascii=False, separators=(",", ":"), default=str))


@audit.command("verify")
@shows_verification
def verify_audit(scheduler: Scheduler) -> Json:
    """Read the whole audit; the exit status is 1 where a line is not as it was written."""
    return dict(scheduler.audit.verify())
