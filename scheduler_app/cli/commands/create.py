"""`scheduler create`: a schedule that calls back by a rule, or once."""

import json
from typing import Any

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.output import show_record
from scheduler_app.client import Scheduler

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")


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
@json_option
@with_client
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
    """Create a schedule that calls CALLBACK_URL by a rule, or once."""
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
    show_record(scheduler.schedule(callback_url, rrule=rrule, run_at=run_at, **fields), as_json)


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
