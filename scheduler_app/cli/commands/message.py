"""`scheduler message …`: one-off deliveries without a schedule."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import click

from scheduler_app.cli.click_extensions import CommandGroup, options
from scheduler_app.cli.field_options import field_options, given_fields, json_value
from scheduler_app.cli.listing import shows_answer, shows_list
from scheduler_app.cli.options import duration
from scheduler_app.cli.output import colored, table
from scheduler_app.client import Message, MessageFields, Scheduler

_COLORS = {"completed": "green", "error": "red", "retrying": "yellow"}


@click.group("message", cls=CommandGroup)
def messages() -> None:
    """One-off deliveries without a schedule."""


def _instant(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not an instant, as in 2030-01-05T12:00:00Z") from None
    if found.tzinfo is None:
        raise click.BadParameter(f"{text!r} needs an offset, as in 2030-01-05T12:00:00Z")
    return found


time_options = options(
    click.option("--at", type=_instant, metavar="INSTANT", help="With an offset."),
    click.option("--in", "delay", type=duration, help="A delay, such as 90s, 10m, 1h30m, 2d."),
)


@messages.command("schedule")
@click.argument("callback_url", required=False)
@click.option("--destination", help="The name of a destination, instead of CALLBACK_URL.")
@time_options
@click.option("--data", metavar="JSON", help="A body of JSON.")
@click.option("--body", help="A body of text.")
@field_options(MessageFields, without=("payload",))
@shows_answer()
def schedule_message(
    scheduler: Scheduler,
    callback_url: str | None,
    at: datetime | None,
    delay: int | None,
    data: str | None,
    **given: Any,
) -> Message:
    """Schedule a message to CALLBACK_URL, or to a --destination; at once unless --at or --in is given."""
    if (callback_url is None) == (given["destination"] is None):
        raise click.UsageError("give CALLBACK_URL or --destination; --url is the API's address")
    fields = given_fields(given)
    if data is not None:
        fields["payload"] = json_value(data, "--data")
    return scheduler.messages.schedule(callback_url, at=_timing(at, delay), **fields)


def _show_messages(found: Sequence[Message]) -> None:
    rows = [
        [
            colored(each.state, _COLORS),
            *(each.id, each.event_name or "", each["scheduled_at"]),
            each.get("destination") or each.get("callback_url", ""),
        ]
        for each in found
    ]
    table(
        ["state", "id", "event name", "scheduled at", "to"],
        rows,
        unbroken=("state", "id", "scheduled at"),
        key="id",
    )


@messages.command("list")
@click.option("--event-name", help="Their subject.")
@click.option("--destination", help="The destination that they name.")
@click.option("--after", type=_instant, metavar="INSTANT", help="Scheduled for then or later.")
@click.option("--before", type=_instant, metavar="INSTANT", help="Scheduled for before then.")
@click.option("--state", help="The state they are in, or several: ready_queue,retrying.")
@shows_list(_show_messages)
def list_messages(scheduler: Scheduler, **filters: Any) -> Iterable[Message]:
    """List messages, the soonest first."""
    return scheduler.messages.list(**filters)


@messages.command("get")
@click.argument("message_id")
@shows_answer()
def get_message(scheduler: Scheduler, message_id: str) -> Message:
    """Show a message with its history."""
    return scheduler.messages.get(message_id)


@messages.command("cancel")
@click.argument("message_id")
@shows_answer()
def cancel_message(scheduler: Scheduler, message_id: str) -> Message:
    """Cancel a message that is neither in flight nor delivered."""
    return scheduler.messages.cancel(message_id)


@messages.command("reschedule")
@click.argument("message_id")
@time_options
@shows_answer()
def reschedule_message(
    scheduler: Scheduler, message_id: str, at: datetime | None, delay: int | None
) -> Message:
    """Move a message that is neither in flight nor delivered to another time."""
    timing = _timing(at, delay)
    if timing is None:
        raise click.UsageError("give --at or --in")
    return scheduler.messages.reschedule(message_id, timing)


def _timing(at: datetime | None, delay: int | None) -> datetime | timedelta | None:
    if at is not None and delay is not None:
        raise click.UsageError("give --at or --in, not both")
    return at if delay is None else timedelta(seconds=delay)
