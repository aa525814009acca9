"""Does what files say, item by item, deletes the schedules with the owner's tag that no file holds any more,
and tells what a plan or an application did.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import click

from scheduler_app.cli.apply.files import ApplyItem
from scheduler_app.cli.apply.planning import SCHEDULES_LIMIT, PlannedChange, ResourceKind
from scheduler_app.cli.client_options import is_refusal
from scheduler_app.cli.output import counts_text, say
from scheduler_app.client import Json, Schedule, Scheduler, SchedulerError


def apply_items(
    scheduler: Scheduler, items: Sequence[ApplyItem], leaving: Sequence[Schedule] = ()
) -> Iterator[PlannedChange]:
    """Creates and changes, and then deletes the schedules that are `leaving`. What the tenant's limit leaves
    no room for is created after them. An item that is refused harms only itself. Raises SchedulerError where
    the API does not answer."""
    waiting: list[ApplyItem] = []
    for item in items:
        try:
            done = ResourceKind(scheduler, item.kind).put(item.name, item.fields)
        except SchedulerError as error:
            if leaving and error.limit == SCHEDULES_LIMIT:
                waiting.append(item)
            else:
                yield _refused(item, error)
        else:
            yield PlannedChange(item, str(done["result"]))
    yield from _delete_schedules(scheduler, leaving)
    if waiting:
        yield from apply_items(scheduler, waiting)


def _delete_schedules(scheduler: Scheduler, schedules: Sequence[Schedule]) -> Iterator[PlannedChange]:
    """Deletes schedules that are in no file any more; one that is gone already counts as deleted."""
    for schedule in schedules:
        item = ApplyItem("schedules", str(schedule["id"]), {}, "")
        try:
            scheduler.cancel(item.name)
        except SchedulerError as error:
            if error.status != 404:
                yield _refused(item, error)
                continue
        yield PlannedChange(item, "deleted")


def _refused(item: ApplyItem, error: SchedulerError) -> PlannedChange:
    if not is_refusal(error):
        raise error
    return PlannedChange(item, "refused", reason=error.detail)


_OWNER_PREFIX: Final = "apply:"
_OWNER_NAME = re.compile(r"[A-Za-z0-9._-]{1,50}")
#: Of one owner.
MOST_OWNED = 20_000


def owner_tag(owner: str) -> str:
    """The tag of an owner's schedules. Raises click.UsageError for a name that is none."""
    if not _OWNER_NAME.fullmatch(owner):
        raise click.UsageError("--owner has 1 to 50 letters, digits, dots, underscores and hyphens")
    return _OWNER_PREFIX + owner


def with_owner_tag(items: Sequence[ApplyItem], tag: str) -> list[ApplyItem]:
    """The items, with the tag on each schedule."""
    return [_with_tag(item, tag) if item.kind == "schedules" else item for item in items]


def orphans(scheduler: Scheduler, tag: str, kept: Collection[str]) -> list[Schedule]:
    """The schedules with the tag that are in no file any more."""
    found: list[Schedule] = []
    for number, schedule in enumerate(scheduler.list(tag=tag)):
        if number == MOST_OWNED:
            raise click.ClickException(f"more than {MOST_OWNED:,} schedules have the tag {tag}")
        if schedule["id"] not in kept:
            found.append(schedule)
    return found


def _with_tag(item: ApplyItem, tag: str) -> ApplyItem:
    tags = item.fields.get("tags", [])
    if not isinstance(tags, list):
        return item  # the API says what is wrong with it
    more = [] if tag in tags else [tag]
    return replace(item, fields=item.fields | {"tags": [*tags, *more]})


#: Lines for each schedule and kind of difference; --json has all.
MAX_SHOWN_TIMES = 10
_SHOWN_CHARACTERS = 100
_SIGNS = {"created": "+", "changed": "~", "deleted": "-"}
_RESULTS = ("created", "changed", "unchanged", "deleted", "refused")


def say_change(step: PlannedChange) -> None:
    """One item with its differences; prints nothing without any."""
    if step.result == "unchanged":
        return
    if step.result == "refused":
        where = f"{step.item.file}: " if step.item.file else ""
        say(f"! {where}{step.item}: {step.reason}", err=True)
        return
    said = f" ({step.reason})" if step.reason else ""
    say(f"{_SIGNS[step.result]} {step.item}{said}")
    for name, (before, after) in step.fields.items():
        say(f"    {name}: {_short(before)} → {_short(after)}")
    difference = step.occurrences
    _say_times("moved", [f"{before} → {after}" for before, after in difference.moved])
    _say_times("removed", difference.removed)
    _say_times("added", difference.added)
    if difference.cut_short:
        say("    it runs so often that only the first 1,000 occurrences were compared")


def results_summary(steps: Iterable[PlannedChange]) -> str:
    """The counts of all items."""
    counts = Counter(step.result for step in steps)
    return counts_text({name: counts[name] for name in _RESULTS})


def change_as_json(step: PlannedChange) -> Json:
    """A step for programs."""
    difference = step.occurrences
    return {
        "kind": step.item.kind,
        "name": step.item.name,
        "result": step.result,
        "reason": step.reason,
        "fields": {name: {"before": old, "after": new} for name, (old, new) in step.fields.items()},
        "occurrences": {
            "added": list(difference.added),
            "removed": list(difference.removed),
            "moved": [{"from": old, "to": new} for old, new in difference.moved],
            "cut_short": difference.cut_short,
        },
    }


def _say_times(what: str, times: Sequence[str]) -> None:
    for time in times[:MAX_SHOWN_TIMES]:
        say(f"    {what.ljust(7)}  {time}")
    if len(times) > MAX_SHOWN_TIMES:
        say(f"    {what.ljust(7)}  … and {len(times) - MAX_SHOWN_TIMES:,} more of the next 30 days")


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
