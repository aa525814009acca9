"""`scheduler forecast`: the waves to come, as bars."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.durations import duration
from scheduler_app.cli.output import say, show_json
from scheduler_app.client import Scheduler
from scheduler_app.clock import clock

#: The longest bar, in characters.
WIDTH = 50
#: Eighths of a character, so that small numbers differ.
_EIGHTHS = " ▏▎▍▌▋▊▉"


@click.command()
@click.option("--from", "start", help="Where it begins, an instant.  [default: now]")
@click.option("--to", "end", help="Where it ends, an instant.  [default: a day after --from]")
@click.option("--for", "length", type=duration, help="How long it is, such as 6h, instead of --to.")
@click.option("--bucket", type=duration, help="The time of a bar, such as 10m.  [default: at most 60 bars]")
@json_option
@with_client
def forecast(
    scheduler: Scheduler,
    start: str | None,
    end: str | None,
    length: int | None,
    bucket: int | None,
    as_json: bool,
) -> None:
    """Draw how many callbacks fall due, from rules, events and messages, before they come."""
    if length is not None:
        if end is not None:
            raise click.UsageError("give --to or --for, not both")
        end = _after(start, length)
    found = scheduler.forecast(after=start, until=end, bucket_seconds=bucket)
    if as_json:
        show_json(found)
        return
    most = max((part["count"] for part in found["buckets"]), default=0)
    digits = len(str(most))
    for part in found["buckets"]:
        say(f"{part['from']}  {part['count']:>{digits}}  {bar(part['count'], most)}".rstrip())
    say(f"{found['count']} callbacks, {found['bucket_seconds']} s a bar.{_overdue(found)}")
    withheld = found.get("blackouts") or {"skipped": 0, "postponed": 0}
    if withheld["skipped"]:
        say(f"Blackouts skip {withheld['skipped']} more, which are not counted.")
    if withheld["postponed"]:
        say(f"Blackouts postpone {withheld['postponed']}, which are counted where these end.")
    for each in found["receivers"]:
        say(f"  {each['count']:>{len(str(found['count']))}}  {each.get('destination') or each['origin']}")
    if found["receivers_omitted"]:
        say(f"  and {found['receivers_omitted']} other receivers")
    for note in found["notes"]:
        say(f"Note: {note}", err=True)


def bar(count: int, most: int) -> str:
    """A bar as long as `count` is beside `most`; nothing for none."""
    whole, eighth = divmod(count * WIDTH * 8 // most if most else 0, 8)
    drawn = "█" * whole + (_EIGHTHS[eighth] if eighth else "")
    return drawn or ("▏" if count else "")


def _after(start: str | None, seconds: int) -> str:
    try:
        since = clock.now() if start is None else datetime.fromisoformat(start)
    except ValueError:
        message = "must be an instant, as in 2025-01-05T12:00:00Z"
        raise click.BadParameter(message, param_hint="--from") from None
    return (since + timedelta(seconds=seconds)).isoformat()


def _overdue(found: Mapping[str, Any]) -> str:
    return f" {found['overdue']} more were due earlier and are still waiting." if found["overdue"] else ""
