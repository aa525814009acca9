"""`scheduler next`, `preview`, `why` and `forecast`: when schedules run, and why."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import click

from scheduler_app.cli.client_options import limit_option, with_client_and_json
from scheduler_app.cli.field_options import field_options, flag, given_fields
from scheduler_app.cli.listing import shows_answer, watchable
from scheduler_app.cli.options import duration, promise_option
from scheduler_app.cli.output import say, show_json, table, with_progress
from scheduler_app.client import (
    TRIGGERS,
    Explanation,
    Forecast,
    Json,
    Preview,
    Schedule,
    Scheduler,
    TriggerFields,
)
from scheduler_app.clock import clock

#: Schedules that are looked at for the soonest among them.
MOST_SCHEDULES = 10_000


@click.command("next")
@click.argument("schedule_id", required=False)
@click.option("--tag", help="Only schedules with this tag.")
@limit_option
@with_client_and_json
@watchable
def next_runs(
    scheduler: Scheduler, schedule_id: str | None, tag: str | None, limit: int, as_json: bool
) -> None:
    """Show when a schedule runs next, or which schedules run next."""
    if schedule_id is None:
        _show_next_of_all(scheduler, tag, limit, as_json)
        return
    if tag is not None:
        raise click.UsageError("give an id or --tag, not both")
    schedule = scheduler.get(schedule_id)
    active = schedule["state"] == "active"
    found = (
        [dict(each) for each in scheduler.occurrences(schedule_id, limit=limit)["occurrences"]]
        if active
        else []
    )
    if as_json:
        show_json(found)
        return
    if not found:
        say(f"{schedule_id} is {schedule['state']} and has no run to come", err=True)
        return
    rows = [[one["run_time"], one["local"], _blackout_text(one)] for one in found]
    if not any(row[-1] for row in rows):
        rows = [row[:-1] for row in rows]
    table(["UTC", "local", ""][: len(rows[0])], rows, unbroken=("UTC", "local"), key="UTC")


def _blackout_text(occurrence: Json) -> str:
    """What a blackout makes of it."""
    found = occurrence.get("blackout")
    if found is None:
        return ""
    became = "skipped" if found["policy"] == "skip" else f"postponed to {found['until']}"
    return f"{became} by the blackout {found['name']}"


def _show_next_of_all(scheduler: Scheduler, tag: str | None, limit: int, as_json: bool) -> None:
    looked_at = list(
        islice(with_progress(scheduler.list(state="active", tag=tag), "read"), MOST_SCHEDULES + 1)
    )
    if len(looked_at) > MOST_SCHEDULES:
        click.echo(f"Among the newest {MOST_SCHEDULES:,} schedules alone; --tag chooses others", err=True)
    due = sorted(
        (each for each in looked_at[:MOST_SCHEDULES] if each.get("next_run_at")),
        key=lambda each: (str(each["next_run_at"]), str(each["id"])),
    )[:limit]
    if as_json:
        show_json([_next_run_fields(each) for each in due])
        return
    table(
        ["next run", "id", "name"],
        [[each["next_run_at"], each["id"], each.get("name", "")] for each in due],
        unbroken=("next run", "id"),
        key="id",
    )


def _next_run_fields(schedule: Schedule) -> Json:
    names = ("id", "name", "next_run_at", "next_run")
    return {name: schedule[name] for name in names if name in schedule}


#: What a table of occurrences shows where it is there, and its titles.
OCCURRENCE_COLUMNS = {
    "run_time": "UTC",
    "local": "local",
    "due_at": "due",
    "earliest": "earliest",
    "latest": "latest",
}


def _show_preview(found: Preview) -> None:
    say(found["description"])
    for line in found.get("recurrence", "").splitlines():
        say(f"  {line}")
    first = next(iter(found["occurrences"]), {"run_time": "", "local": ""})
    shown = [name for name in OCCURRENCE_COLUMNS if name in first]
    titles = [OCCURRENCE_COLUMNS[name] for name in shown]
    table(titles, [[one[name] for name in shown] for one in found["occurrences"]], unbroken=tuple(titles))
    if "promise" in found:
        for each in found["promise"]["problems"] or ("Nothing that can be known now is in the way.",):
            say(each)
    _say_notes(found.get("warnings", ()))


def _say_notes(notes: Iterable[str]) -> None:
    for note in notes:
        say(f"Note: {note}", err=True)


@click.command()
@click.argument("rrule", required=False)
@field_options(TriggerFields, without=("rrule",))
@click.option("--given-at", "at", help="The instant from which delays and intervals count.  [default: now]")
@click.option("--after", help="Show what comes after this instant.  [default: that of --given-at]")
@click.option("--until", help="Show nothing that comes after this instant.  [default: no end]")
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000),
    default=10,
    show_default=True,
    help="The most occurrences to show.",
)
@click.option("--display-timezone", metavar="ZONE", help="The zone of local times.  [default: the trigger's]")
@promise_option
@shows_answer(_show_preview)
def preview(scheduler: Scheduler, rrule: str | None, promise: bool, **given: Any) -> Preview:
    """Show when RRULE, or another trigger, would run, and what it became, without saving anything."""
    fields = given_fields(given)
    if (rrule is not None) + sum(name in fields for name in TRIGGERS) != 1:
        others = ", ".join(flag(name) for name in TRIGGERS if name != "rrule")
        raise click.UsageError(f"give RRULE, or one of {others}")
    return scheduler.preview(rrule, promise=promise, **fields)


def _show_reasons(found: Explanation) -> None:
    say(f"{_time_text(found['at'])}: {'it fires' if found['fires'] else 'it does not fire'}.")
    said = [found.get("reason"), *found["further_reasons"], *found.get("causes", ())]
    for reason in filter(None, said):
        say(f"  {reason['code']}: {reason['message']}")
        if "rule" in reason:
            say(f"    of the rule {reason['rule']}")
    if "event" in found:
        event = found["event"]
        lines = event.get("status") or [{}]
        say(f"event     {event['_id']}: {event['state']}. {lines[-1].get('message', '')}".rstrip())
    for name in ("previous", "next"):
        say(f"{name.ljust(8)}  {_time_text(found[name]) if name in found else 'none'}")
    _say_notes(found["warnings"])


def _time_text(shown: Mapping[str, Any]) -> str:
    due = f", due {shown['due_at']} with its jitter" if "due_at" in shown else ""
    return f"{shown['run_time']} ({shown['local']}){due}"


@click.command()
@click.argument("schedule_id")
@click.argument("at")
@shows_answer(_show_reasons)
def why(scheduler: Scheduler, schedule_id: str, at: str) -> Explanation:
    """Say why a schedule fires at the instant AT, past or future, or why it does not.

    AT is an instant such as 2030-01-05T12:00:00Z, or a local time in the schedule's zone, such as
    2030-01-05T13:00.
    """
    return scheduler.why(schedule_id, at)


#: The longest bar, in characters.
BAR_WIDTH = 50
#: Eighths of a character, so that small numbers differ.
_EIGHTHS = " ▏▎▍▌▋▊▉"


def _show_forecast(found: Forecast) -> None:
    most = max((part["count"] for part in found["buckets"]), default=0)
    digits = len(str(most))
    for part in found["buckets"]:
        say(f"{part['from']}  {part['count']:>{digits}}  {bar(part['count'], most)}".rstrip())
    overdue = f" {found['overdue']} more were due earlier and are still waiting." if found["overdue"] else ""
    say(f"{found['count']} callbacks, {found['bucket_seconds']} s a bar.{overdue}")
    withheld = found.get("blackouts") or {"skipped": 0, "postponed": 0}
    if withheld["skipped"]:
        say(f"Blackouts skip {withheld['skipped']} more, which are not counted.")
    if withheld["postponed"]:
        say(f"Blackouts postpone {withheld['postponed']}, which are counted where these end.")
    for each in found["receivers"]:
        say(f"  {each['count']:>{len(str(found['count']))}}  {each.get('destination') or each['origin']}")
    if found["receivers_omitted"]:
        say(f"  and {found['receivers_omitted']} other receivers")
    _say_notes(found["notes"])


def bar(count: int, most: int) -> str:
    """A bar as long as `count` is beside `most`; nothing for none."""
    whole, eighth = divmod(count * BAR_WIDTH * 8 // most if most else 0, 8)
    drawn = "█" * whole + (_EIGHTHS[eighth] if eighth else "")
    return drawn or ("▏" if count else "")


@click.command()
@click.option("--from", "start", help="Where it begins, an instant.  [default: now]")
@click.option("--to", "end", help="Where it ends, an instant.  [default: a day after --from]")
@click.option("--for", "length", type=duration, help="How long it is, such as 6h, instead of --to.")
@click.option("--bucket", type=duration, help="The time of a bar, such as 10m.  [default: at most 60 bars]")
@click.option("--tag", help="Only those of schedules with this tag.")
@shows_answer(_show_forecast)
def forecast(
    scheduler: Scheduler,
    start: str | None,
    end: str | None,
    length: int | None,
    bucket: int | None,
    tag: str | None,
) -> Forecast:
    """Draw how many callbacks fall due, from rules, events and messages, before they come."""
    if length is not None:
        if end is not None:
            raise click.UsageError("give --to or --for, not both")
        end = _end_after(start, length)
    return scheduler.forecast(after=start, until=end, bucket_seconds=bucket, tag=tag)


def _end_after(start: str | None, seconds: int) -> str:
    try:
        since = clock.now() if start is None else datetime.fromisoformat(start)
    except ValueError:
        message = "must be an instant, as in 2025-01-05T12:00:00Z"
        raise click.BadParameter(message, param_hint="--from") from None
    return (since + timedelta(seconds=seconds)).isoformat()
