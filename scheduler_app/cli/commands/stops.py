"""`scheduler kill-switch` and `blackout`: stop everything, a tag or a destination at once, or in windows that
recur.
"""

from collections.abc import Callable
from typing import Any

import click

from scheduler_app.cli.click_extensions import CommandGroup
from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.listing import MAX_HELD_COUNTED, count_text, held_count_text, kill_switch_name
from scheduler_app.cli.options import duration
from scheduler_app.cli.output import say, show_json, table
from scheduler_app.client import Json, Scheduler


@click.group("kill-switch", cls=CommandGroup)
def kill_switch() -> None:
    """Stop everything, a tag or a destination within a second."""


def _target_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--destination", help="What goes to this destination."),
        click.option("--tag", help="What has this tag."),
        click.option("--all", "all_", is_flag=True, help="Everything."),
    ):
        command = option(command)
    return command


@kill_switch.command("on")
@_target_options
@click.option("--note", help="The reason, shown to everybody who looks at it.")
@json_option
@with_client
def turn_on(
    scheduler: Scheduler,
    all_: bool,
    tag: str | None,
    destination: str | None,
    note: str | None,
    as_json: bool,
) -> None:
    """Turn one on. No schedule is changed; events that fall due are held until it is off."""
    found = scheduler.kill_switch_on(everything=all_, tag=tag, destination=destination, note=note)
    if as_json:
        show_json(found)
        return
    stopped = found["stopped"]
    schedules = count_text(stopped["schedules"], "active schedule", at_least=stopped["at_least"])
    text = f"{kill_switch_name(found)} is stopped: {schedules}"
    if "events" in stopped:  # an API of an older release does not count them
        text += f", {count_text(stopped['events'], 'waiting event', at_least=stopped['events_at_least'])}"
    say(text)
    if found.get("warning"):
        say(f"Warning: {found['warning']}.", err=True)


@kill_switch.command("off")
@_target_options
@json_option
@with_client
def turn_off(
    scheduler: Scheduler, all_: bool, tag: str | None, destination: str | None, as_json: bool
) -> None:
    """Turn one off. The events that it held are due again."""
    held = scheduler.kill_switch_off(everything=all_, tag=tag, destination=destination)
    if as_json:
        show_json({"held": held})
    else:
        say(f"off; {count_text(held, 'held event', at_least=held >= MAX_HELD_COUNTED)} due again")


@kill_switch.command("list")
@json_option
@with_client
def list_on(scheduler: Scheduler, as_json: bool) -> None:
    """Show those that are on, and how many events each holds."""
    found = scheduler.kill_switches()
    if as_json:
        show_json(found)
    elif not found:
        say("No kill switch is on.")
    else:
        rows = [
            [kill_switch_name(each), each.get("since", ""), held_count_text(each), each.get("note", "")]
            for each in found
        ]
        table(["stops", "since", "held", "note"], rows, unbroken=("since",))


@click.group(cls=CommandGroup)
def blackout() -> None:
    """Windows in which nothing is sent, such as a night or a freeze."""


@blackout.command("set")
@click.argument("name")
@click.option("--cron", help="When windows begin, as a cron expression.")
@click.option("--rrule", help="The same as an RFC 5545 recurrence.")
@click.option("--phrase", help="The same in words.")
@click.option("--at", "run_at", help="The beginning of a single window.")
@click.option("--timezone", help="The zone of these times; UTC by default.")
@click.option("--lasts", "duration_seconds", type=duration, required=True, help="90m, 8h, 7d.")
@click.option(
    "--policy",
    type=click.Choice(["postpone", "skip"]),
    help="What becomes of occurrences within; postpone by default.",
)
@click.option("--all", "all", is_flag=True, default=None, help="It is of everything.")
@click.option("--tag", help="It is of what has this tag.")
@click.option("--destination", help="It is of what goes to this destination.")
@click.option("--schedule", help="It is of this schedule.")
@click.option("--note", help="Why.")
@json_option
@with_client
def set_blackout(scheduler: Scheduler, name: str, as_json: bool, **fields: Any) -> None:
    """Set a blackout, or replace the one of that name. It holds within two seconds."""
    found = scheduler.put_blackout(name, {key: value for key, value in fields.items() if value is not None})
    if as_json:
        show_json(found)
    else:
        say(f"{found['result']}: {name}, {_window_text(found)}")


@blackout.command("list")
@json_option
@with_client
def list_blackouts(scheduler: Scheduler, as_json: bool) -> None:
    """Show the blackouts, and the present or next window of each."""
    found = scheduler.blackouts()
    if as_json:
        show_json(found)
    elif not found:
        say("There is no blackout.")
    else:
        rows = [
            [each["name"], _blackout_scope(each), each.get("policy", ""), _window_text(each)]
            for each in found
        ]
        table(["name", "of", "policy", "window"], rows)


@blackout.command("delete")
@click.argument("name")
@with_client
def delete_blackout(scheduler: Scheduler, name: str) -> None:
    """Delete a blackout."""
    scheduler.delete_blackout(name)
    say(f"deleted: {name}")


def _blackout_scope(found: Json) -> str:
    kinds = ("schedule", "tag", "destination")
    return next((f"{kind} {found[kind]}" for kind in kinds if kind in found), "everything")


def _window_text(found: Json) -> str:
    if "corrupt" in found:
        return str(found["corrupt"])
    window = found.get("window")
    if window is None:
        return "no window to come"
    return f"{'on' if found['is_on'] else 'next'} from {window['begins']} to {window['ends']}"
