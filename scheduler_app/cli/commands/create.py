"""`scheduler create`: a schedule that calls back by a rule, or once."""

from typing import Any

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.field_options import field_options, flag, given_fields
from scheduler_app.cli.json_values import header_option, json_value, name_and_value
from scheduler_app.cli.output import show_record
from scheduler_app.client import TRIGGERS, ScheduleFields, Scheduler


@click.command("create")
@click.argument("callback_url", required=False)
@click.option("--name", help="[default: the URL without its query, or the destination's name]")
@header_option
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
        fields["headers"] = dict(map(name_and_value, header))
    if json_body is not None:
        fields["json"] = json_value(json_body, "--data")
    show_record(scheduler.schedule(callback_url, name=name, **fields), as_json)
