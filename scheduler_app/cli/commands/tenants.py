"""`scheduler tenant`: everything of a tenant, exported or deleted."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO

import click

from scheduler_app.cli.click_extensions import CannotStart, CommandGroup
from scheduler_app.cli.client_options import with_client
from scheduler_app.cli.listing import shows_answer
from scheduler_app.cli.output import say
from scheduler_app.client import Json, Scheduler


@click.group(cls=CommandGroup)
def tenant() -> None:
    """Everything that belongs to a tenant."""


@tenant.command("export")
@click.argument("name")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="The file to write.")
@click.option("--secrets", is_flag=True, help="With the secrets, readable; by a key of the installation.")
@with_client
def export_tenant(scheduler: Scheduler, name: str, output: Path | None, secrets: bool) -> None:
    """Write everything of a tenant as lines of JSON; a file appears when it is whole."""
    ended = None
    written: AbstractContextManager[IO[str]] = nullcontext(sys.stdout)
    if output is not None:
        written = _written(output)
    with written as lines:
        for each in scheduler.export_tenant(name, secrets=secrets):
            lines.write(json.dumps(each, ensure_ascii=False, separators=(",", ":")) + "\n")
            ended = each.get("documents") if each.get("end") else None
        if ended is None:
            raise CannotStart("the export was broken off: begin it again")
    say(f"exported: {', '.join(f'{count} {what}' for what, count in ended.items() if count)}", err=True)


@contextmanager
def _written(output: Path) -> Iterator[IO[str]]:
    """A file beside the one to write, which takes its place at the end."""
    beside = output.with_name(f"{output.name}.part")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as lines:
            yield lines
        beside.replace(output)
    finally:
        beside.unlink(missing_ok=True)


@tenant.command("delete")
@click.argument("name")
@click.option("--confirm", required=True, metavar="NAME", help="The name once more: there is no way back.")
@shows_answer()
def delete_tenant(scheduler: Scheduler, name: str, confirm: str) -> Json:
    """Delete everything that belongs to a tenant, and the tenant."""
    if confirm != name:
        raise click.UsageError(f"--confirm must be {name}, the tenant of which everything is deleted")
    return scheduler.delete_tenant(name)


@tenant.command("deletion")
@click.argument("deletion_id", metavar="ID")
@shows_answer()
def show_deletion(scheduler: Scheduler, deletion_id: str) -> Json:
    """Show how far a deletion is, and what it has removed."""
    return scheduler.deletion(deletion_id)
