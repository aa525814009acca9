"""How a command ends that cannot begin."""

import click


class CannotStart(click.ClickException):
    """Something outside is not as it has to be; the message is one sentence that says what would be right."""

    exit_code = 2
