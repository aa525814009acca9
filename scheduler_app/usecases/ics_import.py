"""How people make schedules of the events of an iCalendar file."""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime

from scheduler_app.domain.draft import Draft
from scheduler_app.domain.errors import Conflict, InvalidField
from scheduler_app.domain.schedule import Schedule
from scheduler_app.ics import Item, Series, read_items
from scheduler_app.usecases.creation import Creation

#: 96 bits of a SHA-256, in hexadecimal digits.
_ID_DIGITS = 24


@dataclass(frozen=True, slots=True)
class ImportedItem:
    """An item of the file, and for each of its series the schedule that was made, or why it was not."""

    item: Item
    made: tuple[tuple[Series, Schedule | InvalidField | Conflict], ...] = ()


def import_calendar(
    creation: Creation,
    text: str,
    draft: Draft,
    now: datetime,
    *,
    tenant: str,
    timezone: str,
    id_prefix: str,
    request_seed: str | None = None,
    hops: int = 0,
) -> list[ImportedItem]:
    """Makes a schedule of each series in the file that still has an occurrence; `draft` is all but its name
    and its trigger. `timezone` is for times that name none; `request_seed` and `hops` are as in
    `Creation.create`.

    The id of a schedule is derived from `id_prefix` and its event's UID, so that a file that is imported
    again makes nothing twice. Raises InvalidField where the file as a whole cannot be read.
    """
    items = read_items(text, timezone=timezone, now=now)
    wanted = [
        (number, part, series)
        for number, item in enumerate(items)
        if item.outcome == "schedules"
        for part, series in enumerate(item.series)
    ]
    drafts = [
        (_id(id_prefix, items[number], series, part), _drafted(draft, series))
        for number, part, series in wanted
    ]
    results = creation.create_many(drafts, now, tenant=tenant, request_seed=request_seed, hops=hops)
    made: dict[int, list[tuple[Series, Schedule | InvalidField | Conflict]]] = {}
    for (number, _, series), result in zip(wanted, results, strict=True):
        made.setdefault(number, []).append((series, result))
    return [ImportedItem(item, tuple(made.get(number, ()))) for number, item in enumerate(items)]


def _drafted(draft: Draft, series: Series) -> Draft:
    return replace(draft, name=series.name, trigger={"rrule": series.recurrence}, timezone=series.timezone)


def _id(prefix: str, item: Item, series: Series, part: int) -> str:
    named = item.uid or f"{item.name}\n{series.recurrence}"
    digest = hashlib.sha256(f"{item.component}\n{named}\n{part}".encode()).hexdigest()
    return f"{prefix}-{digest[:_ID_DIGITS]}"
