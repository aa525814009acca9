"""`scheduler profile`: servers and their keys by name."""

import click

from scheduler_app.cli.command_group import CommandGroup
from scheduler_app.cli.output import say, show_json, table
from scheduler_app.cli.profiles import (
    DEFAULT,
    Profile,
    check_name,
    profiles_path,
    read_profiles,
    write_profiles,
)


@click.group(cls=CommandGroup)
def profile() -> None:
    """Keep servers and their keys by name, in a file that others cannot read.

    Commands use the profile called `default`, or that of --profile or SCHEDULER_PROFILE.
    """


@profile.command("set")
@click.argument("name", default=DEFAULT)
@click.option("--url", required=True, help="The address of the API: https://scheduler.example.com.")
@click.option("--api-key", help="[default: it is asked for, and not shown]")
def set_profile(name: str, url: str, api_key: str | None) -> None:
    """Add a profile, or replace it."""
    check_name(name)
    if not url.startswith(("http://", "https://")):
        raise click.UsageError("--url must begin with https:// or http://")
    if api_key is None:
        api_key = click.prompt("API key (empty for none)", default="", hide_input=True, show_default=False)
    write_profiles(read_profiles() | {name: Profile(url, api_key or None)})
    say(f"{name} is kept in {profiles_path()}")


@profile.command("list")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def list_profiles(as_json: bool) -> None:
    """List the profiles, without their keys."""
    found = read_profiles()
    if as_json:
        show_json({name: {"url": each.url, "has_key": bool(each.api_key)} for name, each in found.items()})
        return
    rows = [[name, each.url, "yes" if each.api_key else "no"] for name, each in found.items()]
    table(["name", "url", "key"], rows, unbroken=("name", "url"))


@profile.command("remove")
@click.argument("name")
def remove_profile(name: str) -> None:
    """Remove a profile and its key."""
    found = read_profiles()
    if name not in found:
        raise click.UsageError(f"there is no profile {name!r}")
    write_profiles({each: kept for each, kept in found.items() if each != name})
    say(f"{name} is removed")
