"""`scheduler events`, `history`, `failed`, `redrive`, `cancel` and `tail`: events, and the dead letters among
them.
"""

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import partial
from itertools import count, islice
from typing import Any, NamedTuple

import click

from scheduler_app.cli.bulk import edit_many, for_each, ids_argument, yes_option
from scheduler_app.cli.client_options import is_refusal, limit_option, with_client_and_json
from scheduler_app.cli.listing import event_table, outcome, shows_list, watchable
from scheduler_app.cli.options import event_filters
from scheduler_app.cli.output import (
    ProgressBar,
    say,
    say_result,
    show_answer,
    table,
    visible_json,
    with_progress,
)
from scheduler_app.client import Event, Scheduler, SchedulerError
from scheduler_app.clock import clock


@click.command("events")
@event_filters
@click.option("--state", help="Only those in this state, or in one of several separated by commas.")
@shows_list(event_table, watch=True)
def list_events(scheduler: Scheduler, **filters: Any) -> Iterable[Event]:
    """List events, newest run time first, those to come included."""
    return with_progress(scheduler.events(**filters), "read")


@click.command()
@click.argument("schedule_id")
@click.option("--include-cancelled", is_flag=True, help="Show cancelled events, too.")
@limit_option
@with_client_and_json
@watchable
def history(
    scheduler: Scheduler, schedule_id: str, include_cancelled: bool, limit: int, as_json: bool
) -> None:
    """Show a schedule's events, newest first, also after it was deleted."""
    found = scheduler.history(schedule_id, include_cancelled=include_cancelled)
    show_answer(list(islice(with_progress(found, "read"), limit)), as_json, event_table)


def _show_dead_letters(found: Sequence[Event]) -> None:
    table(
        ["event", "run time", "attempts", "why"],
        [[each["_id"], each["run_time"], each.get("attempt", ""), _failure_reason(each)] for each in found],
        unbroken=("event", "run time"),
        key="event",
    )


def _failure_reason(event: Event) -> str:
    attempts = event.get("attempts")
    last = attempts[-1] if attempts else {}
    code, error = last.get("status_code"), last.get("error")
    said = " ".join(str(each) for each in (code, error) if each is not None)
    return said or outcome(event)


@click.command()
@event_filters
@shows_list(_show_dead_letters, watch=True)
def failed(scheduler: Scheduler, **filters: Any) -> Iterable[Event]:
    """List the dead letters (events that ended in error), newest first; `redrive` sends them again."""
    return with_progress(scheduler.events(state="error", **filters), "read")


@click.command()
@ids_argument("EVENT_ID", required=False)
@event_filters
@click.option("--all", "all_", is_flag=True, help="Every dead letter there is.")
@click.option("--dry-run", is_flag=True, help="Only count them.")
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    metavar="A_SECOND",
    help="Send as many in a second, instead of all at once: 5, or 0.5 for one in two seconds.",
)
@yes_option
@with_client_and_json
def redrive(
    scheduler: Scheduler,
    ids: tuple[str, ...],
    dry_run: bool,
    rate: float | None,
    as_json: bool,
    yes: bool,
    **filters: Any,
) -> None:
    """Send dead letters again, by their ids or all that match.

    Dead letters are events that ended in error. A dead letter that is sent again gets the full number of
    attempts.
    """
    many = any(value for name, value in filters.items() if name != "timezone")
    if ids and (many or filters["timezone"]):
        raise click.UsageError("give ids of events, or options that choose many, not both")
    if ids and (dry_run or rate is not None):
        raise click.UsageError("--dry-run and --rate are for options that choose many, not for ids")
    if ids:
        for_each(ids, scheduler.redrive, as_json, lambda event: say(f"redriven {event['_id']}"))
    elif many:
        letters = ("dead letter", "dead letters")
        redrive_many = partial(scheduler.redrive_many, rate=rate)
        edit_many("redrive", "redriven", redrive_many, filters, as_json, yes, letters, dry_run=dry_run)
    else:
        raise click.UsageError(
            "give an event's id, or --schedule, --tag, --origin, --status-code, --error, --from, --to,"
            " or --all"
        )


@click.command("cancel")
@ids_argument("EVENT_ID", required=False)
@click.option("--schedule", "schedule_id", help="All events of this schedule that wait now.")
@yes_option
@with_client_and_json
def cancel_events(
    scheduler: Scheduler, ids: tuple[str, ...], schedule_id: str | None, yes: bool, as_json: bool
) -> None:
    """Cancel events that are neither running nor finished; their schedule stays active.

    To end a schedule use `delete`, to interrupt it `pause`.
    """
    if bool(ids) == (schedule_id is not None):
        raise click.UsageError("give ids of events, or --schedule")
    if schedule_id is None:
        for_each(ids, scheduler.cancel_event, as_json, lambda event: say(f"cancelled {event['_id']}"))
        return
    waiting = [each["_id"] for each in scheduler.pending(schedule_id) if each["state"] != "running"]
    if not as_json:
        say(f"{len(waiting)} {'event' if len(waiting) == 1 else 'events'} to cancel")
    if waiting and not yes:
        click.confirm(f"cancel {'it' if len(waiting) == 1 else 'them'}?", abort=True, err=True)
    with ProgressBar("cancelled", len(waiting)) as progress:
        done = count(1)

        def cancel(event_id: str) -> Event:
            event = scheduler.cancel_event(event_id)
            progress(next(done))
            return event

        if waiting:
            for_each(waiting, cancel, as_json, lambda event: say(f"cancelled {event['_id']}"))


#: Events whose newest lines are looked for at each time, and that are remembered.
TAIL_EVENTS = 200
TAIL_REMEMBERED = 10_000
#: Events to come are made ahead; those are shown as soon as something happens to them.
TAIL_AHEAD = timedelta(seconds=5)


class HistoryLine(NamedTuple):
    """A line of an event's history."""

    time: str
    event: str
    status: str
    message: str


class ShownLines:
    """How many lines of which events were shown; the oldest are forgotten."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, int] = OrderedDict()

    def fresh(self, event: Event) -> list[HistoryLine]:
        """The lines that were not shown before."""
        name, lines = event["_id"], event.get("status") or ()
        shown = self._lines.get(name, 0)
        self._lines[name] = len(lines)
        self._lines.move_to_end(name)
        while len(self._lines) > TAIL_REMEMBERED:
            self._lines.popitem(last=False)
        return [
            HistoryLine(
                str(each.get("time", "")), name, str(each.get("status", "")), str(each.get("message", ""))
            )
            for each in list(lines)[shown:]
        ]


@click.command()
@event_filters
@click.option("--state", help="Only events in this state, or in one of several separated by commas.")
@click.option("-n", "--lines", type=click.IntRange(0, 1_000), default=10, show_default=True)
@click.option("--follow/--no-follow", default=True, help="Go on until Ctrl-C, or only show the last lines.")
@click.option(
    "--every", type=click.FloatRange(0.2, 3600), default=1.0, show_default=True, help="Seconds between looks."
)
@with_client_and_json
def tail(scheduler: Scheduler, lines: int, follow: bool, every: float, as_json: bool, **filters: Any) -> None:
    """Show the last lines of events' histories, and then each new one as it is written, until Ctrl-C.

    Each line is a time, a state, an event and what happened.
    """
    seen = ShownLines()
    try:
        found = _new_lines(scheduler, filters, seen)
        _show_lines(found[-lines:] if lines else [], as_json)
        while follow:
            time.sleep(every)
            try:
                found = _new_lines(scheduler, filters, seen)
            except SchedulerError as error:
                if is_refusal(error):
                    raise
                click.echo(f"Error: {error}", err=True)
                continue
            _show_lines(found, as_json)
    except KeyboardInterrupt:
        if not follow:
            raise


def _new_lines(scheduler: Scheduler, filters: dict[str, Any], seen: ShownLines) -> list[HistoryLine]:
    given = dict(filters)
    if given["before"] is None and not given["timezone"]:
        given["before"] = clock.now() + TAIL_AHEAD
    events = islice(scheduler.events(**given), TAIL_EVENTS)
    return lines_in_order(line for event in events for line in seen.fresh(event))


def lines_in_order(lines: Iterable[HistoryLine]) -> list[HistoryLine]:
    """By time, and by event at the same time; the lines of one event keep their order."""
    return sorted(lines, key=lambda line: (_with_fraction(line.time), line.event))


def _with_fraction(time_shown: str) -> str:
    """A time that compares as text: on a whole second the API shows no fraction."""
    return time_shown if "." in time_shown else time_shown.replace("Z", ".000Z")


def _show_lines(lines: list[HistoryLine], as_json: bool) -> None:
    for line in lines:
        if as_json:
            say_result(visible_json(line._asdict()))
        else:
            say_result(f"{line.time}  {line.status.ljust(12)}  {line.event}  {line.message}".rstrip())
