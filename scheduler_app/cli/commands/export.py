"""`scheduler export`: the schedules as lines of JSON, to keep or to move."""

import json
import sys
from typing import Any

import click

from scheduler_app.cli.client_options import with_client
from scheduler_app.cli.output import say_result
from scheduler_app.cli.progress import counted
from scheduler_app.cli.schedule_filters import schedule_filters
from scheduler_app.client import Scheduler


@click.command("export")
@schedule_filters
@with_client
def export_schedules(scheduler: Scheduler, **filters: Any) -> None:
    """Print all schedules, one JSON object per line.

    Secrets are masked. Where the API has a SECRETS_KEY, each line also holds them encrypted, for an API with
    the same key. For any other API, replace the masks by the real secrets before you import the file.
    """
    rows = scheduler.export(**filters)
    # On a terminal the lines themselves say how far it is.
    for schedule in rows if sys.stdout.isatty() else counted(rows, "exported"):
        say_result(json.dumps(schedule, ensure_ascii=False, separators=(",", ":")))
