"""`scheduler heartbeat`: jobs elsewhere that report by a rule."""

from collections.abc import Sequence
from typing import Any

import click

from scheduler_app.cli.click_extensions import CommandGroup
from scheduler_app.cli.client_options import with_client
from scheduler_app.cli.field_options import given_fields
from scheduler_app.cli.listing import shows_answer
from scheduler_app.cli.options import duration
from scheduler_app.cli.output import say, table
from scheduler_app.client import Json, Scheduler


@click.group(cls=CommandGroup)
def heartbeat() -> None:
    """Jobs elsewhere, such as a backup, that report by a rule; who does not is missed, and told of."""


def _show_set(found: Json) -> None:
    say(f"{found['result']}: {found['name']}, next ping due {found.get('due_at', 'never')}")
    _show_url(found)


def _show_url(found: Json) -> None:
    if "ping_url" in found:
        say(f"Call this URL, which is shown only now: {found['ping_url']}")


@heartbeat.command("set")
@click.argument("name")
@click.option("--cron", help="When pings are due, as a cron expression.")
@click.option("--rrule", help="The same as an RFC 5545 recurrence.")
@click.option("--phrase", help="The same in words, such as 'last business day of the month at 18:00'.")
@click.option("--every", "every_seconds", type=duration, help="So long after each ping: 90m, 1d.")
@click.option("--at", "run_at", help="A single time.")
@click.option("--timezone", help="The zone of these times; UTC by default.")
@click.option("--calendar", help="The calendar whose closed days it observes.")
@click.option("--on-holiday", help="skip, next or previous.")
@click.option("--grace", "grace_seconds", type=duration, help="How late a ping may come; 5m by default.")
@click.option("--tag", "tags", multiple=True, help="A word to find it by; may be given several times.")
@click.option("--note", help="What it is.")
@shows_answer(_show_set)
def set_heartbeat(scheduler: Scheduler, name: str, **fields: Any) -> Json:
    """Set when pings are due, or change it. A new one has a secret URL, which is shown once."""
    fields["tags"] = list(fields["tags"]) or None
    return scheduler.put_heartbeat(name, given_fields(fields))


def _show_heartbeats(found: Sequence[Json]) -> None:
    if not found:
        say("There is no heartbeat.")
        return
    rows = [
        [
            each["name"],
            "corrupt" if "corrupt" in each else each["state"],
            each.get("succeeded_at", ""),
            each.get("due_at", ""),
            each.get("missed_why") or each.get("corrupt", ""),
        ]
        for each in found
    ]
    table(["name", "state", "last success", "due", "why"], rows, unbroken=("last success", "due"))


@heartbeat.command("list")
@shows_answer(_show_heartbeats)
def list_heartbeats(scheduler: Scheduler) -> Sequence[Json]:
    """Show the heartbeats: their states, their last pings, and when the next are due."""
    return scheduler.heartbeats()


@heartbeat.command("ping")
@click.argument("name")
@click.option("--start", "kind", flag_value="start", help="A run begins.")
@click.option("--fail", "kind", flag_value="fail", help="A run has failed.")
@click.option("--exit-status", type=click.IntRange(0, 255), help="The exit status of a run.")
@click.option("--output", help="What the run has written.")
@shows_answer(lambda found: say(f"{found['state']}: {found['name']}"))
def ping_heartbeat(scheduler: Scheduler, name: str, **fields: Any) -> Json:
    """Report a run that has succeeded, or what the options say, with an API key."""
    return scheduler.ping_heartbeat(name, **given_fields(fields))


@heartbeat.command("rotate")
@click.argument("name")
@shows_answer(_show_url)
def rotate_token(scheduler: Scheduler, name: str) -> Json:
    """Give it another secret URL, which is shown once; the old one opens nothing from then on."""
    return scheduler.rotate_heartbeat_token(name)


@heartbeat.command("delete")
@click.argument("name")
@with_client
def delete_heartbeat(scheduler: Scheduler, name: str) -> None:
    """Delete a heartbeat."""
    scheduler.delete_heartbeat(name)
    say(f"deleted: {name}")
