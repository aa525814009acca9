"""`scheduler import` of an iCalendar file: the events become schedules."""

from typing import Any

import click

from scheduler_app.cli.output import say
from scheduler_app.client import ImportedItem, Scheduler

_COUNTS = ("created", "changed", "unchanged", "removed", "refused", "over", "ignored")


def is_calendar(text: str) -> bool:
    """Whether a text begins as an iCalendar file does."""
    return text.lstrip("\ufeff \t\r\n")[:15].upper() == "BEGIN:VCALENDAR"


def import_calendar(
    scheduler: Scheduler, ics: str, fields: dict[str, Any], *, update: bool, dry_run: bool
) -> None:
    """Imports a file and says what came of it; exits with 1 where something was refused. `fields` are those
    of all of its schedules, with `timezone` and `id_prefix` of the import among them."""
    if (fields.get("callback_url") is None) == (fields.get("destination") is None):
        raise click.UsageError("a calendar needs --callback-url or --destination: what its events call")
    given = {name: fields.pop(name) for name in ("timezone", "id_prefix") if name in fields}
    done = scheduler.import_ics(ics, fields, update=update, dry_run=dry_run, **given)
    for item in done.found:
        for line in _lines(item):
            say(f"{item.name}: {line}", err=True)
    said = ", ".join(f"{name} {done[name]:,}" for name in _COUNTS)
    click.echo(f"{'dry run: ' if dry_run else ''}{said}")
    if done.refused:
        raise click.exceptions.Exit(1)


def _lines(item: ImportedItem) -> list[str]:
    """What a person should know of an item."""
    refused = [str(each["problem"]["detail"]) for each in item.schedules if "problem" in each]
    warnings = [str(warning) for each in item.schedules for warning in each.get("warnings", ())]
    removed = [f"its schedule {each} is deleted" for each in item.removed]
    return [*([item.reason] if item.reason else []), *refused, *removed, *item.notes, *warnings]
