"""`scheduler keys`: keys of the API that are kept in MongoDB."""

import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import click
from click.core import ParameterSource

from scheduler_app.cli.click_extensions import CannotStart, CommandGroup
from scheduler_app.cli.client_options import with_client
from scheduler_app.cli.listing import shows_answer
from scheduler_app.cli.options import duration
from scheduler_app.cli.output import say, say_result, table
from scheduler_app.client import Json, Scheduler
from scheduler_app.clock import clock

SCOPES = ("read", "trigger", "write", "admin")
_scopes = click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    help="What it may do; may be given several times.",
)


@click.group(cls=CommandGroup)
def keys() -> None:
    """Keys of the API that are kept in MongoDB."""


def _show_key(found: Mapping[str, Any]) -> None:
    say(f"{found['id']}: {found['name']} may {', '.join(found['scopes'])}; its key is shown only now:")
    say_result(found["key"])


@keys.command("create")
@click.argument("name")
@_scopes
@click.option("--tag", "tags", multiple=True, help="Only for schedules with such a tag; may be repeated.")
@click.option("--expires-in", type=duration, help="How long it lasts: 90d, 12h; for ever by default.")
@click.option("--requests-per-second", type=float, help="Refuse more requests than that, such as 20 or 0.5.")
@click.option(
    "--admin",
    is_flag=True,
    help="Make one of the installation with every scope, by the settings alone, without the API.",
)
@shows_answer(_show_key)
def create_key(
    scheduler: Scheduler,
    name: str,
    scopes: Sequence[str],
    tags: Sequence[str],
    expires_in: int | None,
    requests_per_second: float | None,
    admin: bool,
) -> Json:
    """Make a key, which is shown once; it acts in the tenant of --tenant."""
    ends = None if expires_in is None else clock.now() + timedelta(seconds=expires_in)
    if admin:
        tenant_source = click.get_current_context().get_parameter_source("tenant")
        is_narrowed = bool(scopes or tags) or requests_per_second is not None
        if is_narrowed or tenant_source is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                "--admin has every scope in every tenant and no limit: leave --scope, --tag,"
                " --requests-per-second and --tenant out"
            )
        # Imported here: it imports the driver of MongoDB, for which the other commands need not wait.
        from scheduler_app.cli.first_key import create_first_key

        return create_first_key(name, ends)
    if not scopes:
        raise click.UsageError(f"give --scope: {', '.join(SCOPES)}")
    return scheduler.create_key(
        name, scopes, tags=tags, expires_at=ends, requests_per_second=requests_per_second
    )


def _show_keys(found: Sequence[Mapping[str, Any]]) -> None:
    if not found:
        say("There is no stored key; those of API_KEYS are in the settings.")
        return
    rows = [
        [
            each["id"],
            each["name"],
            "installation" if each.get("installation") else str(each["tenant"]),
            ", ".join(each["scopes"]),
            ", ".join(each.get("tags", ())),
            each.get("expires_at", ""),
            each.get("last_used_at", "never"),
            each.get("last_used_from", ""),
        ]
        for each in found
    ]
    table(["id", "name", "tenant", "scopes", "tags", "expires", "last used", "from"], rows)


@keys.command("list")
@shows_answer(_show_keys)
def list_keys(scheduler: Scheduler) -> Sequence[Json]:
    """Show the stored keys, the newest first, and when each was used last."""
    return scheduler.keys()


@keys.command("rotate")
@click.argument("key_id", metavar="ID")
@click.option("--overlap", type=duration, help="How long the old key still opens: 1h, 7d; 0s by default.")
@shows_answer(_show_key)
def rotate_key(scheduler: Scheduler, key_id: str, overlap: int | None) -> Json:
    """Replace a key by another one with the same id, which is shown once."""
    return scheduler.rotate_key(key_id, overlap=None if overlap is None else timedelta(seconds=overlap))


@keys.command("revoke")
@click.argument("key_id", metavar="ID", required=False)
@click.option("--leaked", is_flag=True, help="Read the key itself from standard input; no other is needed.")
@with_client
def revoke_key(scheduler: Scheduler, key_id: str | None, leaked: bool) -> None:
    """Delete a key; within five seconds it opens nothing."""
    if leaked == (key_id is not None):
        raise click.UsageError("give an id, or --leaked and the key itself on standard input")
    if key_id is not None:
        scheduler.revoke_key(key_id)
    else:
        text = sys.stdin.readline(1_000).strip()
        if not text:
            raise CannotStart("standard input has no key: write it there, such as by `< file`")
        scheduler.revoke_leaked_key(text)
    say("deleted; within five seconds it opens nothing")
