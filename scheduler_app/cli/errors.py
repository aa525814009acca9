"""Errors that end a command."""

import click


class CannotStart(click.ClickException):
    """A precondition failed before the command started; the message is one sentence that names the remedy."""

    exit_code = 2
