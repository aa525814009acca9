"""`scheduler export`: the schedules as lines of JSON, or everything as a file of `apply`, to keep or move."""

import json
import sys
from collections.abc import Iterable
from typing import Any

import click

from scheduler_app.cli.client_options import with_client
from scheduler_app.cli.kill_switch_name import kill_switch_name
from scheduler_app.cli.output import say, say_result
from scheduler_app.cli.progress import counted
from scheduler_app.cli.schedule_filters import schedule_filters
from scheduler_app.client import Json, Scheduler
from scheduler_app.domain.text import visible


@click.command("export")
@click.option(
    "--everything",
    is_flag=True,
    help="Print a file of YAML for `apply`: calendars, destinations and blackouts too.",
)
@schedule_filters
@with_client
def export_schedules(scheduler: Scheduler, everything: bool, **filters: Any) -> None:
    """Print all schedules, one JSON object per line.

    Secrets are masked. Where the API has a SECRETS_KEY, each line also holds them encrypted, for an API with
    the same key. For any other API, replace the masks by the real secrets before you import the file.

    Kill switches are not in it; those that are on are named on standard error.
    """
    stopped = [kill_switch_name(each) for each in scheduler.kill_switches()]
    rows = scheduler.export(**filters)
    # On a terminal the lines themselves say how far it is.
    counting = rows if sys.stdout.isatty() else counted(rows, "exported")
    if everything:
        is_whole = _print_file(scheduler, counting)
    else:
        is_whole = True
        for schedule in counting:
            say_result(json.dumps(schedule, ensure_ascii=False, separators=(",", ":")))
    for name in stopped:
        say(
            f"left out: the kill switch that stops {name}; what it stops is sent wherever this is imported",
            err=True,
        )
    if not is_whole:
        raise click.exceptions.Exit(1)


def _print_file(scheduler: Scheduler, schedules: Iterable[Json]) -> bool:
    """Returns whether everything could be read."""
    # Imported here: it imports YAML, for which the others need not wait.
    from scheduler_app.cli.apply.exporting import exported

    is_whole = True
    for text, reason in exported(scheduler, schedules):
        if reason is not None:
            is_whole = False
            say(f"left out: {reason}", err=True)
        else:
            click.echo(visible(text), nl=False)
    return is_whole
