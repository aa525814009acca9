"""`scheduler tail`: what happens, as it happens."""

import time
from collections import OrderedDict
from collections.abc import Iterable
from datetime import timedelta
from itertools import islice
from typing import Any, NamedTuple

import click

from scheduler_app.cli.client_options import json_option, with_client
from scheduler_app.cli.event_filters import event_filters
from scheduler_app.cli.output import say_result, visible_json
from scheduler_app.client import Event, Scheduler, SchedulerError
from scheduler_app.clock import clock

#: Events whose newest lines are looked for at each time, and that are remembered.
LOOKED_AT = 200
REMEMBERED = 10_000
#: Events to come are made ahead; those are shown as soon as something happens to them.
AHEAD = timedelta(seconds=5)


class Line(NamedTuple):
    """A line of an event's history."""

    time: str
    event: str
    status: str
    message: str


class Seen:
    """How many lines of which events were shown; the oldest are forgotten."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, int] = OrderedDict()

    def fresh(self, event: Event) -> list[Line]:
        """The lines that were not shown before."""
        name, lines = event["_id"], event.get("status") or ()
        shown = self._lines.get(name, 0)
        self._lines[name] = len(lines)
        self._lines.move_to_end(name)
        while len(self._lines) > REMEMBERED:
            self._lines.popitem(last=False)
        return [
            Line(str(each.get("time", "")), name, str(each.get("status", "")), str(each.get("message", "")))
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
@json_option
@with_client
def tail(scheduler: Scheduler, lines: int, follow: bool, every: float, as_json: bool, **filters: Any) -> None:
    """Show the last lines of events' histories, and then each new one as it is written, until Ctrl-C.

    Each line is a time, a state, an event and what happened.
    """
    seen = Seen()
    try:
        found = _fresh(scheduler, filters, seen)
        _show(found[-lines:] if lines else [], as_json)
        while follow:
            time.sleep(every)
            try:
                found = _fresh(scheduler, filters, seen)
            except SchedulerError as error:
                # An API that is away comes back; what it refuses once, it refuses again.
                if error.status is not None and error.status < 500:
                    raise
                click.echo(f"Error: {error}", err=True)
                continue
            _show(found, as_json)
    except KeyboardInterrupt:
        if not follow:
            raise


def _fresh(scheduler: Scheduler, filters: dict[str, Any], seen: Seen) -> list[Line]:
    given = dict(filters)
    if given["before"] is None and not given["timezone"]:
        given["before"] = clock.now() + AHEAD
    events = islice(scheduler.events(**given), LOOKED_AT)
    return in_order(line for event in events for line in seen.fresh(event))


def in_order(lines: Iterable[Line]) -> list[Line]:
    """By time, and by event at the same time; the lines of one event keep their order."""
    return sorted(lines, key=lambda line: (_with_fraction(line.time), line.event))


def _with_fraction(time_shown: str) -> str:
    """A time that compares as text: on a whole second the API shows no fraction."""
    return time_shown if "." in time_shown else time_shown.replace("Z", ".000Z")


def _show(lines: list[Line], as_json: bool) -> None:
    for line in lines:
        if as_json:
            say_result(visible_json(line._asdict()))
        else:
            say_result(f"{line.time}  {line.status.ljust(12)}  {line.event}  {line.message}".rstrip())
