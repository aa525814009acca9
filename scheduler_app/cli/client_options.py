"""The options, the client and the errors of the commands that talk to an API, local or remote."""

import functools
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from scheduler_app.cli.click_extensions import Command, options
from scheduler_app.cli.output import be_quiet
from scheduler_app.cli.profiles import chosen_profile
from scheduler_app.cli.run_file import running_api
from scheduler_app.client import Scheduler, SchedulerError
from scheduler_app.domain.masking import visible

DEFAULT_URL = "http://127.0.0.1:8080"
#: A person waits: no request is sent again later than this.
GIVE_UP_SECONDS = 8.0
#: Where `scheduler up` keeps its data by default, and the file that says where its API is.
_DATA = Path("data")


class RequestFailed(click.ClickException):
    """The API's own sentence, what it says about each field, and in which ways a text can be read.
    `hint` says what of the command's own settings led there."""

    def __init__(self, error: SchedulerError, hint: str | None = None) -> None:
        # Where only one field is wrong, the sentence itself is about that field.
        of_fields = [f"  {field.get('pointer', '')}: {field.get('detail', '')}" for field in error.errors]
        lines = [
            str(error),
            *(of_fields if len(of_fields) > 1 else []),
            *(line for reading in error.readings for line in _reading(reading)),
            *([] if hint is None else [hint]),
        ]
        super().__init__(visible("\n".join(lines)))


def _reading(reading: Mapping[str, Any]) -> list[str]:
    """One way to read a text, what would say it without doubt, and when it runs."""
    rule = str(reading.get("recurrence") or reading.get("run_at") or "")
    given = f'--rrule "{rule}"' if "recurrence" in reading else f"--at {rule}"
    local = ", ".join(str(each.get("local")) for each in reading.get("occurrences", ()))
    return [f"  {reading.get('description', '')}", f"    {given.replace(chr(10), ' ')}", f"    {local}"]


def with_client(command: Command, *, beside: str | None = None) -> Command:
    """Adds the options that say where the API is, and passes the command `scheduler`, a client of it.

    `beside` is the option or argument by which the command may set the URL of a receiver: --url is refused
    then, since a person who means the receiver's URL would send the key there.
    """

    @click.option("--url", "short_url", help="The same as --api-url.", hidden=beside is not None)
    @click.option(
        "--api-url",
        envvar="SCHEDULER_URL",
        help="The API's address.  [SCHEDULER_URL; default: the profile's, that of `scheduler up` in"
        f" ./{_DATA}, or {DEFAULT_URL}]",
    )
    @click.option(
        "--api-key",
        envvar="SCHEDULER_API_KEY",
        help="[SCHEDULER_API_KEY, which other users cannot see in the list of processes]",
    )
    @click.option(
        "--tenant",
        envvar="SCHEDULER_TENANT",
        help="The tenant in which a key of the installation acts.  [SCHEDULER_TENANT; default: default]",
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
        api_url: str | None,
        short_url: str | None,
        api_key: str | None,
        tenant: str | None,
        profile_name: str | None,
        quiet: bool,
        **arguments: Any,
    ) -> None:
        if short_url and beside:
            raise click.UsageError(
                f"--url may mean two things here: {beside} is what is called, --api-url the API's address"
            )
        url = short_url or api_url
        if quiet:
            be_quiet()
        known = None if url else chosen_profile(profile_name)
        found = None if url or known else running_api(_DATA)
        if known:
            # The key of a profile goes to the server of that profile alone.
            url, api_key = known.url, api_key or known.api_key
        elif not url:
            # In the API's own container: a given address, or that of a profile, is not sent these keys.
            api_key = api_key or _key_of_this_machine()
        try:
            address = url or found or DEFAULT_URL
            with Scheduler(
                address, api_key, tenant=tenant or None, give_up_seconds=GIVE_UP_SECONDS
            ) as scheduler:
                command(scheduler, **arguments)
        except SchedulerError as error:
            hint = None
            if error.status is None:
                hint = _address_source(found)
            elif error.status == 401:
                hint = _key_source(api_key, known is not None)
            raise RequestFailed(error, hint) from None
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    return call


def _key_of_this_machine() -> str | None:
    """The first key of API_KEYS that may write, if the environment has that setting."""
    if "API_KEYS" not in os.environ:
        return None
    # Reading settings loads a parser of YAML, which most commands do not need.
    from scheduler_app.config.api_keys import read_key
    from scheduler_app.domain.api_key import KeyScope

    for entry in os.environ["API_KEYS"].split(","):
        with suppress(ValueError):
            if KeyScope.WRITE in (known := read_key(entry.strip())).scopes:
                return known.key
    return None


def _address_source(found: str | None) -> str | None:
    """Says where the address comes from, when the API does not answer and the user has not given one."""
    if found is None:
        return None
    return f"That is the address of the `scheduler up` in ./{_DATA}: start it again, or give --api-url."


def _key_source(api_key: str | None, from_profile: bool) -> str:
    """Says what to set where the API does not take the key."""
    if not api_key:
        return (
            "No key was sent: give --api-key, set SCHEDULER_API_KEY, or keep one by `scheduler profile set`."
        )
    source = click.get_current_context().get_parameter_source("api_key")
    given = {ParameterSource.COMMANDLINE: "--api-key", ParameterSource.ENVIRONMENT: "SCHEDULER_API_KEY"}
    default = "the profile" if from_profile else "--api-key"
    return f"The key of {given.get(source, default) if source else default} is not one of the API's API_KEYS."


def is_refusal(error: SchedulerError) -> bool:
    """Whether the API refuses: what it refuses once, it refuses again. An API that is away comes back."""
    return error.status is not None and error.status < 500


json_option = click.option("--json", "as_json", is_flag=True, help="The API's answer, for programs.")
#: A client of the API, and whether its answer is to be printed as it is: `as_json`.
with_client_and_json = options(json_option, with_client)
limit_option = click.option(
    "--limit", type=click.IntRange(1), default=20, show_default=True, help="Show no more than this."
)
