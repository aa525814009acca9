"""`scheduler backlog` and `backfill`: what is late, and giving it up; past occurrences, made up for."""

from typing import Any

import click

from scheduler_app.cli.click_extensions import CommandGroup
from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.output import say, show_json, table
from scheduler_app.client import Backfill, Json, Scheduler

_DEFAULT_POLICY = {"catch_up": "all", "run_overlap": "allow"}


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
    rows += [("policy", _policy_text(each), each) for each in found.get("policies", [])]
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


def _policy_text(owed: Json) -> str:
    """The fields that differ from the default."""
    said = [f"{name} {owed[name]}" for name, usual in _DEFAULT_POLICY.items() if owed[name] != usual]
    return ", ".join([*said, *(["expire_after_seconds"] if owed["expires"] else [])]) or "catch_up all"


@click.group(cls=CommandGroup)
def backfill() -> None:
    """Past occurrences of a schedule, made up for."""


@backfill.command("start")
@click.argument("schedule_id")
@click.option("--from", "after", required=True, help="The first instant that is looked at.")
@click.option("--to", "until", help="The last one.  [default: now]")
@click.option("--rate", type=float, help="Callbacks a second at most.  [default: 10]")
@click.option("--overlap", type=click.Choice(["allow", "queue"]), help="Beside each other, or one by one.")
@click.option("--all", "every_one", is_flag=True, help="Also those that were made already.")
@click.option("--dry-run", is_flag=True, help="Only tell what it would do.")
@json_option
@with_client
def start_backfill(
    scheduler: Scheduler,
    schedule_id: str,
    after: str,
    until: str | None,
    rate: float | None,
    overlap: str | None,
    every_one: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make events for the past occurrences of SCHEDULE_ID that are missing."""
    found = scheduler.backfill(
        schedule_id,
        after=after,
        until=until,
        rate_per_second=rate,
        overlap=overlap,
        only_missing=False if every_one else None,
        dry_run=dry_run,
    )
    _say_backfill(found, as_json)


@backfill.command("show")
@click.argument("schedule_id")
@json_option
@with_client
def show_backfill(scheduler: Scheduler, schedule_id: str, as_json: bool) -> None:
    """Show how far the newest backfill of SCHEDULE_ID has come."""
    _say_backfill(scheduler.get_backfill(schedule_id), as_json)


@backfill.command("cancel")
@click.argument("schedule_id")
@json_option
@with_client
def cancel_backfill(scheduler: Scheduler, schedule_id: str, as_json: bool) -> None:
    """Cancel the backfill of SCHEDULE_ID; what waits of it is withdrawn."""
    _say_backfill(scheduler.cancel_backfill(schedule_id), as_json)


def _say_backfill(found: Backfill, as_json: bool) -> None:
    if as_json:
        show_json(found)
        return
    say(f"{found.state}{', only tried' if found.dry_run else ''}: {found['from']} to {found['to']}")
    say(f"  {found.occurrences} occurrences, {found.left_out} of them left out, {found.made} made")
    say(f"  {found.waiting} wait, {found.completed} completed, {found.failed} failed")
    if found.seconds_left is not None:
        say(f"  the rest takes {found.seconds_left} s at {found.rate_per_second:g} a second")
    if found.reason:
        say(f"  {found.reason}")
