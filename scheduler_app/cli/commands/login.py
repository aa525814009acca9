"""`scheduler login`, `logout` and `people`: the command line acts as a person who signs in in a browser.

The token that it gets is kept as the key of a profile, in a file that others cannot read.
"""

import hmac
import secrets
import time
import webbrowser
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import click

from scheduler_app.cli.click_extensions import CannotStart, CommandGroup
from scheduler_app.cli.client_options import with_client
from scheduler_app.cli.listing import shows_answer
from scheduler_app.cli.output import say, table
from scheduler_app.cli.profiles import (
    DEFAULT,
    Profile,
    check_name,
    profiles_path,
    read_profiles,
    write_profiles,
)
from scheduler_app.client import Json, Scheduler, SchedulerError
from scheduler_app.domain.command_line import TOKEN_PREFIX, challenge_of, new_verifier, typed_code_of

#: As long as what a browser has let in waits.
PATIENCE_SECONDS = 600.0
POLL_SECONDS = 3.0
#: A browser that connects and says nothing is left alone after this.
_BROWSER_SECONDS = 5.0
_PATH = "/sign-in/command-line"


@click.command()
@click.option(
    "--device",
    is_flag=True,
    help="Show a code to type in the browser of another machine, where this one has none.",
)
@with_client
def login(scheduler: Scheduler, device: bool) -> None:
    """Sign in with your company's account, in a browser; commands act as you until that ends.

    The token is kept in the profile of --profile, `default` unless given.
    """
    name = _profile_name()
    verifier = new_verifier()
    if device:
        say(f"Open {scheduler.url}{_PATH} in a browser, and type this code:")
        say(f"  {typed_code_of(challenge_of(verifier))}")
        answer = _wait_to_be_let_in(scheduler, verifier)
    else:
        code = _code_from_browser(scheduler.url, challenge_of(verifier))
        answer = scheduler.redeem_verifier(verifier, code=code)
    write_profiles(read_profiles() | {name: Profile(scheduler.url, answer["token"])})
    say(f"signed in as {answer['name']} until {answer['expires_at']}; kept in {profiles_path()}")


@click.command()
@with_client
def logout(scheduler: Scheduler) -> None:
    """End the sign-in of this command line, and forget its token."""
    name, found = _profile_name(), read_profiles()
    token = found[name].api_key if name in found else None
    if token is None or not token.startswith(TOKEN_PREFIX):
        raise CannotStart(f"the profile {name} is not signed in")
    try:
        scheduler.end_sign_in(token)
    except SchedulerError as error:
        if error.status != 404:
            raise
    write_profiles(found | {name: Profile(found[name].url)})
    say("signed out")


def _profile_name() -> str:
    """The profile that is meant. Raises click.ClickException where it has a key of another kind, which would
    be lost."""
    name: str = click.get_current_context().params.get("profile_name") or DEFAULT
    check_name(name)
    kept = read_profiles().get(name)
    if kept is not None and kept.api_key and not kept.api_key.startswith(TOKEN_PREFIX):
        raise click.UsageError(
            f"the profile {name} has a key: sign in with --profile and another name, or remove the key by"
            f" `scheduler profile remove {name}`"
        )
    return name


def _wait_to_be_let_in(scheduler: Scheduler, verifier: str) -> Json:
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        try:
            return scheduler.redeem_verifier(verifier)
        except SchedulerError as error:
            if error.status != 404:
                raise
        time.sleep(POLL_SECONDS)
    raise click.ClickException(f"nobody has typed the code within {PATIENCE_SECONDS / 60:.0f} minutes")


def _code_from_browser(url: str, challenge: str) -> str:
    """What a browser on this machine brings to a port of ours."""
    # Imported here: no other command needs a server.
    from http.server import BaseHTTPRequestHandler, HTTPServer

    state, brought = secrets.token_urlsafe(16), list[str]()

    class Handler(BaseHTTPRequestHandler):
        timeout = _BROWSER_SECONDS

        def do_GET(self) -> None:
            said = parse_qs(urlsplit(self.path).query)
            code, given = (said.get(each, [""])[0] for each in ("code", "state"))
            if not code or not hmac.compare_digest(given.encode(), state.encode()):
                self.send_error(404)
                return
            brought.append(code)
            body = b"The command line is signed in. You may close this page."
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Its code is nobody else's business."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        server.timeout = 1.0
        asked = {"challenge": challenge, "port": str(server.server_port), "state": state}
        address = f"{url}{_PATH}?{urlencode(asked)}"
        say(f"Sign in in your browser, at {address}")
        webbrowser.open(address)
        until = time.monotonic() + PATIENCE_SECONDS
        while not brought:
            if time.monotonic() > until:
                raise click.ClickException(
                    f"no browser has come within {PATIENCE_SECONDS / 60:.0f} minutes: try --device"
                )
            server.handle_request()
    return brought[0]


@click.group(cls=CommandGroup)
def people() -> None:
    """People who sign in with your company's account."""


def _show_people(found: Sequence[Mapping[str, Any]]) -> None:
    if not found:
        say("Nobody has signed in.")
        return
    rows = [
        [
            each["id"],
            each.get("mail") or each.get("name") or each["subject"],
            "installation" if each.get("installation") else each["tenant"],
            ", ".join(each["scopes"]),
            each["last_seen_at"],
            each.get("last_seen_from", ""),
        ]
        for each in found
    ]
    table(["id", "person", "tenant", "scopes", "last seen", "from"], rows)


@people.command("list")
@shows_answer(_show_people)
def list_people(scheduler: Scheduler) -> Sequence[Json]:
    """Show who has signed in, who was seen last first."""
    return scheduler.people()


@people.command("sign-out")
@click.argument("person_id", metavar="ID")
@with_client
def sign_out(scheduler: Scheduler, person_id: str) -> None:
    """End every sign-in of a person, in browsers and on command lines."""
    say(f"{scheduler.end_person_sessions(person_id)} sign-ins have ended")
