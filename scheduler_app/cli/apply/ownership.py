"""Which schedules files own: those with the tag of their owner."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

import click

from scheduler_app.cli.apply.files import Item
from scheduler_app.client import Schedule, Scheduler

_PREFIX: Final = "apply:"
_OWNER = re.compile(r"[A-Za-z0-9._-]{1,50}")
#: Of one owner.
MOST_OWNED = 20_000


def owner_tag(owner: str) -> str:
    """The tag of an owner's schedules. Raises click.UsageError for a name that is none."""
    if not _OWNER.fullmatch(owner):
        raise click.UsageError("--owner has 1 to 50 letters, digits, dots, underscores and hyphens")
    return _PREFIX + owner


def owned(items: Sequence[Item], tag: str) -> list[Item]:
    """The items, with the tag on each schedule."""
    return [_tagged(item, tag) if item.kind == "schedules" else item for item in items]


def orphans(scheduler: Scheduler, tag: str, kept: Collection[str]) -> list[Schedule]:
    """The schedules with the tag that are in no file any more."""
    found: list[Schedule] = []
    for number, schedule in enumerate(scheduler.list(tag=tag)):
        if number == MOST_OWNED:
            raise click.ClickException(f"more than {MOST_OWNED:,} schedules have the tag {tag}")
        if schedule["id"] not in kept:
            found.append(schedule)
    return found


def _tagged(item: Item, tag: str) -> Item:
    tags = item.fields.get("tags", [])
    if not isinstance(tags, list):
        return item  # the API says what is wrong with it
    more = [] if tag in tags else [tag]
    return replace(item, fields=item.fields | {"tags": [*tags, *more]})
