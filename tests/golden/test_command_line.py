"""What the commands print, as text and as JSON, and their exit statuses."""

from collections.abc import Iterator
from dataclasses import dataclass

import click
import pytest

from tests.golden.conftest import Bench
from tests.golden.golden_files import compare
from tests.golden.product import main
from tests.golden.run import commands
from tests.integration.actions.receiver import says

pytestmark = pytest.mark.long

#: Commands that no recorded run has, and why.
NOT_RECORDED = {
    "demo": "fills a deployment of its own with what it draws: tests/acceptance and docs/tutorial.md",
    "doctor": "prints what it measures of this host and its servers: tests/acceptance/test_doctor.py",
    **dict.fromkeys(
        (
            *(f"keys {verb}" for verb in ("create", "list", "revoke", "rotate")),
            *(f"tenant {verb}" for verb in ("delete", "deletion", "export", "import", "list", "set", "show")),
            "tags delete",
        ),
        "print keys and ids that are drawn: tests/integration/client/test_keys.py",
    ),
    **dict.fromkeys(
        ("login", "logout", "people list", "people sign-out"),
        "take a provider and a browser: tests/integration/client/test_login.py",
    ),
    "reseal": "works on settings and not on an API: tests/integration/store/test_resealing.py",
    "up": "starts servers and does not end: tests/acceptance/test_up.py",
    "witness": "a process of its own, which needs MongoDB and no API: tests/integration/witness",
}


@dataclass
class Typed:
    pages: dict[str, str]
    ran: list[list[str]]


@pytest.fixture(scope="module")
def typed(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Typed]:
    folder = tmp_path_factory.mktemp("commands")
    with bench.product("commands") as (product, journal, steady), pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        journal.script("/fails", says("422 Unprocessable Content", body=b"no"))
        with product.listening() as url:
            steady.name(url, "http://api")
            steady.name(str(folder), "<folder>")
            pages, ran = commands.record(product, url, folder, journal.url(""))
        yield Typed({f"{topic}.txt": steady(text) for topic, text in pages.items()}, ran)


def test_every_command_prints_what_is_recorded(typed: Typed) -> None:
    compare("command-line", typed.pages)


def _commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))
        elif command is not None:
            yield (*path, name), command


def test_every_command_is_run_in_each_form(typed: Typed) -> None:
    missing = []
    for path, command in _commands(main):
        runs = [ran for ran in typed.ran if ran[: len(path)] == list(path)]
        has_json = any("--json" in each.opts for each in command.params)
        forms = {"--json" in ran for ran in runs}
        if forms != ({True, False} if has_json else {False}) and " ".join(path) not in NOT_RECORDED:
            missing.append(f"{' '.join(path)}: {'never run' if not runs else 'in one form only'}")
    assert not missing
    assert NOT_RECORDED.keys() <= {" ".join(path) for path, _ in _commands(main)}
