"""`--watch`: a command that shows something shows it again and again."""

import functools
import time
from collections.abc import Callable
from typing import Any

import click

from scheduler_app.client import SchedulerError

SECONDS = 2.0


def watchable(command: Callable[..., None]) -> Callable[..., None]:
    """Adds --watch to a command that takes a client first."""

    @click.option(
        "--watch",
        is_flag=False,
        flag_value=SECONDS,
        type=click.FloatRange(0.5, 3600),
        metavar="[SECONDS]",
        help=f"Show it again every {SECONDS:g} seconds (or as often as given), until Ctrl-C.",
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
                    # An API that is away comes back; what it refuses once, it refuses again.
                    if error.status is not None and error.status < 500:
                        raise
                    click.echo(f"Error: {error}", err=True)
                time.sleep(watch)
        except KeyboardInterrupt:
            return

    return call
