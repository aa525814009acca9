"""What the commands share that speak to an API, here or elsewhere."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from scheduler_app.cli.run_file import running_api
from scheduler_app.client import Scheduler, SchedulerError
from scheduler_app.domain.text import visible

DEFAULT_URL = "http://127.0.0.1:8080"
#: Where `scheduler up` keeps its data unless it is told otherwise, and what it writes down there.
_DATA = Path("data")


class Refused(click.ClickException):
    """The API's own sentence, and what it says of each field."""

    def __init__(self, error: SchedulerError, said_by: str | None = None) -> None:
        # Of one field the sentence speaks already.
        of_fields = [f"  {field.get('pointer', '')}: {field.get('detail', '')}" for field in error.errors]
        where = [] if said_by is None else [said_by]
        super().__init__(visible("\n".join([str(error), *(of_fields if len(of_fields) > 1 else []), *where])))


def remote(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command `scheduler`, a client, and the options that say where."""

    @click.option(
        "--url",
        envvar="SCHEDULER_URL",
        help=f"[SCHEDULER_URL; default: that of `scheduler up` in ./{_DATA}, or {DEFAULT_URL}]",
    )
    @click.option(
        "--api-key", envvar="SCHEDULER_API_KEY", help="[SCHEDULER_API_KEY: others cannot see that one]"
    )
    @functools.wraps(command)
    def with_client(url: str | None, api_key: str | None, **arguments: Any) -> None:
        found = None if url else running_api(_DATA)
        try:
            with Scheduler(url or found or DEFAULT_URL, api_key) as scheduler:
                command(scheduler, **arguments)
        except SchedulerError as error:
            raise Refused(error, _where_else(found) if error.status is None else None) from None
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    return with_client


def _where_else(found: str | None) -> str | None:
    """For an API that does not answer at an address that the user has not given."""
    if found is None:
        return None
    return f"That is the address of the `scheduler up` in ./{_DATA}: start it again, or give --url."


as_json = click.option("--json", "as_json", is_flag=True, help="As the API says it, for programs.")
limit = click.option(
    "--limit", type=click.IntRange(1), default=20, show_default=True, help="How many at most."
)
