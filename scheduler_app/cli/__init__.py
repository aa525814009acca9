"""The command `scheduler`: a file for each command."""

import click

from scheduler_app import __version__
from scheduler_app.cli.up import up


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="scheduler")
def main() -> None:
    """RRule Scheduler: HTTP callbacks at every occurrence of an RFC 5545 rule."""


main.add_command(up)
