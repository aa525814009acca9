"""What the commands share that show things of the API: answers and lists, `--watch`, events in a table, kill
switches in words.
"""

import functools
import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final

import click

from scheduler_app.cli.click_extensions import Command, Decorator
from scheduler_app.cli.client_options import is_refusal, json_option, limit_option, with_client
from scheduler_app.cli.output import colored, say, show_answer, show_fields, show_json, table
from scheduler_app.client import Event, Json, KillSwitch, Scheduler, SchedulerError


def shows_answer(show: Callable[[Any], None] = show_fields, *, beside: str | None = None) -> Decorator:
    """Adds a client and --json to a command. What the command returns is printed as JSON, or by `show`. For
    `beside` see `with_client`."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def call(scheduler: Scheduler, as_json: bool, **given: Any) -> None:
            show_answer(command(scheduler, **given), as_json, show)

        return json_option(with_client(call, beside=beside))

    return decorate


def shows_list(show: Callable[[Sequence[Any]], None], *, watch: bool = False) -> Decorator:
    """Adds a client, --limit and --json, and with `watch` --watch, to a command that returns rows. The first
    of them are printed as JSON, or by `show`; another line says whether there are more."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def call(scheduler: Scheduler, limit: int, as_json: bool, **given: Any) -> None:
            rows = list(islice(command(scheduler, **given), limit + 1))
            if as_json:
                show_json(rows[:limit])
                return
            show(rows[:limit])
            if len(rows) > limit:
                click.echo(f"There are more: --limit {limit * 2}", err=True)

        return limit_option(json_option(with_client(watchable(call) if watch else call)))

    return decorate


def shows_verification(command: Callable[[Scheduler], Json]) -> Command:
    """Adds a client and --json to a command that reads a chain of lines. The exit status is 1 where one of
    them is not as it was written."""

    @functools.wraps(command)
    def call(scheduler: Scheduler) -> Json:
        found, context = command(scheduler), click.get_current_context()
        if not found["ok"]:
            context.call_on_close(lambda: context.exit(1))
        return found

    return shows_answer(_show_verification)(call)


def _show_verification(found: Json) -> None:
    say(f"{found['lines']} lines are as they were written.")
    if found.get("last_hash"):
        say(f"The last of them has the hash {found['last_hash']}")
    if not found["ok"]:
        say(f"[bold red]Wrong:[/] {found['wrong']}")


WATCH_SECONDS = 2.0


def watchable(command: Command) -> Command:
    """Adds --watch to a command that takes a client first."""

    @click.option(
        "--watch",
        is_flag=False,
        flag_value=WATCH_SECONDS,
        type=click.FloatRange(0.5, 3600),
        metavar="[SECONDS]",
        help=f"Show it again every {WATCH_SECONDS:g} seconds (or as often as given), until Ctrl-C.",
    )
    @functools.wraps(command)
    def call(scheduler: Any, watch: float | None, **arguments: Any) -> None:
        if watch is None:
            command(scheduler, **arguments)
            return
        try:
            while True:
                click.clear()
                try:
                    command(scheduler, **arguments)
                except SchedulerError as error:
                    if is_refusal(error):
                        raise
                    click.echo(f"Error: {error}", err=True)
                time.sleep(watch)
        except KeyboardInterrupt:
            return

    return call


_STATE_COLORS = {
    "completed": "green",
    "error": "red",
    "expired": "yellow",
    "skipped": "yellow",
    "running": "cyan",
}


def event_table(events: Sequence[Event]) -> None:
    """Prints events, a line for each."""
    table(
        ["state", "run time", "attempts", "lag", "outcome", "event"],
        [
            [
                colored(event["state"], _STATE_COLORS),
                event["run_time"],
                event.get("attempt", ""),
                lag(event),
                outcome(event),
                event["_id"],
            ]
            for event in events
        ],
        unbroken=("state", "run time", "event"),
        key="event",
    )


def lag(event: Event) -> str:
    """How late the first attempt was."""
    attempts = event.get("attempts")
    return f"{attempts[0]['lag_ms']:.0f} ms" if attempts and attempts[0].get("lag_ms") is not None else "–"


def outcome(event: Event) -> str:
    """The last line of its history."""
    lines = event.get("status")
    return str(lines[-1].get("message", "")) if lines else ""


#: The API counts held events up to here.
MAX_HELD_COUNTED: Final = 10_000


def kill_switch_name(found: KillSwitch) -> str:
    return next((f"{name} {found[name]}" for name in ("tag", "destination") if name in found), "everything")


def count_text(count: int, noun: str, *, at_least: bool) -> str:
    """`3 events`, `1 event`, or `10,000+ events` where not all of them were counted."""
    return f"{count:,}{'+' if at_least else ''} {noun}{'' if count == 1 and not at_least else 's'}"
