"""`scheduler export`, `scheduler import`: schedules as lines, to keep or to move."""

import json
from collections.abc import Iterator
from typing import IO

import click

from scheduler_app.cli.remote import remote
from scheduler_app.cli.schedules import STATES
from scheduler_app.cli.show import say
from scheduler_app.client import Json, Scheduler

#: What one request of the API takes: so many schedules, and well below its 16 MiB.
MOST = 1_000
MOST_CHARACTERS = 2_000_000

Numbered = tuple[int, Json]


@click.command("export")
@click.option("--state", type=click.Choice(STATES))
@click.option("--name", help="Of exactly this name.")
@click.option("--tag", help="With this tag.")
@remote
def export_schedules(scheduler: Scheduler, state: str | None, name: str | None, tag: str | None) -> None:
    """Print all schedules, a JSON object a line.

    Secrets are masked; where the API has a SECRETS_KEY, each line holds them encrypted, for an API that has
    the same key. States are not told: what is paused will be active where it is imported.
    """
    for schedule in scheduler.export(state=state, name=name, tag=tag):
        say(json.dumps(schedule, ensure_ascii=False, separators=(",", ":")))


@click.command("import")
@click.argument("file", type=click.File(encoding="utf-8"), default="-")
@remote
def import_schedules(scheduler: Scheduler, file: IO[str]) -> None:
    """Create the schedules of FILE (or of standard input), a JSON object a line, as `export` prints them."""
    created = refused = 0
    for batch in _batches(file):
        for (number, _), result in zip(
            batch, scheduler.schedule_many([each for _, each in batch]), strict=True
        ):
            if result["status"] == 201:
                created += 1
            else:
                refused += 1
                say(f"line {number}: {result['problem']['detail']}", err=True)
    click.echo(f"created {created}, refused {refused}")
    if refused:
        raise click.exceptions.Exit(1)


def _batches(file: IO[str]) -> Iterator[list[Numbered]]:
    """As many lines as go into one request, each with its number."""
    batch: list[Numbered] = []
    size = 0
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        if len(batch) == MOST or size + len(line) > MOST_CHARACTERS:
            if batch:
                yield batch
            batch, size = [], 0
        try:
            batch.append((number, json.loads(line)))
        except ValueError as error:
            raise click.BadParameter(f"line {number} is not JSON: {error}", param_hint="FILE") from None
        size += len(line)
    if batch:
        yield batch
