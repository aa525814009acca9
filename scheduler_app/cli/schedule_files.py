"""The fields of one schedule, or of a task, from a file of JSON."""

import json
from typing import IO

import click

from scheduler_app.cli.task_fields import of_task
from scheduler_app.client import Json

MAX_CHARACTERS = 1_000_000


def read_fields(file: IO[str]) -> Json:
    """Raises click.BadParameter, which names the file."""
    text = file.read(MAX_CHARACTERS + 1)
    if len(text) > MAX_CHARACTERS:
        raise click.BadParameter(f"is larger than {MAX_CHARACTERS:,} characters", param_hint="--file")
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"is not JSON: {error}", param_hint="--file") from None
    if not isinstance(given, dict):
        raise click.BadParameter("must be a JSON object, in braces", param_hint="--file")
    return of_task(given) if isinstance(given.get("command"), str) else given
