"""`scheduler backlog`: what is late, and giving it up."""

from typing import Any

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.command_group import CommandGroup
from scheduler_app.cli.output import say, show_json, table
from scheduler_app.client import Json, Scheduler

_USUAL = {"catch_up": "all", "run_overlap": "allow"}


@click.group(cls=CommandGroup)
def backlog() -> None:
    """What is late, and what becomes of it."""


@backlog.command("show")
@json_option
@with_client
def show_backlog(scheduler: Scheduler, as_json: bool) -> None:
    """Show what was due before now and waits, by schedule, receiver and policy."""
    found = scheduler.backlog()
    if as_json:
        show_json(found)
        return
    since = f", the oldest since {found['oldest']}" if found.oldest else ""
    say(f"{found.count} late{since}.")
    drain = found.seconds_to_drain
    left = "nothing ended in the last minute" if drain is None else f"{drain:g} s left at that speed"
    say(f"{found.finished_per_second:g} ended in a second of the last minute: {left}.")
    rows = [("schedule", each.get("schedule_id", "(messages)"), each) for each in found["schedules"]]
    rows += [("receiver", each.get("destination") or each["origin"], each) for each in found["receivers"]]
    rows += [("policy", _policy(each), each) for each in found.get("policies", [])]
    if rows:
        table(
            ["", "", "late", "since"],
            [[kind, name, each["count"], each["oldest"]] for kind, name, each in rows],
            unbroken=("since",),
        )


@backlog.command("expire")
@click.option("--schedule", "schedule_id", help="Events of this schedule.")
@click.option("--destination", help="Events for this destination.")
@click.option("--origin", help="Events for this origin.")
@click.option("--due-before", help="Events that were due before this instant.")
@click.option("--all", "all_of_them", is_flag=True, help="Everything that is late.")
@click.option("--dry-run", is_flag=True, help="Only count them.")
@json_option
@with_client
def expire_backlog(
    scheduler: Scheduler, all_of_them: bool, dry_run: bool, as_json: bool, **filters: Any
) -> None:
    """Give up the late events that match: they are expired, and never sent."""
    if not all_of_them and not any(filters.values()):
        raise click.UsageError("give a filter, or --all")
    count = scheduler.expire_backlog(all=all_of_them or None, dry_run=dry_run, **filters)
    if as_json:
        show_json({"expired": count, "dry_run": dry_run})
        return
    say(f"{count} late events {'would be ' if dry_run else ''}expired")


def _policy(owed: Json) -> str:
    """The fields that differ from the default."""
    said = [f"{name} {owed[name]}" for name, usual in _USUAL.items() if owed[name] != usual]
    return ", ".join([*said, *(["expire_after_seconds"] if owed["expires"] else [])]) or "catch_up all"
