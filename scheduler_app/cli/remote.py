"""What the commands share that speak to an API, here or elsewhere."""

import functools
from collections.abc import Callable
from typing import Any

import click

from scheduler_app.client import Scheduler, SchedulerError
from scheduler_app.domain.text import visible

DEFAULT_URL = "http://127.0.0.1:8080"


class Refused(click.ClickException):
    """The API's own sentence, and what it says of each field."""

    def __init__(self, error: SchedulerError) -> None:
        # Of one field the sentence speaks already.
        of_fields = [f"  {field.get('pointer', '')}: {field.get('detail', '')}" for field in error.errors]
        super().__init__(visible("\n".join([str(error), *(of_fields if len(of_fields) > 1 else [])])))


def remote(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command `scheduler`, a client, and the options that say where."""

    @click.option(
        "--url", envvar="SCHEDULER_URL", default=DEFAULT_URL, help=f"[SCHEDULER_URL; default: {DEFAULT_URL}]"
    )
    @click.option(
        "--api-key", envvar="SCHEDULER_API_KEY", help="[SCHEDULER_API_KEY: others cannot see that one]"
    )
    @functools.wraps(command)
    def with_client(url: str, api_key: str | None, **arguments: Any) -> None:
        try:
            with Scheduler(url, api_key) as scheduler:
                command(scheduler, **arguments)
        except SchedulerError as error:
            raise Refused(error) from None
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    return with_client


as_json = click.option("--json", "as_json", is_flag=True, help="As the API says it, for programs.")
limit = click.option(
    "--limit", type=click.IntRange(1), default=20, show_default=True, help="How many at most."
)
