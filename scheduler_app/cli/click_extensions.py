"""What the commands add to click: a group whose help names each command by a whole sentence, options that
several commands have, and the errors that end a command.
"""

from collections.abc import Callable
from typing import Any

import click

#: A function that becomes a command, and what adds options to it.
Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


def options(*decorators: Decorator) -> Decorator:
    """Adds several options at once, in the order in which help shows them."""

    def decorate(command: Command) -> Command:
        for add in reversed(decorators):
            command = add(command)
        return command

    return decorate


class CommandGroup(click.Group):
    """click cuts the sentences of its list to a line each, which then end in "..."; here they are wrapped."""

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        commands = ((name, self.get_command(context, name)) for name in self.list_commands(context))
        rows = [
            (name, command.get_short_help_str(limit=_WHOLE))
            for name, command in commands
            if command is not None and not command.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


#: Characters, more than any sentence has.
_WHOLE = 1_000


#: The exit status of wrong usage (`EX_USAGE` of sysexits.h).
USAGE = 64


class CannotStart(click.ClickException):
    """A precondition failed before the command started; the message is one sentence that names the remedy."""

    exit_code = 1
