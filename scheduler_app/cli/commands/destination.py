"""`scheduler destination …`: named receivers and their limits."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from scheduler_app.cli.click_extensions import CommandGroup
from scheduler_app.cli.client_options import with_client, with_client_and_json
from scheduler_app.cli.field_options import field_options, given_fields, json_value
from scheduler_app.cli.listing import shows_answer, shows_list
from scheduler_app.cli.output import say, show_answer, table
from scheduler_app.client import Destination, DestinationFields, Scheduler, SchedulerError


@click.group("destination", cls=CommandGroup)
def destinations() -> None:
    """Named receivers: what is sent to them, how, and how much."""


def _show_destinations(found: Sequence[Destination]) -> None:
    rows = [[_name(each), each.url or each.corrupt or "", _limits(each)] for each in found]
    table(["name", "url", "limits"], rows, unbroken=("name",), key="name")


@destinations.command("list")
@shows_list(_show_destinations)
def list_destinations(scheduler: Scheduler) -> Iterable[Destination]:
    """List destinations, newest first."""
    return scheduler.destinations.list()


@destinations.command("get")
@click.argument("name")
@shows_answer()
def get_destination(scheduler: Scheduler, name: str) -> Destination:
    """Show a destination, and how it is at this moment."""
    return scheduler.destinations.get(name)


@destinations.command("set")
@click.argument("name")
@click.argument("receiver", required=False)
@click.option(
    "--auth",
    metavar="JSON",
    help='The credentials, such as {"type": "bearer", "token": "…"}; - reads them from standard input, where'
    " other users cannot see them.",
)
@click.option("--breaker", metavar="JSON", help='Such as {"failures": 5, "open_seconds": 30}.')
@field_options(DestinationFields, without=("url", "auth", "breaker", "paused"))
@shows_answer(beside="RECEIVER")
def set_destination(
    scheduler: Scheduler,
    name: str,
    receiver: str | None,
    auth: str | None,
    breaker: str | None,
    **options: Any,
) -> Destination:
    """Create a destination that calls the URL RECEIVER, or change what is given of it."""
    fields: Any = given_fields(options)
    if receiver is not None:
        fields["url"] = receiver
    if auth is not None:
        text = sys.stdin.read() if auth == "-" else auth
        fields["auth"] = json_value(text, "--auth")
    if breaker is not None:
        fields["breaker"] = json_value(breaker, "--breaker")
    try:
        return scheduler.destinations.update(name, **fields)
    except SchedulerError as error:
        if error.status != 404:
            raise
    return scheduler.destinations.put(name, **fields)


@destinations.command("delete")
@click.argument("name")
@with_client
def delete_destination(scheduler: Scheduler, name: str) -> None:
    """Delete a destination that nothing names any more."""
    scheduler.destinations.delete(name)
    say(f"deleted {name}")


@destinations.command("pause")
@click.argument("name")
@shows_answer()
def pause_destination(scheduler: Scheduler, name: str) -> Destination:
    """Send nothing more; what is due waits."""
    return scheduler.destinations.pause(name)


@destinations.command("resume")
@click.argument("name")
@shows_answer()
def resume_destination(scheduler: Scheduler, name: str) -> Destination:
    """Send again; what waited follows, oldest first."""
    return scheduler.destinations.resume(name)


@destinations.command("test")
@click.argument("name")
@with_client_and_json
def test_destination(scheduler: Scheduler, name: str, as_json: bool) -> None:
    """Call the destination once, now, outside of its limits; exit with 1 unless it answers well."""
    done = scheduler.destinations.test(name)
    show_answer(done, as_json)
    if done.outcome != "success":
        raise click.exceptions.Exit(1)


def _name(destination: Destination) -> str:
    color = "red" if destination.corrupt else "yellow" if destination.paused else None
    return f"[{color}]{destination.name}[/]" if color else destination.name


def _limits(destination: Destination) -> str:
    parts = {"/s": destination.rate_per_second, " at once": destination.concurrency}
    shown = [f"{value:g}{unit}" for unit, value in parts.items() if value]
    return ", ".join([*(["paused"] if destination.paused else []), *shown]) or "–"
