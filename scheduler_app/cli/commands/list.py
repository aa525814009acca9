"""`scheduler list`: the schedules, in a table."""

import shlex
from collections.abc import Sequence
from typing import Any

import click

from scheduler_app.cli.client_options import json_option, limit_option, with_client
from scheduler_app.cli.output import table
from scheduler_app.cli.progress import counted
from scheduler_app.cli.schedule_filters import filters_of_lists
from scheduler_app.cli.shown_lists import show_list
from scheduler_app.cli.watching import watchable
from scheduler_app.client import Schedule, Scheduler

_COLORS = {"active": "green", "paused": "yellow", "error": "red"}


@click.command("list")
@filters_of_lists
@click.option("--name", "name_contains", help="Only schedules whose name contains this, in any case.")
@limit_option
@json_option
@with_client
@watchable
def list_schedules(scheduler: Scheduler, limit: int, as_json: bool, **filters: Any) -> None:
    """List schedules, newest first."""
    show_list(counted(scheduler.list(**filters), "read"), limit, as_json, _show)


def _show(found: Sequence[Schedule]) -> None:
    table(
        ["state", "last run", "id", "name", "when", "next run", "calls"],
        [
            [
                _colored(one["state"]),
                (one.get("last_run") or {}).get("outcome", "–"),
                one["id"],
                one.get("name", ""),
                _when(one),
                _next(one),
                _calls(one),
            ]
            for one in found
        ],
        unbroken=("state", "last run", "id", "next run"),
        key="id",
    )


def _colored(state: str) -> str:
    color = _COLORS.get(state)
    return f"[{color}]{state}[/]" if color else state


def _when(schedule: Schedule) -> str:
    return str(schedule.get("description") or schedule.get("rrule") or schedule.get("run_at") or "")


def _next(schedule: Schedule) -> str:
    return str(schedule.get("next_run_at") or schedule.get("reason") or "–")


def _calls(schedule: Schedule) -> str:
    if action := schedule.get("action"):
        words = action.get("command", ())
        return shlex.join(words) if not action.get("shell") else words[0]
    receiver = schedule.get("callback_url") or schedule.get("destination", "")
    return f"{schedule.get('method', '')} {receiver}".strip()
