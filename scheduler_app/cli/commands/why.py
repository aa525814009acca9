"""`scheduler why`: why a schedule fires at an instant, or does not."""

from collections.abc import Mapping
from typing import Any

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.output import say, show_json
from scheduler_app.client import Scheduler


@click.command()
@click.argument("schedule_id")
@click.argument("at")
@json_option
@with_client
def why(scheduler: Scheduler, schedule_id: str, at: str, as_json: bool) -> None:
    """Say why a schedule fires at the instant AT, past or future, or why it does not.

    AT is an instant such as 2030-01-05T12:00:00Z, or a local time in the schedule's zone, such as
    2030-01-05T13:00.
    """
    found = scheduler.why(schedule_id, at)
    if as_json:
        show_json(found)
        return
    say(f"{_time(found['at'])}: {'it fires' if found['fires'] else 'it does not fire'}.")
    said = [found.get("reason"), *found["further_reasons"], *found.get("causes", ())]
    for reason in filter(None, said):
        say(f"  {reason['code']}: {reason['message']}")
        if "rule" in reason:
            say(f"    of the rule {reason['rule']}")
    if "event" in found:
        _say_event(found["event"])
    for name in ("previous", "next"):
        say(f"{name.ljust(8)}  {_time(found[name]) if name in found else 'none'}")
    for warning in found["warnings"]:
        say(f"Note: {warning}", err=True)


def _say_event(event: Mapping[str, Any]) -> None:
    lines = event.get("status") or [{}]
    say(f"event     {event['_id']}: {event['state']}. {lines[-1].get('message', '')}".rstrip())


def _time(shown: Mapping[str, Any]) -> str:
    due = f", due {shown['due_at']} with its jitter" if "due_at" in shown else ""
    return f"{shown['run_time']} ({shown['local']}){due}"
