"""`scheduler notification` and `silence`: who is told of failures, and what is not told for a while."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import click

from scheduler_app.cli.click_extensions import CommandGroup, Decorator, options
from scheduler_app.cli.client_options import with_client
from scheduler_app.cli.field_options import given_fields
from scheduler_app.cli.listing import shows_answer
from scheduler_app.cli.options import duration
from scheduler_app.cli.output import say, say_result, table
from scheduler_app.client import Json, Scheduler
from scheduler_app.clock import clock


def _match_options(verb: str) -> Decorator:
    return options(
        click.option("--tag", "tags", multiple=True, help=f"{verb} what has such a tag; * is any text."),
        click.option("--schedule", "schedules", multiple=True, help=f"{verb} what touches this schedule."),
        click.option("--destination", "destinations", multiple=True, help=f"{verb} this destination."),
    )


def _with_match(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of the API: those that choose failures are one object there."""
    given = given_fields(fields)
    match = {name: given.pop(name) for name in ("tags", "schedules", "destinations") if name in given}
    return given | ({"match": match} if match else {})


def _match_text(found: Mapping[str, Any]) -> str:
    match = found.get("match") or {}
    words = [f"{kind.removesuffix('s')} {value}" for kind, values in match.items() for value in values]
    return ", ".join(words) or "everything"


@click.group(cls=CommandGroup)
def notification() -> None:
    """Who is told of failures, and that they are over."""


def _show_set(found: Mapping[str, Any]) -> None:
    say(f"{found['result']}: {found['name']}, {_match_text(found)}")
    if "signing_secret" in found:
        say_result(f"Its webhooks are signed with {found['signing_secret']}, which is not shown again.")


@notification.command("set")
@click.argument("name")
@click.option("--webhook", "webhooks", multiple=True, help="A URL to call.")
@click.option("--email", "mailboxes", multiple=True, help="A mail address.")
@click.option("--apprise", "services", multiple=True, help="A service by its Apprise URL, such as slack://…")
@click.option("--on", multiple=True, help="What is told, such as failing or recovered.")
@_match_options("Only")
@click.option("--after", "after_seconds", type=duration, help="What lasts for less is not told: 60s, 5m.")
@click.option("--remind", "remind_seconds", type=duration, help="How often it is told again: 4h, 1d.")
@click.option("--hours", metavar="PHRASE", help='It rings only from these times on: "every weekday at 8:00".')
@click.option("--hours-for", type=duration, help="For how long after each of them: 10h.")
@click.option("--hours-tz", metavar="ZONE", help="The zone of these times.  [default: UTC]")
@click.option("--hours-calendar", metavar="NAME", help="The closed days on which it does not ring.")
@shows_answer(_show_set)
def set_notification(
    scheduler: Scheduler,
    name: str,
    webhooks: Sequence[str],
    mailboxes: Sequence[str],
    services: Sequence[str],
    hours: str | None,
    hours_for: int | None,
    hours_tz: str | None,
    hours_calendar: str | None,
    **fields: Any,
) -> Json:
    """Set a notification, or replace the one of that name.

    At least one of --webhook, --email and --apprise says who is told.
    """
    to = [{"type": "webhook", "url": url} for url in webhooks]
    to += [{"type": "email", "address": address} for address in mailboxes]
    to += [{"type": "apprise", "url": url} for url in services]
    if not to:
        raise click.UsageError("say who is told: give --webhook, --email or --apprise")
    if (hours is None) != (hours_for is None) or (hours is None and (hours_tz or hours_calendar)):
        raise click.UsageError("give --hours and --hours-for together: when it may ring, and for how long")
    rings = {"phrase": hours, "duration_seconds": hours_for, "timezone": hours_tz, "calendar": hours_calendar}
    when = {} if hours is None else {"hours": given_fields(rings)}
    return scheduler.put_notification(name, _with_match(fields) | when | {"to": to})


def _show_notifications(found: Sequence[Mapping[str, Any]]) -> None:
    if not found:
        say("There is no notification: nobody is told of failures.")
        return
    rows = [
        [
            each["name"],
            each.get("corrupt") or _match_text(each),
            f"{each['after_seconds']:g} s" if "after_seconds" in each else "",
            ", ".join(channel.get("address") or channel.get("url", "") for channel in each.get("to", ())),
        ]
        for each in found
    ]
    table(["name", "of", "after", "to"], rows)


@notification.command("list")
@shows_answer(_show_notifications)
def list_notifications(scheduler: Scheduler) -> Sequence[Json]:
    """Show the notifications."""
    return scheduler.notifications()


@notification.command("test")
@click.argument("name")
@with_client
def test_notification(scheduler: Scheduler, name: str) -> None:
    """Send a message to each of its channels."""
    for each in scheduler.test_notification(name):
        say(f"made the message {each}; `scheduler message get {each}` shows how it ended")


@notification.command("delete")
@click.argument("name")
@with_client
def delete_notification(scheduler: Scheduler, name: str) -> None:
    """Delete a notification."""
    scheduler.delete_notification(name)
    say(f"deleted: {name}")


@click.group(cls=CommandGroup)
def silence() -> None:
    """What is not told for a while."""


@silence.command("set")
@click.argument("name")
@click.option("--for", "lasts", type=duration, required=True, help="How long from now: 90m, 2h.")
@click.option("--reason", required=True, help="Why; shown wherever failures are.")
@_match_options("Silence")
@shows_answer(lambda found: say(f"{found['result']}: {found['name']}, until {found['until']}"))
def set_silence(scheduler: Scheduler, name: str, lasts: int, **fields: Any) -> Json:
    """Set a silence, or replace the one of that name. What still fails at its end is told then."""
    until = clock.now() + timedelta(seconds=lasts)
    return scheduler.put_silence(name, _with_match(fields) | {"until": until.isoformat(timespec="seconds")})


def _show_silences(found: Sequence[Mapping[str, Any]]) -> None:
    if not found:
        say("There is no silence.")
        return
    rows = [[each["name"], _match_text(each), each["until"], each["reason"]] for each in found]
    table(["name", "of", "until", "reason"], rows)


@silence.command("list")
@shows_answer(_show_silences)
def list_silences(scheduler: Scheduler) -> Sequence[Json]:
    """Show the silences; one that is over is shown for a week."""
    return scheduler.silences()


@silence.command("delete")
@click.argument("name")
@with_client
def delete_silence(scheduler: Scheduler, name: str) -> None:
    """Delete a silence. What still fails is told from now on."""
    scheduler.delete_silence(name)
    say(f"deleted: {name}")
