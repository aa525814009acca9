"""`scheduler export` and `scheduler import`: the schedules as lines of JSON, or everything as a file of
`apply`, to keep or move; and the schedules of such lines, or of an iCalendar file, created.
"""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, Any

import click

from scheduler_app.cli.client_options import is_refusal, with_client
from scheduler_app.cli.field_options import field_options, flag, given_fields
from scheduler_app.cli.listing import kill_switch_name
from scheduler_app.cli.options import schedule_filters
from scheduler_app.cli.output import counts_text, say, say_result, with_progress
from scheduler_app.client import BulkResult, ImportedItem, Json, ScheduleFields, Scheduler, SchedulerError
from scheduler_app.domain.masking import visible


@click.command("export")
@click.option(
    "--everything",
    is_flag=True,
    help="Print a file of YAML for `apply`: calendars, destinations, blackouts and notifications too.",
)
@schedule_filters
@with_client
def export_schedules(scheduler: Scheduler, everything: bool, **filters: Any) -> None:
    """Print all schedules, one JSON object per line.

    Secrets are masked. Where the API has a SECRETS_KEY, each line also holds them encrypted, for an API with
    the same key. For any other API, replace the masks by the real secrets before you import the file.

    Kill switches are not in it; those that are on are named on standard error.
    """
    stopped = [kill_switch_name(each) for each in scheduler.kill_switches()]
    rows = scheduler.export(**filters)
    # On a terminal the lines themselves say how far it is.
    counting = rows if sys.stdout.isatty() else with_progress(rows, "exported")
    if everything:
        is_whole = _print_file(scheduler, counting)
    else:
        is_whole = True
        for schedule in counting:
            say_result(json.dumps(schedule, ensure_ascii=False, separators=(",", ":")))
    for name in stopped:
        say(
            f"left out: the kill switch that stops {name}; what it stops is sent wherever this is imported",
            err=True,
        )
    if not is_whole:
        raise click.exceptions.Exit(1)


def _print_file(scheduler: Scheduler, schedules: Iterable[Json]) -> bool:
    """Returns whether everything could be read."""
    # Imported here: it imports YAML, for which the others need not wait.
    from scheduler_app.cli.apply.files import exported_pieces

    is_whole = True
    for text, reason in exported_pieces(scheduler, schedules):
        if reason is not None:
            is_whole = False
            say(f"left out: {reason}", err=True)
        else:
            click.echo(visible(text), nl=False)
    return is_whole


_CALENDAR_COUNTS = ("created", "changed", "unchanged", "removed", "refused", "over", "ignored")


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
        for line in _item_lines(item):
            say(f"{item.name}: {line}", err=True)
    said = counts_text({name: done[name] for name in _CALENDAR_COUNTS})
    click.echo(f"{'dry run: ' if dry_run else ''}{said}")
    if done.refused:
        raise click.exceptions.Exit(1)


def _item_lines(item: ImportedItem) -> list[str]:
    """What a person should know of an item."""
    refused = [str(each["problem"]["detail"]) for each in item.schedules if "problem" in each]
    warnings = [str(warning) for each in item.schedules for warning in each.get("warnings", ())]
    removed = [f"its schedule {each} is deleted" for each in item.removed]
    return [*([item.reason] if item.reason else []), *refused, *removed, *item.notes, *warnings]


#: Schedules in one request, the most that the API takes, and characters, well below the API's 16 MiB.
MAX_BATCH_LINES = 1_000
MAX_BATCH_CHARACTERS = 2_000_000

NumberedSchedule = tuple[int, Json]
#: The results of a line that is not refused.
_ACCEPTED = ("created", "changed", "unchanged")
#: 96 bits of a SHA-256, in hexadecimal digits.
_ID_DIGITS = 24
#: Fields that an event says itself, that have an option of their own, or that are too long for one.
_NO_CALENDAR_OPTIONS = (
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
@field_options(ScheduleFields, without=_NO_CALENDAR_OPTIONS)
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
            click.echo(f"… {counts_text(counts)}", err=True)
        given = [each for _, each in batch]
        for (number, schedule), result in zip(
            batch, scheduler.schedule_many(given, dry_run=dry_run), strict=True
        ):
            result_name, reason = _import_result(scheduler, schedule, result, update=update, dry_run=dry_run)
            counts[result_name] += 1
            if reason:
                say(f"line {number}: {reason}", err=True)
    click.echo(f"{'dry run: ' if dry_run else ''}{counts_text(counts)}")
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
        if not is_refusal(error):
            raise
        return "refused", error.detail
    if existing == "changed" and not update:
        return "refused", f"schedule {schedule['id']} exists and differs; --update changes it"
    return str(existing), None


def _batches(lines: Iterable[str]) -> Iterator[list[NumberedSchedule]]:
    """Yields as many lines as fit into one request, each with its line number."""
    batch: list[NumberedSchedule] = []
    seen: Counter[bytes] = Counter()
    size = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if len(batch) == MAX_BATCH_LINES or size + len(line) > MAX_BATCH_CHARACTERS:
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
