"""`scheduler kill-switch`: stop everything, a tag or a destination at once, and release it."""

from collections.abc import Callable

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.command_group import CommandGroup
from scheduler_app.cli.kill_switch_name import MOST_HELD, counted, held_of, kill_switch_name
from scheduler_app.cli.output import say, show_json, table
from scheduler_app.client import Scheduler


@click.group("kill-switch", cls=CommandGroup)
def kill_switch() -> None:
    """Stop everything, a tag or a destination within a second."""


def _target(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--destination", help="What goes to this destination."),
        click.option("--tag", help="What has this tag."),
        click.option("--all", "all_", is_flag=True, help="Everything."),
    ):
        command = option(command)
    return command


@kill_switch.command("on")
@_target
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
    schedules = counted(stopped["schedules"], "active schedule", at_least=stopped["at_least"])
    text = f"{kill_switch_name(found)} is stopped: {schedules}"
    if "events" in stopped:  # an API of an older release does not count them
        text += f", {counted(stopped['events'], 'waiting event', at_least=stopped['events_at_least'])}"
    say(text)
    if found.get("warning"):
        say(f"Warning: {found['warning']}.", err=True)


@kill_switch.command("off")
@_target
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
        say(f"off; {counted(held, 'held event', at_least=held >= MOST_HELD)} due again")


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
            [kill_switch_name(each), each.get("since", ""), held_of(each), each.get("note", "")]
            for each in found
        ]
        table(["stops", "since", "held", "note"], rows, unbroken=("since",))
