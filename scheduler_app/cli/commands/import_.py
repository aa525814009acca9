"""`scheduler import`: creates the schedules of a file that `scheduler export` has written, or of an iCalendar
file."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import IO, Any

import click

from scheduler_app.cli.client_options import with_client
from scheduler_app.cli.field_options import field_options, flag, given_fields
from scheduler_app.cli.ics_import import import_calendar, is_calendar
from scheduler_app.cli.output import say
from scheduler_app.client import BulkResult, Json, ScheduleFields, Scheduler, SchedulerError

#: Schedules in one request, the most that the API takes, and characters, well below the API's 16 MiB.
MOST = 1_000
MOST_CHARACTERS = 2_000_000

Numbered = tuple[int, Json]
#: The results of a line that is not refused.
_ACCEPTED = ("created", "changed", "unchanged")
#: 96 bits of a SHA-256, in hexadecimal digits.
_ID_DIGITS = 24
#: Fields that an event says itself, that have an option of their own, or that are too long for one.
_NOT_OF_CALENDARS = (
    *("rrule", "cron", "cron_seconds", "every_seconds", "start_at", "phrase", "run_at", "delay_seconds"),
    *("on_demand", "timezone", "id", "name", "callback_url", "headers", "json", "sealed", "action"),
)


@click.command("import")
@click.argument("file", type=click.File(encoding="utf-8"), default="-")
@click.option("--update", is_flag=True, help="Change schedules that exist and differ.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@click.option("--callback-url", metavar="URL", help="Of a calendar: what its events call.")
@click.option("--id-prefix", help="Of a calendar: what the schedules' ids begin with.  [default: ics]")
@click.option("--timezone", metavar="ZONE", help="Of a calendar: the zone of times that name none.")
@field_options(ScheduleFields, without=_NOT_OF_CALENDARS)
@with_client
def import_schedules(
    scheduler: Scheduler, file: IO[str], update: bool, dry_run: bool, **options: Any
) -> None:
    """Create the schedules of FILE (or of standard input): one JSON object per line, as `export` prints them,
    or an iCalendar file (.ics), each of whose events becomes a schedule.

    A schedule that exists and is the same stays as it is, so importing a file a second time changes nothing.
    A line without an id gets one, which is derived from its content; an event is known by its UID. With
    --update, schedules of events that are cancelled, over or one series again are deleted.
    The other options say what a calendar's events call, and how; JSON says that itself.
    """
    fields = given_fields(options)
    first = [file.readline()]
    while first[-1] and not first[-1].strip("\ufeff \t\r\n"):
        first.append(file.readline())
    if is_calendar(first[-1]):
        import_calendar(scheduler, first[-1] + file.read(), fields, update=update, dry_run=dry_run)
        return
    if fields:
        raise click.UsageError(f"{flag(next(iter(fields)))} is for a calendar: JSON says that itself")
    counts = dict.fromkeys((*_ACCEPTED, "refused"), 0)
    for batch in _batches(chain(first, file)):
        if any(counts.values()):
            click.echo(f"… {_summary(counts)}", err=True)
        given = [each for _, each in batch]
        for (number, schedule), result in zip(
            batch, scheduler.schedule_many(given, dry_run=dry_run), strict=True
        ):
            result_name, reason = _import_result(scheduler, schedule, result, update=update, dry_run=dry_run)
            counts[result_name] += 1
            if reason:
                say(f"line {number}: {reason}", err=True)
    click.echo(f"{'dry run: ' if dry_run else ''}{_summary(counts)}")
    if counts["refused"]:
        raise click.exceptions.Exit(1)


def _import_result(
    scheduler: Scheduler, schedule: Json, result: BulkResult, *, update: bool, dry_run: bool
) -> tuple[str, str | None]:
    """Returns the name of the count for this schedule, and the reason where it is refused."""
    if result["status"] == 201:
        return "created", None
    if result["status"] != 409:
        return "refused", str(result["problem"]["detail"])
    try:
        # Without --update this is a dry run, which only tells whether it differs.
        existing = scheduler.put(schedule["id"], schedule, dry_run=dry_run or not update)["result"]
    except SchedulerError as error:
        if error.status is None or error.status >= 500:
            raise
        return "refused", error.detail
    if existing == "changed" and not update:
        return "refused", f"schedule {schedule['id']} exists and differs; --update changes it"
    return str(existing), None


def _summary(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _batches(lines: Iterable[str]) -> Iterator[list[Numbered]]:
    """Yields as many lines as fit into one request, each with its line number."""
    batch: list[Numbered] = []
    seen: Counter[bytes] = Counter()
    size = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if len(batch) == MOST or size + len(line) > MOST_CHARACTERS:
            if batch:
                yield batch
            batch, size = [], 0
        try:
            batch.append((number, _with_id(json.loads(line), seen)))
        except ValueError as error:
            raise click.BadParameter(f"line {number} is not JSON: {error}", param_hint="FILE") from None
        size += len(line)
    if batch:
        yield batch


def _with_id(schedule: Any, seen: Counter[bytes]) -> Any:
    """Returns the schedule with an id, the same each time the file is imported. Equal lines get different
    ids."""
    if not isinstance(schedule, dict) or "id" in schedule:
        return schedule
    content = hashlib.sha256(json.dumps(schedule, sort_keys=True).encode()).digest()
    seen[content] += 1
    digest = hashlib.sha256(content + str(seen[content]).encode()).hexdigest()
    return {"id": f"import-{digest[:_ID_DIGITS]}", **schedule}
