"""The options, the client and the errors of the commands that talk to an API, local or remote."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from scheduler_app.cli.output import be_quiet
from scheduler_app.cli.profiles import chosen_profile
from scheduler_app.cli.run_file import running_api
from scheduler_app.client import Scheduler, SchedulerError
from scheduler_app.domain.text import visible

DEFAULT_URL = "http://127.0.0.1:8080"
#: Where `scheduler up` keeps its data by default, and the file that says where its API is.
_DATA = Path("data")


class Refused(click.ClickException):
    """The API's own sentence, and what it says about each field."""

    def __init__(self, error: SchedulerError, address_source: str | None = None) -> None:
        # Where only one field is wrong, the sentence itself is about that field.
        of_fields = [f"  {field.get('pointer', '')}: {field.get('detail', '')}" for field in error.errors]
        source = [] if address_source is None else [address_source]
        super().__init__(
            visible("\n".join([str(error), *(of_fields if len(of_fields) > 1 else []), *source]))
        )


def with_client(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that say where the API is, and passes the command `scheduler`, a client of it."""

    @click.option(
        "--url",
        envvar="SCHEDULER_URL",
        help="[SCHEDULER_URL; default: the profile's, that of `scheduler up` in"
        f" ./{_DATA}, or {DEFAULT_URL}]",
    )
    @click.option(
        "--api-key",
        envvar="SCHEDULER_API_KEY",
        help="[SCHEDULER_API_KEY, which other users cannot see in the list of processes]",
    )
    @click.option(
        "--profile",
        "profile_name",
        envvar="SCHEDULER_PROFILE",
        help="A server's name among those of `scheduler profile`.  [SCHEDULER_PROFILE; default: default]",
    )
    @click.option("-q", "--quiet", is_flag=True, help="Print ids alone, and what is wrong.")
    @functools.wraps(command)
    def call(
        url: str | None, api_key: str | None, profile_name: str | None, quiet: bool, **arguments: Any
    ) -> None:
        if quiet:
            be_quiet()
        known = None if url else chosen_profile(profile_name)
        found = None if url or known else running_api(_DATA)
        if known:
            # The key of a profile goes to the server of that profile alone.
            url, api_key = known.url, api_key or known.api_key
        try:
            with Scheduler(url or found or DEFAULT_URL, api_key) as scheduler:
                command(scheduler, **arguments)
        except SchedulerError as error:
            raise Refused(error, _address_source(found) if error.status is None else None) from None
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    return call


def _address_source(found: str | None) -> str | None:
    """Says where the address comes from, when the API does not answer and the user has not given one."""
    if found is None:
        return None
    return f"That is the address of the `scheduler up` in ./{_DATA}: start it again, or give --url."


json_option = click.option("--json", "as_json", is_flag=True, help="The API's answer, for programs.")
limit_option = click.option(
    "--limit", type=click.IntRange(1), default=20, show_default=True, help="Show at most so many."
)
