"""`scheduler list`, `get`, `create`, `trigger`."""

import json
from itertools import islice
from typing import Any

import click

from scheduler_app.cli.field_options import field_options, flag, given_fields
from scheduler_app.cli.remote import as_json, limit, remote
from scheduler_app.cli.show import details, say, show_json, table
from scheduler_app.client import TRIGGERS, Json, ScheduleFields, Scheduler

STATES = ("active", "paused", "finished", "error")
LAST_OUTCOMES = ("completed", "error", "retrying")
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
@click.option("--name", help="[default: the URL without its query]")
@click.option("--header", multiple=True, metavar="NAME: VALUE", help="May be repeated.")
@click.option("--data", "json_body", metavar="JSON", help="A body of JSON, instead of --body.")
@field_options(ScheduleFields, without=("callback_url", "name", "headers", "json", "sealed"))
@as_json
@remote
def create_schedule(
    scheduler: Scheduler,
    callback_url: str,
    name: str | None,
    header: tuple[str, ...],
    json_body: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Call CALLBACK_URL by a rule, or once."""
    fields = given_fields(options)
    if sum(trigger in fields for trigger in TRIGGERS) != 1:
        raise click.UsageError(f"give exactly one of {', '.join(map(flag, TRIGGERS))}")
    if header:
        fields["headers"] = dict(map(_header, header))
    if json_body is not None:
        fields["json"] = _json(json_body)
    show_schedule(scheduler.schedule(callback_url, name=name, **fields), as_json)


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
