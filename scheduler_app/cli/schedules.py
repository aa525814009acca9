"""`scheduler list`, `get`, `create`, `trigger`."""

import json
from itertools import islice
from typing import Any

import click

from scheduler_app.cli.remote import as_json, limit, remote
from scheduler_app.cli.show import details, say, show_json, table
from scheduler_app.client import Json, Scheduler

STATES = ("active", "paused", "finished", "error")
LAST_OUTCOMES = ("completed", "error", "retrying")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
_COLORS = {"active": "green", "paused": "yellow", "error": "red"}


@click.command("list")
@click.option("--state", type=click.Choice(STATES))
@click.option("--name", help="Of exactly this name.")
@click.option("--tag", help="With this tag.")
@click.option("--last-outcome", type=click.Choice(LAST_OUTCOMES), help="Whose last run ended so.")
@limit
@as_json
@remote
def list_schedules(scheduler: Scheduler, limit: int, as_json: bool, **which: Any) -> None:
    """List schedules, newest first."""
    found = list(islice(scheduler.list(**which), limit + 1))
    shown = found[:limit]
    if as_json:
        show_json(shown)
        return
    table(
        ["state", "id", "name", "when", "next run", "calls"],
        [
            [_colored(one["state"]), one["id"], one.get("name", ""), _when(one), _next(one), _calls(one)]
            for one in shown
        ],
        whole=("state", "id", "next run"),
    )
    if len(found) > limit:
        click.echo(f"There are more: --limit {limit * 2}", err=True)


@click.command("get")
@click.argument("schedule_id")
@as_json
@remote
def get_schedule(scheduler: Scheduler, schedule_id: str, as_json: bool) -> None:
    """Show a schedule."""
    show_schedule(scheduler.get(schedule_id), as_json)


@click.command("create")
@click.argument("callback_url")
@click.option("--rrule", help='An RFC 5545 rule: "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0".')
@click.option("--run-at", help="A single instant instead: 2030-01-05T12:00:00Z.")
@click.option("--name", help="[default: the URL without its query]")
@click.option("--id", "id_", help="An id of your own.")
@click.option("--timezone", help="[default: UTC]")
@click.option("--method", type=click.Choice(METHODS, case_sensitive=False))
@click.option("--header", multiple=True, metavar="NAME: VALUE", help="May be repeated.")
@click.option("--body", help="Text.")
@click.option("--data", "json_body", metavar="JSON", help="A body of JSON, instead of --body.")
@click.option("--max-retries", type=click.IntRange(0))
@click.option("--tag", multiple=True, help="May be repeated.")
@as_json
@remote
def create_schedule(
    scheduler: Scheduler,
    callback_url: str,
    rrule: str | None,
    run_at: str | None,
    id_: str | None,
    header: tuple[str, ...],
    json_body: str | None,
    tag: tuple[str, ...],
    as_json: bool,
    **others: Any,
) -> None:
    """Call CALLBACK_URL by a rule, or once."""
    if (rrule is None) == (run_at is None):
        raise click.UsageError("give either --rrule or --run-at")
    fields = {name: value for name, value in others.items() if value is not None}
    if id_ is not None:
        fields["id"] = id_
    if header:
        fields["headers"] = dict(map(_header, header))
    if json_body is not None:
        fields["json"] = _json(json_body)
    if tag:
        fields["tags"] = list(tag)
    show_schedule(scheduler.schedule(callback_url, rrule=rrule, run_at=run_at, **fields), as_json)


@click.command("trigger")
@click.argument("schedule_id")
@as_json
@remote
def trigger_schedule(scheduler: Scheduler, schedule_id: str, as_json: bool) -> None:
    """Call back at once; print the event's id."""
    event_id = scheduler.trigger(schedule_id)
    if as_json:
        show_json({"event_id": event_id})
    else:
        say(event_id)


def show_schedule(schedule: Json, as_json: bool) -> None:
    if as_json:
        show_json(schedule)
    else:
        details(schedule)


def _colored(state: str) -> str:
    color = _COLORS.get(state)
    return f"[{color}]{state}[/]" if color else state


def _when(schedule: Json) -> str:
    return str(schedule.get("description") or schedule.get("rrule") or schedule.get("run_at") or "")


def _next(schedule: Json) -> str:
    return str(schedule.get("next_run_at") or schedule.get("reason") or "–")


def _calls(schedule: Json) -> str:
    return f"{schedule.get('method', '')} {schedule.get('callback_url', '')}".strip()


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise click.BadParameter(f"{text!r} is not NAME: VALUE", param_hint="--header")
    return name.strip(), value.strip()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"is not JSON: {error}", param_hint="--data") from None
