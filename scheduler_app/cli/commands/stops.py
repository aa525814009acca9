"""`scheduler kill-switch` and `blackout`: stop everything, a tag or a destination at once, or in windows that
recur.
"""

from collections.abc import Sequence
from typing import Any

import click

from scheduler_app.cli.click_extensions import CommandGroup, options
from scheduler_app.cli.client_options import with_client
from scheduler_app.cli.field_options import given_fields
from scheduler_app.cli.listing import MAX_HELD_COUNTED, count_text, kill_switch_name, shows_answer
from scheduler_app.cli.options import duration
from scheduler_app.cli.output import say, table
from scheduler_app.client import Json, KillSwitch, Scheduler


@click.group("kill-switch", cls=CommandGroup)
def kill_switch() -> None:
    """Stop everything, a tag or a destination within a second."""


_target_options = options(
    click.option("--all", "everything", is_flag=True, help="Everything."),
    click.option("--tag", help="What has this tag."),
    click.option("--destination", help="What goes to this destination."),
)


def _show_turned_on(found: KillSwitch) -> None:
    stopped = found["stopped"]
    schedules = count_text(stopped["schedules"], "active schedule", at_least=stopped["at_least"])
    text = f"{kill_switch_name(found)} is stopped: {schedules}"
    if "events" in stopped:  # an API of an older release does not count them
        text += f", {count_text(stopped['events'], 'waiting event', at_least=stopped['events_at_least'])}"
    say(text)
    if found.get("warning"):
        say(f"Warning: {found['warning']}.", err=True)


@kill_switch.command("on")
@_target_options
@click.option("--note", help="The reason, shown to everybody who looks at it.")
@shows_answer(_show_turned_on)
def turn_on(scheduler: Scheduler, **given: Any) -> KillSwitch:
    """Turn one on. No schedule is changed; events that fall due are held until it is off."""
    return scheduler.kill_switch_on(**given)


def _show_turned_off(done: Json) -> None:
    held = count_text(done["held"], "held event", at_least=done["held"] >= MAX_HELD_COUNTED)
    say(f"off; {held} due again")


@kill_switch.command("off")
@_target_options
@shows_answer(_show_turned_off)
def turn_off(scheduler: Scheduler, **target: Any) -> Json:
    """Turn one off. The events that it held are due again."""
    return {"held": scheduler.kill_switch_off(**target)}


def _show_switches(found: Sequence[KillSwitch]) -> None:
    if not found:
        say("No kill switch is on.")
        return
    rows = []
    for each in found:
        held = f"{each.held or 0:,}{'+' if (each.held or 0) >= MAX_HELD_COUNTED else ''}"
        rows.append([kill_switch_name(each), each.get("since", ""), held, each.get("note", "")])
    table(["stops", "since", "held", "note"], rows, unbroken=("since",))


@kill_switch.command("list")
@shows_answer(_show_switches)
def list_on(scheduler: Scheduler) -> Sequence[KillSwitch]:
    """Show those that are on, and how many events each holds."""
    return scheduler.kill_switches()


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
@shows_answer(lambda found: say(f"{found['result']}: {found['name']}, {_window_text(found)}"))
def set_blackout(scheduler: Scheduler, name: str, **fields: Any) -> Json:
    """Set a blackout, or replace the one of that name. It holds within two seconds."""
    return scheduler.put_blackout(name, given_fields(fields))


def _show_blackouts(found: Sequence[Json]) -> None:
    if not found:
        say("There is no blackout.")
        return
    rows = [
        [each["name"], _blackout_scope(each), each.get("policy", ""), _window_text(each)] for each in found
    ]
    table(["name", "of", "policy", "window"], rows)


@blackout.command("list")
@shows_answer(_show_blackouts)
def list_blackouts(scheduler: Scheduler) -> Sequence[Json]:
    """Show the blackouts, and the present or next window of each."""
    return scheduler.blackouts()


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
