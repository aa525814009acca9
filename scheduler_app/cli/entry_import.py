"""Entries of other schedulers become schedules, over the API: what is wrong with one harms only that one."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar
from zoneinfo import ZoneInfo

import click

from scheduler_app.cli.click_extensions import Decorator, options
from scheduler_app.cli.output import counts_text, say, table, with_progress
from scheduler_app.client import Json, Schedule, Scheduler, SchedulerError

_MAX_ID: Final = 64
_SLUG: Final = 32
_DIGEST: Final = 12
_PREFIX: Final = re.compile(r"[A-Za-z0-9-]{1,16}")
_COUNTS: Final = ("created", "changed", "unchanged", "differs", "refused")
#: How many coming occurrences a dry run shows.
_SHOWN = 3
#: What the API answers to one entry that it does not take; anything else concerns all of them.
_ENTRY_STATUSES = frozenset((400, 409, 413, 422))


class NotImportable(Exception):
    """An entry cannot be taken over: the message says why, and perhaps what to do instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What another scheduler runs, and when. Its repr leaves out what may be secret."""

    name: str
    key: str = field(repr=False)
    """What its schedule's id is made of: the same at each import, and another for each entry."""
    trigger: Json
    """The API's fields of a trigger, with its timezone."""
    enabled: bool = True
    once_after: datetime | None = None
    """Where it runs only once: the trigger's first occurrence after this instant is that run."""
    notes: tuple[str, ...] = ()
    """What differs from the other scheduler, and is taken over nevertheless."""


E = TypeVar("E", bound=Entry)


@dataclass(frozen=True, slots=True)
class RefusedEntry:
    """An entry that cannot be taken over."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class ImportedEntry:
    """What became, or would become, of an entry."""

    name: str
    schedule_id: str
    result: str
    """`created`, `changed`, `unchanged` or `differs`: it exists otherwise, and was not to be changed."""
    trigger: str
    occurrences: tuple[str, ...]
    """The next ones, in a dry run."""
    notes: tuple[str, ...]
    paused: bool


@dataclass(frozen=True, slots=True)
class EntryImporter(Generic[E]):
    """How entries are to be imported."""

    scheduler: Scheduler
    fields_of: Callable[[E], Json]
    """The API's fields of the schedule that an entry becomes, but its id. Raises NotImportable."""
    disabled_note: str
    """Why a schedule is paused whose entry is disabled."""
    id_prefix: str
    update: bool
    dry_run: bool

    def take(self, found: Iterator[E | RefusedEntry]) -> Iterator[ImportedEntry | RefusedEntry]:
        """Imports one after another. Raises SchedulerError where the API refuses more than one entry."""
        seen: set[str] = set()
        for each in found:
            if isinstance(each, RefusedEntry):
                yield each
                continue
            given = schedule_id(self.id_prefix, each.key)
            if given in seen:
                yield RefusedEntry(each.name, "another entry has the same name; give it one of its own")
                continue
            seen.add(given)
            try:
                yield self._take(given, each)
            except NotImportable as refused:
                yield RefusedEntry(each.name, str(refused))
            except SchedulerError as error:
                if error.status not in _ENTRY_STATUSES:
                    raise
                yield RefusedEntry(each.name, _reason(error))

    def _take(self, given: str, entry: E) -> ImportedEntry:
        fields = self.fields_of(entry)
        if entry.once_after is not None:
            fields = {name: value for name, value in fields.items() if name not in entry.trigger}
            fields["run_at"] = self._once(entry.trigger, entry.once_after)
        planned = self.scheduler.put(given, fields, dry_run=True)
        result = str(planned.result)
        if result == "unchanged" and entry.enabled and self._was_disabled(planned):
            # It was disabled when it was imported, and is enabled now. Other pauses are people's own.
            fields, result = {**fields, "state": "active"}, "changed"
        if result == "changed" and not self.update:
            result = "differs"
        if not self.dry_run and result in ("created", "changed"):
            self.scheduler.put(given, fields)
        return ImportedEntry(
            entry.name,
            given,
            result,
            _trigger_text(planned),
            self._next(fields) if self.dry_run else (),
            entry.notes,
            not entry.enabled,
        )

    def _was_disabled(self, schedule: Schedule) -> bool:
        return schedule["state"] == "paused" and schedule.get("note") == self.disabled_note

    def _once(self, trigger: Json, since: datetime) -> str:
        """The time of an entry that runs once: its first occurrence from when it was changed, which is the
        same however often it is imported."""
        occurrences = self._occurrences(trigger, since - timedelta(seconds=1), 1)
        if not occurrences:
            raise NotImportable("it is to run once, and its schedule has no occurrence")
        return occurrences[0]

    def _next(self, fields: Json) -> tuple[str, ...]:
        names = ("cron", "rrule", "every_seconds", "start_at", "run_at", "timezone")
        return self._occurrences({name: fields[name] for name in names if name in fields}, None, _SHOWN)

    def _occurrences(self, trigger: Json, at: datetime | None, limit: int) -> tuple[str, ...]:
        others = {name: value for name, value in trigger.items() if name != "rrule"}
        found = self.scheduler.preview(trigger.get("rrule"), at=at, limit=limit, **others)
        return tuple(str(each["run_time"]) for each in found["occurrences"])


def import_options(id_prefix: str) -> Decorator:
    """Adds what `EntryImporter` needs to know: `id_prefix`, `update` and `dry_run`."""

    def check(context: click.Context, parameter: click.Parameter, value: str) -> str:
        if not _PREFIX.fullmatch(value):
            raise click.BadParameter("must be 1 to 16 letters, digits and hyphens")
        return value

    help_text = "What the schedules' ids begin with."
    return options(
        click.option("--id-prefix", default=id_prefix, show_default=True, callback=check, help=help_text),
        click.option("--update", is_flag=True, help="Change schedules that exist and differ."),
        click.option("--dry-run", is_flag=True, help="Show what each would become, and change nothing."),
    )


def zone_option(help_text: str, *, required: bool = False) -> Decorator:
    """Adds --timezone."""

    def check(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
        try:
            return value and ZoneInfo(value).key
        except (ValueError, OSError, KeyError):
            raise click.BadParameter("must be a zone of IANA's, such as Europe/Zurich") from None

    return click.option("--timezone", metavar="ZONE", required=required, callback=check, help=help_text)


def schedule_id(prefix: str, name: str) -> str:
    """The id of the schedule that an entry becomes: the same each time, and another for each name."""
    slug = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
    if slug == name and len(prefix) + 1 + len(slug) <= _MAX_ID:
        return f"{prefix}-{slug}"
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return "-".join(filter(None, (prefix, slug[:_SLUG].strip("-"), digest)))


def import_entries(importing: EntryImporter[E], found: Iterator[E | RefusedEntry]) -> None:
    """Imports them, prints what became of each, and exits with 1 where one was not taken over."""
    done: list[ImportedEntry] = []
    refused: list[RefusedEntry] = []
    for each in with_progress(importing.take(found), "entries"):
        if isinstance(each, RefusedEntry):
            refused.append(each)
        else:
            done.append(each)
    if importing.dry_run:
        _show_imported(done)
    counts = Counter(each.result for each in done) + Counter(refused=len(refused))
    for taken in done:
        if taken.result == "differs":
            say(
                f"{taken.name}: schedule {taken.schedule_id} exists and differs; --update changes it",
                err=True,
            )
        for note in taken.notes:
            say(f"{taken.name}: {note}", err=True)
    for lost in refused:
        say(f"{lost.name}: cannot be taken over: {lost.reason}", err=True)
    said = counts_text({name: counts[name] for name in _COUNTS})
    click.echo(f"{'dry run: ' if importing.dry_run else ''}{said}")
    if counts["refused"] or counts["differs"]:
        raise click.exceptions.Exit(1)


def _reason(error: SchedulerError) -> str:
    """The API's own sentence, and what it says about each field where there are several."""
    if len(error.errors) < 2:
        return error.detail
    return "; ".join(f"{each.get('pointer', '')}: {each.get('detail', '')}" for each in error.errors)


def _trigger_text(schedule: Schedule) -> str:
    """A trigger on one line."""
    if schedule.get("cron"):
        return f"cron {schedule['cron']} ({schedule['timezone']})"
    if schedule.get("every_seconds"):
        return f"every {schedule['every_seconds']} s"
    if schedule.get("run_at"):
        return f"at {schedule['run_at']}"
    return " ".join(str(schedule.get("rrule") or schedule.get("recurrence")).split())


def _show_imported(done: list[ImportedEntry]) -> None:
    """One line for each: what it becomes, and when it runs next, in UTC."""
    # Imported here: a command that shows no table need not wait for rich.
    from rich.markup import escape

    columns = ("entry", "id", "result", "becomes", "next three, in UTC")
    rows = [
        (
            escape(each.name),
            each.schedule_id,
            f"{each.result}, paused" if each.paused else each.result,
            each.trigger,
            ", ".join(each.occurrences) or "none",
        )
        for each in done
    ]
    table(columns, rows, unbroken=("id",), key="id")
