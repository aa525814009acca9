"""`scheduler completion`: the shell completes commands and options."""

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from scheduler_app.cli.output import say

_SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_SCHEDULER_COMPLETE"


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
    script = _script(context.find_root().command, shell)
    if what == "show":
        click.echo(script)
        return
    path = _place(shell)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, encoding="utf-8")
    say(f"{path} is written; new shells complete `scheduler`")
    if shell == "zsh":
        say(f"~/.zshrc must have, before compinit: fpath=({path.parent} $fpath)")


def _script(command: click.Command, shell: str) -> str:
    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"this click knows no completion for {shell}")
    made = kind(command, {}, "scheduler", _VARIABLE)
    return str(made.source_template % made.source_vars())


def _place(shell: str) -> Path:
    """Where the shell looks for the completions of this user."""
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return {
        "bash": data / "bash-completion" / "completions" / "scheduler",
        "zsh": data / "zsh" / "site-functions" / "_scheduler",
        "fish": config / "fish" / "completions" / "scheduler.fish",
    }[shell]
