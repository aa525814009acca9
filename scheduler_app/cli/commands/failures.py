"""`scheduler status` and `failures`: whether all is well, what fails and for whom, and dismissing it."""

from collections.abc import Iterable, Sequence
from typing import Any

import click

from scheduler_app.cli.click_extensions import CommandGroup
from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.listing import shows_answer, shows_list, watchable
from scheduler_app.cli.output import say, say_result, show_answer, table
from scheduler_app.client import Failure, RedriveProgress, Scheduler, SystemVerdict

#: Tags of a reason on one line.
TAGS_SHOWN = 10


def _show_status(found: SystemVerdict) -> None:
    since = f" since {found['since']}" if found.since else ""
    say_result(f"{found.verdict}{since}")
    for each in found.reasons:
        say_result(f"  {each.kind}: {each.message}")
        if each.tags:
            more = f" and {len(each.tags) - TAGS_SHOWN} more" if len(each.tags) > TAGS_SHOWN else ""
            say_result(f"    tags: {', '.join(each.tags[:TAGS_SHOWN])}{more}")
        say_result(f"    to do: {each.remedy}")
        if silence := each.get("silence"):
            say_result(f"    silenced until {silence['until']}: {silence['reason']}")
    if found.reasons_omitted:
        say_result(f"  and {found.reasons_omitted} more")


@click.command()
@json_option
@with_client
@watchable
def status(scheduler: Scheduler, as_json: bool) -> None:
    """Say whether all is well, and if not, why and what to do.

    The exit status is 0 if all is well, and 1 if not.
    """
    found = scheduler.status()
    show_answer(found, as_json, _show_status)
    if found.verdict != "well":
        raise SystemExit(1)


@click.group(cls=CommandGroup)
def failures() -> None:
    """What fails, since when and for whom."""


def _show_failures(found: Sequence[Failure]) -> None:
    table(
        ["failure", "state", "since", "schedules", "waiting", "dead", "what"],
        [
            [
                each.id,
                each.state,
                each["since"],
                f"{each.schedules.count}{'' if each.schedules.exact else '+'}",
                str(each.events.waiting),
                str(each.events.dead_letters),
                each.message,
            ]
            for each in found
        ],
        unbroken=("failure", "since"),
        key="failure",
    )


@failures.command("list")
@click.option("--state", help="Only those that are open, over or dismissed, or several separated by commas.")
@click.option("--tag", help="Only those that touch a schedule with this tag.")
@click.option("--destination", help="Only those of this destination.")
@click.option("--origin", help="Only those of this receiver, as in https://example.com.")
@shows_list(_show_failures, watch=True)
def list_failures(scheduler: Scheduler, **filters: Any) -> Iterable[Failure]:
    """List failures by their cause, those that began last first."""
    return scheduler.failures(**filters)


def _show_failure(found: Failure) -> None:
    say(found.message)
    rows = {
        "state": found.state,
        "since": found["since"],
        "last": found["last"],
        "error": found.error,
        "failed": found.events.failed,
        "gave up": found.events.gave_up,
        "waiting": found.events.waiting,
        "dead letters": found.events.dead_letters,
        "next try": found.get("next_try_at"),
        "over": found.get("over_at"),
        "dismissed": found.get("dismissed_at"),
        "note": found.note,
        "schedules": ", ".join(found.schedules.names[:TAGS_SHOWN]),
        "tags": ", ".join(found.tags.names[:TAGS_SHOWN]),
    }
    for name, value in rows.items():
        if value not in (None, ""):
            say(f"  {name}: {value}")


@failures.command("show")
@click.argument("failure_id")
@shows_answer(_show_failure)
def show_failure(scheduler: Scheduler, failure_id: str) -> Failure:
    """Show a failure: whom it touches, and what became of it."""
    return scheduler.failure(failure_id)


@failures.command("dismiss")
@click.argument("failure_id")
@click.option("--note", help="Why.")
@click.option("--events", is_flag=True, help="Expire its dead letters, too: nothing sends them again.")
@shows_answer(_show_failure)
def dismiss_failure(scheduler: Scheduler, failure_id: str, **given: Any) -> Failure:
    """Take a failure out of the verdict."""
    return scheduler.dismiss_failure(failure_id, **given)


def _show_redrive(found: RedriveProgress) -> None:
    say(f"{found.state}: {found.sent} of {found.planned} are due again, {found.skipped} left dead letters")
    if found.reason:
        say(f"  {found.reason}")


@failures.command("resend")
@click.argument("failure_id")
@click.option("--which", type=click.Choice(["all", "newest_of_each_schedule", "not_too_late"]))
@click.option("--when", type=click.Choice(["now", "receiver_answers"]), help="Now, or when it answers again.")
@click.option(
    "--rate", type=click.FloatRange(min=0, min_open=True), metavar="A_SECOND", help="How many a second."
)
@shows_answer(_show_redrive)
def resend(scheduler: Scheduler, failure_id: str, **given: Any) -> RedriveProgress:
    """Have beats send a failure's dead letters again.

    The id of the redrive is what `redrive-show` and `redrive-stop` take.
    """
    redrive_id = scheduler.start_redrive(cause=failure_id, **given)
    say(f"redrive {redrive_id}")
    return scheduler.get_redrive(redrive_id)


@failures.command("redrive-show")
@click.argument("redrive_id")
@shows_answer(_show_redrive)
def show_redrive(scheduler: Scheduler, redrive_id: str) -> RedriveProgress:
    """Show how far a redrive has come."""
    return scheduler.get_redrive(redrive_id)


@failures.command("redrive-stop")
@click.argument("redrive_id")
@shows_answer(_show_redrive)
def stop_redrive(scheduler: Scheduler, redrive_id: str) -> RedriveProgress:
    """Stop a redrive: nothing more is sent."""
    scheduler.stop_redrive(redrive_id)
    return scheduler.get_redrive(redrive_id)
