"""Errors that end a command."""

import click

#: The exit status of wrong usage (`EX_USAGE` of sysexits.h).
USAGE = 64


class CannotStart(click.ClickException):
    """A precondition failed before the command started; the message is one sentence that names the remedy."""

    exit_code = 1
