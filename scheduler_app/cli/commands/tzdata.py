"""`scheduler tzdata check`: which schedules the installed zone and holiday data would move."""

from collections.abc import Mapping
from typing import Any

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.command_group import CommandGroup
from scheduler_app.cli.output import say, show_json, table
from scheduler_app.client import Scheduler


@click.group(cls=CommandGroup)
def tzdata() -> None:
    """Zone and holiday data, and what a new release moves."""


@tzdata.command("check")
@json_option
@with_client
def check_tzdata(scheduler: Scheduler, as_json: bool) -> None:
    """Show which schedules the API's zone and holiday data would move, and by how much; nothing is changed.

    Beats with that data make it so. Start an API with the new release first, and ask it.
    """
    moved = list(scheduler.tzdata_check())
    if as_json:
        show_json(moved)
        return
    if not moved:
        say("No schedule would move.")
        return
    rows = [_row(schedule, move) for schedule in moved for move in schedule["moves"] or [{}]]
    table(
        ["schedule", "name", "before", "after", "by"],
        rows,
        unbroken=("schedule", "before", "after"),
        key="schedule",
    )


def _row(schedule: Mapping[str, Any], move: Mapping[str, Any]) -> list[object]:
    by = schedule.get("error", "") if "seconds" not in move else f"{move['seconds']:+} s"
    return [schedule["id"], schedule["name"], move.get("before", "–"), move.get("after", "–"), by]
