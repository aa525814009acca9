"""`scheduler calendar` and `tzdata`: holidays and weekends that schedules observe, and which schedules the
installed zone and holiday data would move.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import IO, Any

import click

from scheduler_app.cli.bulk import for_each
from scheduler_app.cli.click_extensions import CommandGroup
from scheduler_app.cli.client_options import limit_option, with_client_and_json
from scheduler_app.cli.field_options import given_fields
from scheduler_app.cli.listing import shows_answer
from scheduler_app.cli.output import say, table
from scheduler_app.client import Json, MovedSchedule, Scheduler

_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


@click.group(cls=CommandGroup)
def calendar() -> None:
    """Calendars: names for closed days, which schedules observe."""


def _show_calendars(found: Sequence[Mapping[str, Any]]) -> None:
    rows = [[each["name"], _closed_days_text(each), each.get("updated_at", "")] for each in found]
    table(["name", "closed", "changed"], rows, unbroken=("name", "changed"), key="name")


@calendar.command("list")
@limit_option
@shows_answer(_show_calendars)
def list_calendars(scheduler: Scheduler, limit: int) -> Sequence[Mapping[str, Any]]:
    """List calendars, newest first."""
    return list(islice(scheduler.calendars.list(), limit))


@calendar.command("get")
@click.argument("names", nargs=-1, required=True)
@with_client_and_json
def get_calendar(scheduler: Scheduler, names: tuple[str, ...], as_json: bool) -> None:
    """Show calendars, field by field."""
    for_each(names, scheduler.calendars.get, as_json)


@calendar.command("put")
@click.argument("name")
@click.option("--country", help="Closed on its public holidays (ISO 3166): CH.")
@click.option("--subdivision", help="And on those of this part of it (ISO 3166-2): ZH.")
@click.option("--exchange", help="Closed on the holidays of this exchange: NYSE.")
@click.option(
    "--category",
    "categories",
    multiple=True,
    help="Of the country's holidays: public, bank, half_day. May be repeated.  [default: public]",
)
@click.option("--working-weekends", is_flag=True, help="Open on weekend days on which the country works.")
@click.option("--date", "dates", multiple=True, metavar="DATE [NAME]", help="Closed then. May be repeated.")
@click.option(
    "--weekend", multiple=True, type=click.Choice(_WEEKDAYS), help="[default: SA and SU] May be repeated."
)
@click.option("--no-weekend", is_flag=True, help="Open on every day of the week.")
@click.option("--ics", type=click.File(encoding="utf-8"), help="An iCalendar file with closed days.")
@shows_answer()
def put_calendar(
    scheduler: Scheduler,
    name: str,
    working_weekends: bool,
    dates: tuple[str, ...],
    weekend: tuple[str, ...],
    no_weekend: bool,
    ics: IO[str] | None,
    **given: Any,
) -> Mapping[str, Any]:
    """Create a calendar, or replace the whole of one; the schedules that observe it follow."""
    fields = given_fields(given)
    if working_weekends:
        fields["working_weekends"] = True
    if dates:
        fields["dates"] = [_date_and_name(each) for each in dates]
    if no_weekend and weekend:
        raise click.UsageError("give --weekend or --no-weekend")
    if weekend or no_weekend:
        fields["weekend"] = list(weekend)
    if ics is not None:
        fields["ics"] = ics.read()
    return scheduler.calendars.put(name, fields)


def _show_days(found: Sequence[Mapping[str, Any]]) -> None:
    rows = [[each["date"], each["kind"], each.get("name", "")] for each in found]
    table(["date", "kind", "name"], rows, unbroken=("date",), key="date")


@calendar.command("days")
@click.argument("name")
@click.option("--from", "first", required=True, metavar="DATE", help="The first day: 2027-01-01.")
@click.option("--to", "last", required=True, metavar="DATE", help="The last day: 2027-12-31.")
@shows_answer(_show_days)
def list_days(scheduler: Scheduler, name: str, first: str, last: str) -> Sequence[Mapping[str, Any]]:
    """List the closed days of a calendar."""
    return scheduler.calendars.days(name, first, last)


@calendar.command("delete")
@click.argument("names", nargs=-1, required=True)
@with_client_and_json
def delete_calendars(scheduler: Scheduler, names: tuple[str, ...], as_json: bool) -> None:
    """Delete calendars that no schedule observes."""

    def delete(name: str) -> Json:
        scheduler.calendars.delete(name)
        return {"deleted": 1, "name": name}

    for_each(names, delete, as_json, lambda done: say(f"deleted {done['name']}"))


def _date_and_name(text: str) -> Json:
    day, _, name = text.strip().partition(" ")
    return {"date": day} | ({"name": name.strip()} if name.strip() else {})


def _closed_days_text(one: Any) -> str:
    named = [str(one[field]) for field in ("country", "subdivision", "exchange") if one.get(field)]
    own = len(one.get("dates") or ())
    return ", ".join([*named, *([f"{own} dates"] if own else []), "/".join(one.get("weekend") or ())]).strip(
        ", "
    )


@click.group(cls=CommandGroup)
def tzdata() -> None:
    """Zone and holiday data, and what a new release moves."""


def _show_moved(moved: Sequence[MovedSchedule]) -> None:
    if not moved:
        say("No schedule would move.")
        return
    rows = [_moved_schedule_row(schedule, move) for schedule in moved for move in schedule["moves"] or [{}]]
    table(
        ["schedule", "name", "before", "after", "by"],
        rows,
        unbroken=("schedule", "before", "after"),
        key="schedule",
    )


def _moved_schedule_row(schedule: Mapping[str, Any], move: Mapping[str, Any]) -> list[object]:
    by = schedule.get("error", "") if "seconds" not in move else f"{move['seconds']:+} s"
    return [schedule["id"], schedule["name"], move.get("before", "–"), move.get("after", "–"), by]


@tzdata.command("check")
@shows_answer(_show_moved)
def check_tzdata(scheduler: Scheduler) -> Sequence[MovedSchedule]:
    """Show which schedules the API's zone and holiday data would move, and by how much; nothing is changed.

    Beats with that data make it so. Start an API with the new release first, and ask it.
    """
    return list(scheduler.tzdata_check())
