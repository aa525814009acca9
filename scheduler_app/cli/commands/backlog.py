"""`scheduler backlog` and `backfill`: what is late, and giving it up; past occurrences, made up for."""

from typing import Any

import click

from scheduler_app.cli.click_extensions import CommandGroup
from scheduler_app.cli.listing import shows_answer
from scheduler_app.cli.output import say, table
from scheduler_app.client import Backfill, Backlog, Json, Scheduler

_DEFAULT_POLICY = {"catch_up": "all", "run_overlap": "allow"}


@click.group(cls=CommandGroup)
def backlog() -> None:
    """What is late, and what becomes of it."""


def _show_backlog(found: Backlog) -> None:
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


@backlog.command("show")
@shows_answer(_show_backlog)
def show_backlog(scheduler: Scheduler) -> Backlog:
    """Show what was due before now and waits, by schedule, receiver and policy."""
    return scheduler.backlog()


def _show_expired(done: Json) -> None:
    say(f"{done['expired']} late events {'would be ' if done['dry_run'] else ''}expired")


@backlog.command("expire")
@click.option("--schedule", "schedule_id", help="Events of this schedule.")
@click.option("--destination", help="Events for this destination.")
@click.option("--origin", help="Events for this origin.")
@click.option("--due-before", help="Events that were due before this instant.")
@click.option("--all", "all_of_them", is_flag=True, help="Everything that is late.")
@click.option("--dry-run", is_flag=True, help="Only count them.")
@shows_answer(_show_expired)
def expire_backlog(scheduler: Scheduler, all_of_them: bool, dry_run: bool, **filters: Any) -> Json:
    """Give up the late events that match: they are expired, and never sent."""
    if not all_of_them and not any(filters.values()):
        raise click.UsageError("give a filter, or --all")
    count = scheduler.expire_backlog(all=all_of_them or None, dry_run=dry_run, **filters)
    return {"expired": count, "dry_run": dry_run}


def _policy_text(owed: Json) -> str:
    """The fields that differ from the default."""
    said = [f"{name} {owed[name]}" for name, usual in _DEFAULT_POLICY.items() if owed[name] != usual]
    return ", ".join([*said, *(["expire_after_seconds"] if owed["expires"] else [])]) or "catch_up all"


@click.group(cls=CommandGroup)
def backfill() -> None:
    """Past occurrences of a schedule, made up for."""


def _show_backfill(found: Backfill) -> None:
    say(f"{found.state}{', only tried' if found.dry_run else ''}: {found['from']} to {found['to']}")
    say(f"  {found.occurrences} occurrences, {found.left_out} of them left out, {found.made} made")
    say(f"  {found.waiting} wait, {found.completed} completed, {found.failed} failed")
    if found.seconds_left is not None:
        say(f"  the rest takes {found.seconds_left} s at {found.rate_per_second:g} a second")
    if found.reason:
        say(f"  {found.reason}")


@backfill.command("start")
@click.argument("schedule_id")
@click.option("--from", "after", required=True, help="The first instant that is looked at.")
@click.option("--to", "until", help="The last one.  [default: now]")
@click.option("--rate", "rate_per_second", type=float, help="Callbacks a second at most.  [default: 10]")
@click.option("--overlap", type=click.Choice(["allow", "queue"]), help="Beside each other, or one by one.")
@click.option(
    "--all",
    "only_missing",
    is_flag=True,
    flag_value=False,
    default=None,
    help="Also those that were made already.",
)
@click.option("--dry-run", is_flag=True, help="Only tell what it would do.")
@shows_answer(_show_backfill)
def start_backfill(scheduler: Scheduler, schedule_id: str, **given: Any) -> Backfill:
    """Make events for the past occurrences of SCHEDULE_ID that are missing."""
    return scheduler.backfill(schedule_id, **given)


@backfill.command("show")
@click.argument("schedule_id")
@shows_answer(_show_backfill)
def show_backfill(scheduler: Scheduler, schedule_id: str) -> Backfill:
    """Show how far the newest backfill of SCHEDULE_ID has come."""
    return scheduler.get_backfill(schedule_id)


@backfill.command("cancel")
@click.argument("schedule_id")
@shows_answer(_show_backfill)
def cancel_backfill(scheduler: Scheduler, schedule_id: str) -> Backfill:
    """Cancel the backfill of SCHEDULE_ID; what waits of it is withdrawn."""
    return scheduler.cancel_backfill(schedule_id)
