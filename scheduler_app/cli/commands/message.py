"""`scheduler message …`: one-off deliveries without a schedule."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import click

from scheduler_app.cli.click_extensions import CommandGroup
from scheduler_app.cli.client_options import json_option, limit_option, with_client
from scheduler_app.cli.field_options import (
    field_options,
    given_fields,
    header_option,
    json_value,
    name_and_value,
)
from scheduler_app.cli.listing import record_command, show_list
from scheduler_app.cli.options import duration
from scheduler_app.cli.output import show_record, table
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


at_option = click.option("--at", type=_instant, metavar="INSTANT", help="With an offset.")
in_option = click.option("--in", "delay", type=duration, help="A delay, such as 90s, 10m, 1h30m, 2d.")


@messages.command("schedule")
@click.argument("callback_url", required=False)
@click.option("--destination", help="The name of a destination, instead of CALLBACK_URL.")
@at_option
@in_option
@click.option("--id", "message_id", help="An id of your own; the same message under it is delivered once.")
@click.option("--event-name", help="The subject.")
@click.option("--data", metavar="JSON", help="A body of JSON.")
@click.option("--body", help="A body of text.")
@click.option("--metadata", multiple=True, metavar="NAME: VALUE", help="May be repeated.")
@header_option
@field_options(MessageFields, without=("headers",))
@json_option
@with_client
def schedule_message(
    scheduler: Scheduler,
    callback_url: str | None,
    destination: str | None,
    at: datetime | None,
    delay: int | None,
    message_id: str | None,
    event_name: str | None,
    data: str | None,
    body: str | None,
    metadata: tuple[str, ...],
    header: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Schedule a message to CALLBACK_URL, or to a --destination; at once unless --at or --in is given."""
    if (callback_url is None) == (destination is None):
        raise click.UsageError("give CALLBACK_URL or --destination; --url is the API's address")
    fields = given_fields(options)
    if header:
        fields["headers"] = dict(map(name_and_value, header))
    made = scheduler.messages.schedule(
        callback_url,
        destination=destination,
        at=_timing(at, delay),
        id=message_id,
        event_name=event_name,
        payload=None if data is None else json_value(data, "--data"),
        body=body,
        metadata=dict(name_and_value(each, "--metadata") for each in metadata) or None,
        **fields,
    )
    show_record(made, as_json)


@messages.command("list")
@click.option("--event-name", help="Their subject.")
@click.option("--destination", help="The destination that they name.")
@click.option("--after", type=_instant, metavar="INSTANT", help="Scheduled for then or later.")
@click.option("--before", type=_instant, metavar="INSTANT", help="Scheduled for before then.")
@click.option("--state", help="The state they are in, or several: ready_queue,retrying.")
@limit_option
@json_option
@with_client
def list_messages(scheduler: Scheduler, limit: int, as_json: bool, **filters: Any) -> None:
    """List messages, the soonest first."""
    show_list(scheduler.messages.list(**filters), limit, as_json, _show)


def _show(found: Sequence[Message]) -> None:
    rows = [
        [
            f"[{_COLORS[each.state]}]{each.state}[/]" if each.state in _COLORS else each.state,
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


record_command(
    messages,
    "get",
    "message_id",
    lambda scheduler, message_id: scheduler.messages.get(message_id),
    help="Show a message with its history.",
)
record_command(
    messages,
    "cancel",
    "message_id",
    lambda scheduler, message_id: scheduler.messages.cancel(message_id),
    help="Cancel a message that is neither in flight nor delivered.",
)


@messages.command("reschedule")
@click.argument("message_id")
@at_option
@in_option
@json_option
@with_client
def reschedule_message(
    scheduler: Scheduler, message_id: str, at: datetime | None, delay: int | None, as_json: bool
) -> None:
    """Move a message that is neither in flight nor delivered to another time."""
    timing = _timing(at, delay)
    if timing is None:
        raise click.UsageError("give --at or --in")
    show_record(scheduler.messages.reschedule(message_id, timing), as_json)


def _timing(at: datetime | None, delay: int | None) -> datetime | timedelta | None:
    if at is not None and delay is not None:
        raise click.UsageError("give --at or --in, not both")
    return at if delay is None else timedelta(seconds=delay)
