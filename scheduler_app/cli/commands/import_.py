"""`scheduler export`, `scheduler import`: schedules as lines, to keep or to move."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import IO, Any

import click

from scheduler_app.cli.client_options import remote
from scheduler_app.cli.commands.list import LAST_OUTCOMES, STATES
from scheduler_app.cli.output import say
from scheduler_app.client import Json, Scheduler, SchedulerError

#: What one request of the API takes: so many schedules, and well below its 16 MiB.
MOST = 1_000
MOST_CHARACTERS = 2_000_000

Numbered = tuple[int, Json]
#: What becomes of a line that is not refused.
_DONE = ("created", "changed", "unchanged")
#: 96 bits of a digest.
_DIGITS = 24


@click.command("export")
@click.option("--state", type=click.Choice(STATES))
@click.option("--name", help="Of exactly this name.")
@click.option("--tag", help="With this tag.")
@click.option("--last-outcome", type=click.Choice(LAST_OUTCOMES), help="Whose last run ended so.")
@remote
def export_schedules(scheduler: Scheduler, **which: Any) -> None:
    """Print all schedules, a JSON object a line.

    Secrets are masked; where the API has a SECRETS_KEY, each line holds them encrypted, for an API that has
    the same key. Elsewhere put the real ones there before you import it.
    """
    for schedule in scheduler.export(**which):
        say(json.dumps(schedule, ensure_ascii=False, separators=(",", ":")))


@click.command("import")
@click.argument("file", type=click.File(encoding="utf-8"), default="-")
@click.option("--update", is_flag=True, help="Change those that are there and differ.")
@click.option("--dry-run", is_flag=True, help="Tell what would be done, and do nothing.")
@remote
def import_schedules(scheduler: Scheduler, file: IO[str], update: bool, dry_run: bool) -> None:
    """Create the schedules of FILE (or of standard input), a JSON object a line, as `export` prints them.

    What is there already and the same is left alone: to import a file again changes nothing. A line without
    an id is given one, made of its content.
    """
    counts = dict.fromkeys((*_DONE, "refused"), 0)
    for batch in _batches(file):
        if any(counts.values()):
            click.echo(f"… {_told(counts)}", err=True)
        given = [each for _, each in batch]
        for (number, schedule), result in zip(
            batch, scheduler.schedule_many(given, dry_run=dry_run), strict=True
        ):
            done, why = _what_became(scheduler, schedule, result, update=update, dry_run=dry_run)
            counts[done] += 1
            if why:
                say(f"line {number}: {why}", err=True)
    click.echo(f"{'dry run: ' if dry_run else ''}{_told(counts)}")
    if counts["refused"]:
        raise click.exceptions.Exit(1)


def _what_became(
    scheduler: Scheduler, schedule: Json, result: Json, *, update: bool, dry_run: bool
) -> tuple[str, str | None]:
    """A schedule's count, and the reason where it is refused."""
    if result["status"] == 201:
        return "created", None
    if result["status"] != 409:
        return "refused", str(result["problem"]["detail"])
    try:
        # Without --update only to see whether it differs.
        there = scheduler.put(schedule["id"], schedule, dry_run=dry_run or not update)["result"]
    except SchedulerError as error:
        if error.status is None or error.status >= 500:
            raise
        return "refused", error.detail
    if there == "changed" and not update:
        return "refused", f"there is a schedule {schedule['id']} already, and it differs; --update changes it"
    return str(there), None


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _batches(file: IO[str]) -> Iterator[list[Numbered]]:
    """As many lines as go into one request, each with its number."""
    batch: list[Numbered] = []
    seen: Counter[bytes] = Counter()
    size = 0
    for number, line in enumerate(file, 1):
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
    """The schedule with an id: of two equal lines the second has another one, each time they are imported."""
    if not isinstance(schedule, dict) or "id" in schedule:
        return schedule
    content = hashlib.sha256(json.dumps(schedule, sort_keys=True).encode()).digest()
    seen[content] += 1
    digest = hashlib.sha256(content + str(seen[content]).encode()).hexdigest()
    return {"id": f"import-{digest[:_DIGITS]}", **schedule}
