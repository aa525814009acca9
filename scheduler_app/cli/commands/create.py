"""`scheduler create`: a schedule that calls back by a rule, or once."""

import json
from typing import Any

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.field_options import field_options, flag, given_fields
from scheduler_app.cli.output import show_record
from scheduler_app.client import TRIGGERS, ScheduleFields, Scheduler


@click.command("create")
@click.argument("callback_url", required=False)
@click.option("--name", help="[default: the URL without its query, or the destination's name]")
@click.option("--header", multiple=True, metavar="NAME: VALUE", help="May be repeated.")
@click.option("--data", "json_body", metavar="JSON", help="A body of JSON, instead of --body.")
@field_options(ScheduleFields, without=("callback_url", "name", "headers", "json", "sealed", "action"))
@json_option
@with_client
def create_schedule(
    scheduler: Scheduler,
    callback_url: str | None,
    name: str | None,
    header: tuple[str, ...],
    json_body: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Create a schedule that calls CALLBACK_URL, or a --destination, by a rule or once."""
    fields = given_fields(options)
    if (callback_url is None) == (fields.get("destination") is None):
        raise click.UsageError("give CALLBACK_URL or --destination")
    if sum(trigger in fields for trigger in TRIGGERS) != 1:
        raise click.UsageError(f"give exactly one of {', '.join(map(flag, TRIGGERS))}")
    if header:
        fields["headers"] = dict(map(_header, header))
    if json_body is not None:
        fields["json"] = _json(json_body)
    show_record(scheduler.schedule(callback_url, name=name, **fields), as_json)


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
