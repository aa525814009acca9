"""`scheduler tenant` and `scheduler tags`: tenants with their limits, everything of one, what has a tag."""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from http import HTTPStatus
from pathlib import Path
from typing import IO, Final

import click

from scheduler_app.cli.click_extensions import CannotStart, CommandGroup, Decorator, options
from scheduler_app.cli.client_options import with_client
from scheduler_app.cli.field_options import given_fields
from scheduler_app.cli.listing import shows_answer
from scheduler_app.cli.output import say, table
from scheduler_app.client import Json, Scheduler, SchedulerError
from scheduler_app.domain.resource_fields import ResourceField, Whole
from scheduler_app.domain.resources.tenant import TENANT_LIMITS, TENANT_TABLE

#: What a request may set of a tenant.
_SET: Final = tuple(row.name for row in TENANT_TABLE if row.given)


@click.group(cls=CommandGroup)
def tenant() -> None:
    """Tenants, their limits, and everything that belongs to one."""


def _limit_option(row: ResourceField) -> Decorator:
    kind = int if isinstance(row.type, Whole) else float
    return click.option(f"--{row.name.replace('_', '-')}", row.name, type=kind, help=f"{row.meaning}.")


#: An option for each limit that the API knows.
_limit_options = options(*map(_limit_option, TENANT_LIMITS))
_LIMITS: Final = click.Choice([row.name for row in TENANT_LIMITS])


@tenant.command("list")
@shows_answer(lambda found: _show_tenants(found))
def list_tenants(scheduler: Scheduler) -> Sequence[Json]:
    """Show the tenants, with what they have used of their limits."""
    return scheduler.tenants()


def _show_tenants(found: Sequence[Json]) -> None:
    rows = [[each["name"], each["state"], _limits_text(each), each.get("note", "")] for each in found]
    table(["name", "state", "limits", "note"], rows)


def _limits_text(found: Json) -> str:
    used = found.get("used", {})
    return ", ".join(
        f"{name} {used[name]:,} of {limit:,}" if name in used else f"{name} {limit:,}"
        for name, limit in found.get("limits", {}).items()
    )


@tenant.command("show")
@click.argument("name")
@shows_answer()
def show_tenant(scheduler: Scheduler, name: str) -> Json:
    """Show a tenant, with what it has used of its limits."""
    return scheduler.get_tenant(name)


@tenant.command("set")
@click.argument("name")
@click.option("--note", help="What is to be known of it.")
@_limit_options
@click.option("--unlimited", multiple=True, type=_LIMITS, help="A limit to take away. May be repeated.")
@shows_answer()
def set_tenant(
    scheduler: Scheduler, name: str, note: str | None, unlimited: Sequence[str], **limits: float | None
) -> Json:
    """Make a tenant, or set its note and limits; what is not given stays."""
    try:
        known = scheduler.get_tenant(name)
    except SchedulerError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        known = {}
    body = {each: known[each] for each in _SET if each in known}
    kept = {each: limit for each, limit in body.pop("limits", {}).items() if each not in unlimited}
    body |= {} if note is None else {"note": note}
    return scheduler.put_tenant(name, body | {"limits": kept | given_fields(limits)})


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


#: Of one request: the API takes 1,000 lines and 1 MiB.
_LINES_A_REQUEST: Final = 500
_CHARACTERS_A_REQUEST: Final = 600_000
#: No document that the API makes takes more.
_CHARACTERS_A_LINE: Final = 900_000


@tenant.command("import")
@click.argument("file", type=click.File(encoding="utf-8"), default="-")
@click.option("--into", metavar="NAME", help="The tenant that takes it.  [default: the one of the file]")
@click.option(
    "--active", is_flag=True, help="Go on: the other installation sends nothing of the tenant any more."
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@with_client
def import_tenant(scheduler: Scheduler, file: IO[str], into: str | None, active: bool, dry_run: bool) -> None:
    """Take what `tenant export` wrote into a tenant of this installation.

    Schedules arrive paused, unless --active is given. What is there already stays as it is, so that a file
    may be imported again after an error.
    """
    counts = {name: Counter[str]() for name in ("made", "there", "left_out")}
    refused, has_end = 0, False
    first = file.readline(_CHARACTERS_A_LINE)
    name = into or _tenant_of(first)
    for batch in _batches(file):
        has_end = has_end or any(line.startswith('{"end"') for _, line in batch)
        lines = [first, *(line for _, line in batch)]
        done = scheduler.import_tenant(name, lines, active=active, dry_run=dry_run)
        refused += done["refused"]
        for told, counted in counts.items():
            counted.update(done[told])
        for each in done["refusals"]:
            what = " ".join(each[part] for part in ("collection", "name") if part in each)
            say(f"line {batch[each['line'] - 2][0]}: {what}: {each['reason']}", err=True)
    for told, counted in counts.items():
        if counted:
            numbers = ", ".join(f"{count} {what}" for what, count in counted.items())
            say(f"{told.replace('_', ' ')}: {numbers}")
    if not has_end:
        say("the file was broken off: export it again, and import that, too", err=True)
    if refused or not has_end:
        say(f"refused: {refused}", err=True)
        raise click.exceptions.Exit(1)


def _tenant_of(first: str) -> str:
    try:
        return str(json.loads(first)["tenant"])
    except (ValueError, KeyError, TypeError):
        raise click.UsageError("this is no file of `tenant export`: its first line names no tenant") from None


def _batches(file: IO[str]) -> Iterator[list[tuple[int, str]]]:
    """The lines after the first one with their numbers, as many as one request takes."""
    batch: list[tuple[int, str]] = []
    size, number = 0, 1
    while line := file.readline(_CHARACTERS_A_LINE):
        number += 1
        if not line.endswith("\n") and len(line) == _CHARACTERS_A_LINE:
            raise click.UsageError(f"line {number} is longer than any that `tenant export` writes")
        size += len(json.dumps(line))
        if batch and (size > _CHARACTERS_A_REQUEST or len(batch) == _LINES_A_REQUEST):
            yield batch
            batch, size = [], len(json.dumps(line))
        batch.append((number, line))
    yield batch


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


@click.group(cls=CommandGroup)
def tags() -> None:
    """The tags of schedules."""


@tags.command("delete")
@click.argument("tag")
@click.option("--confirm", metavar="TAG", help="The tag once more: there is no way back.")
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and change nothing.")
@shows_answer()
def delete_tag(scheduler: Scheduler, tag: str, confirm: str | None, dry_run: bool) -> Json:
    """Delete the schedules with a tag, and everything that hangs on them."""
    if not dry_run and confirm != tag:
        raise click.UsageError(f"--confirm must be {tag}; --dry-run says what would be deleted")
    return scheduler.delete_tag(tag, dry_run=dry_run)
