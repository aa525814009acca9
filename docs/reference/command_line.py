"""The page of the command line, as `--help` prints it."""

from collections.abc import Iterator

import click
from click.testing import CliRunner

from scheduler_app.cli import main

INTRODUCTION = """# The command line

`scheduler` is in `.venv/bin` after `make up`. Commands that talk to an API find it by `--url` or
`SCHEDULER_URL`, and authenticate by `SCHEDULER_API_KEY`. `--json` prints the API's answer, for programs. The
exit status is 0 when the command is done, 1 when it failed, 2 when `apply --plan` found changes, and 64 for
wrong usage. [Operating from a terminal](operating.md) says what all commands have in common.
"""


def command_line() -> str:
    """Returns the page, with a section for each command."""
    return "\n".join([INTRODUCTION, *_sections(main, [])])


def _sections(group: click.Group, path: list[str]) -> Iterator[str]:
    """A section for each command of a group and of the groups in it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        words = [*path, name]
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _sections(command, words)
            continue
        done = CliRunner().invoke(main, [*words, "--help"], prog_name="scheduler", max_content_width=100)
        called = " ".join(words)
        if done.exit_code:
            raise RuntimeError(f"scheduler {called} --help: {done.output}")
        yield f"## scheduler {called}\n\n```text\n{done.output.strip()}\n```\n"
