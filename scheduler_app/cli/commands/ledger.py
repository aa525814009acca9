"""`scheduler ledger` and `witness`: what was owed in each hour, and the process that finds it out."""

import signal
import socket
from collections.abc import Sequence
from threading import Event
from typing import Any

import click

from scheduler_app.cli.click_extensions import CommandGroup
from scheduler_app.cli.listing import shows_answer, shows_verification
from scheduler_app.cli.output import say, table
from scheduler_app.client import Json, Scheduler

_COLUMNS = ("owed", "completed", "error", "cancelled", "expired", "skipped", "held", "open")
_ALARMING = ("missing", "unexplained")
#: How long the end of the witness waits for what it is sending.
_END_SECONDS = 2.0


@click.group(cls=CommandGroup)
def ledger() -> None:
    """What was owed in each hour, and what became of it."""


def _show_hours(found: Sequence[Json]) -> None:
    if not found:
        say("No hour has a line yet: the witness writes one ten minutes after each hour.")
        return
    names = (*_COLUMNS, *_ALARMING)
    table(
        ["hour", *names],
        [[each["hour"], *(_marked(name, each[name]) for name in names)] for each in found],
        unbroken=("hour",),
    )
    for name in _ALARMING:
        for each in found:
            for event_id in each.get(f"{name}_ids", ()):
                say(f"{name}: {event_id}")


def _marked(name: str, count: int) -> str:
    return f"[bold red]{count}[/]" if count and name in _ALARMING else str(count)


@ledger.command("show")
@click.option("--from", "after", help="The first hour.  [default: a day before --to]")
@click.option("--to", "until", help="Up to when.  [default: now]")
@click.option("--tag", help="What was owed to the schedules with this tag.")
@shows_answer(_show_hours)
def show_ledger(scheduler: Scheduler, **given: Any) -> Sequence[Json]:
    """Show the hours, with the ids of events that are missing or that nothing explains."""
    return [dict(each) for each in scheduler.ledger.hours(**given)]


@ledger.command("verify")
@shows_verification
def verify_ledger(scheduler: Scheduler) -> Json:
    """Read the whole ledger; the exit status is 1 where a line is not as it was written."""
    return dict(scheduler.ledger.verify())


@click.command()
@click.option("--config", help="A configuration file.")
@click.option("--once", is_flag=True, help="Write the lines that are due, and end.")
def witness(config: str | None, once: bool) -> None:
    """Find out what was owed in each hour, by an evaluator of its own, and write it into the ledger. Tell by
    notifications when beats and workers are gone.

    A process of its own: it needs MongoDB, and neither the broker nor workers. It runs until it is stopped;
    any number may run beside each other.
    """
    # Imported here, so that other commands do not wait for it.
    from scheduler_app.config import load_settings
    from scheduler_app.health.startup import check_replica_set, serve_metrics_of, starting
    from scheduler_app.telemetry import configure_logs
    from scheduler_app.telemetry.metrics import Role
    from scheduler_app.watch import Watch, ping_of, stand_in_of
    from scheduler_app.witness.process import WitnessHealth, run, witness_of

    stopped, health = Event(), WitnessHealth()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    with starting():
        settings = load_settings(config)
        configure_logs(settings.log_level, settings.log_format)
        store, ours = witness_of(settings)
        check_replica_set(store)
        serve_metrics_of(settings, health.trouble, Role.WITNESS)
        name = f"witness@{socket.gethostname()}"
        watch = Watch(stand_in_of(settings, store, name), ping_of(settings, store), stopped)
    if not once:
        watch.start()
    try:
        run(ours, stopped, health, once=once)
    finally:
        stopped.set()
        if watch.is_alive():
            watch.join(_END_SECONDS)
        store.close()
