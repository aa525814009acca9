"""The page of the command line, as `--help` prints it."""

import click
from click.testing import CliRunner

from scheduler_app.cli import main

INTRODUCTION = """# The command line

`scheduler` is in `.venv/bin` after `make up`. Commands that talk to an API find it by `--url` or
`SCHEDULER_URL`, and authenticate by `SCHEDULER_API_KEY`. `--json` prints the API's answer, for programs. The
exit status is 0 when the command is done, 1 when it failed, 2 for wrong usage.
"""


def command_line() -> str:
    """Returns the page, with a section for each command."""
    parts = [INTRODUCTION]
    context = click.Context(main)
    for name in main.list_commands(context):
        done = CliRunner().invoke(main, [name, "--help"], prog_name="scheduler", max_content_width=100)
        if done.exit_code:
            raise RuntimeError(f"scheduler {name} --help: {done.output}")
        parts.append(f"## scheduler {name}\n\n```text\n{done.output.strip()}\n```\n")
    return "\n".join(parts)
