"""The help of every group and command, as a terminal of 80 columns shows it."""

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from scheduler_app.cli import main


def groups(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from groups(command, (*path, name))


@pytest.mark.parametrize("path", [*groups(main)], ids=" ".join)
def test_no_sentence_of_a_list_of_commands_is_cut(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(main, [*path, "--help"], terminal_width=80).output
    commands = shown.partition("Commands:")[2]
    assert commands
    assert "..." not in commands
    assert "…" not in commands
    assert max(map(len, shown.splitlines())) <= 80
