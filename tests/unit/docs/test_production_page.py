"""docs/production.md: its commands would be understood, its units exist, its sizes were measured."""

import re
import shlex
from pathlib import Path

import pytest

from scheduler_app.config.settings import names
from scheduler_app.health.processes import _USED_BY
from tests.containers.deployment import blocks_of_step
from tests.unit.deploy.commands import check_command
from tests.unit.docs.manual import DOCS, ROOT, pages, table

PAGE = DOCS / "production.md"
UNITS = ROOT / "deploy" / "systemd"
BLOCKS = re.findall(
    r"(?:^<!-- run by ([^\n]+) -->\n)?^```bash\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL
)
OF_A_STEP = "make containers: "
#: Programs of the system, which have no parser here.
OF_THE_SYSTEM = {"cp", "date", "for", "done", "grep", "mkdir", "printf", "sleep", "umask"}


def commands() -> list[list[str]]:
    """Each command of the page's blocks, as a shell splits it, without comments and redirections."""
    text = re.sub(r" > \S+", "", "\n".join(block for _, block in BLOCKS).replace("\\\n", " "))
    return [words for line in text.splitlines() if (words := shlex.split(line, comments=True))]


def test_the_page_has_the_commands_of_each_way_to_run_it() -> None:
    first = {words[0] for words in commands()} - OF_THE_SYSTEM
    assert first == {"scheduler", "docker", "systemctl", "systemd-run"}


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_a_command_of_the_page_is_understood(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "all.yaml").touch()
    monkeypatch.chdir(tmp_path)
    match words:
        case ["scheduler", *_]:
            check_command(words)
        case ["docker", "compose", "exec", service, *inside]:
            assert service in services()
            check_command(inside)
        case ["docker", "compose", action, *options]:
            assert action in ("build", "stop", "up")
            named = [each for each in options if each.partition("=")[0] in services()]
            assert all(each.startswith("-") or each in named for each in options), options
        case ["systemd-run", *options]:
            (at,) = (number for number, each in enumerate(options) if each.startswith("/opt/"))
            assert str(Path(options[at]).parent) == "/opt/scheduler/.venv/bin"
            check_command(["scheduler", *options[at + 1 :]])
            assert "--property=EnvironmentFile=/etc/scheduler/scheduler.env" in options[:at]
        case ["systemctl", action, *_] if action in ("daemon-reload", "enable", "restart"):
            assert all(exists(each) for each in words[2:] if each.startswith("scheduler"))
        case _:
            assert words[0] in OF_THE_SYSTEM, words


def services() -> list[str]:
    return re.findall(r"^  ([a-z]+):$", (ROOT / "docker-compose.yml").read_text(), re.MULTILINE)


def exists(unit: str) -> bool:
    name = re.sub(r"@\d+$", "@", unit)
    return (UNITS / name).is_file() or (UNITS / f"{name}.service").is_file()


def test_an_upgrade_restarts_workers_then_beats_then_the_api() -> None:
    (units,) = re.findall(r"^for unit in (.+); do$", PAGE.read_text(), re.MULTILINE)
    kinds = [re.sub(r"@\d+", "", each) for each in units.split()]
    assert all(map(exists, units.split()))
    assert list(dict.fromkeys(kinds)) == [
        "scheduler-worker",
        "scheduler-beat",
        "scheduler-api",
        "scheduler-witness",
        "scheduler-flower",
    ]
    started = (UNITS / "scheduler.target").read_text().replace("\\\n#", "")
    assert set(units.split()) < set(started.split()), "it installs them, and an upgrade restarts them"


def test_the_lines_that_make_a_new_environment_leave_the_running_one_alone() -> None:
    lines = re.findall(
        r"^#   (.+)$", (UNITS / "scheduler.target").read_text().replace("\\\n#", ""), re.MULTILINE
    )
    first = next(number for number, line in enumerate(lines) if line.startswith("new="))
    last = next(number for number, line in enumerate(lines) if line.startswith("ln "))
    made, linked = lines[first:last], lines[last]
    assert sum("pip install" in line for line in made) == 2
    assert not any("/.venv" in line for line in made)
    assert linked == "ln -sfnT $new /opt/scheduler/.venv"
    assert "from `new=` to `ln`" in " ".join(PAGE.read_text().split())


def test_the_drop_in_is_one_of_a_unit_that_refuses_private_networks() -> None:
    (unit,) = set(re.findall(r"/etc/systemd/system/(\S+)\.d\b", PAGE.read_text()))
    assert "10.0.0.0/8" in (UNITS / unit).read_text().split("IPAddressDeny=")[1]


def test_the_settings_that_must_agree_are_those_that_doctor_compares() -> None:
    rows = table("production", "| setting | if it differs on one machine |").rows
    told = {name: "`doctor`: `settings`" in row[1] for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert set(told) <= set(names())
    assert {name for name, compared in told.items() if compared} == set(_USED_BY)


def test_every_size_is_a_figure_that_was_measured() -> None:
    measured = pages()["figures"]
    for part, said, _ in table("production", "| part | measured | so |").rows:
        figures = re.findall(r"[\d,]*\d(?:–\d+)?(?: µs| MiB|(?= callbacks)|(?= schedules))", said)
        assert figures, part
        for figure in figures:
            assert re.search(rf"(?<![\d,.]){re.escape(figure)}(?![\d,])", measured), (part, figure)


def test_the_alarms_that_are_enough_are_alarms() -> None:
    rules = (ROOT / "deploy" / "prometheus" / "rules.yml").read_text()
    named = re.findall(r"`(Scheduler\w+)`", PAGE.read_text())
    assert named
    assert all(f"alert: {each}\n" in rules for each in named)


@pytest.mark.parametrize(("runs", "block"), BLOCKS, ids=[block.partition("\n")[0] for _, block in BLOCKS])
def test_each_block_is_run_by_a_test_or_a_step_of_make_containers(runs: str, block: str) -> None:
    if runs.startswith(OF_A_STEP):
        assert block in blocks_of_step("docs/production.md", runs.removeprefix(OF_A_STEP))
    else:
        assert "production.md" in (ROOT / runs).read_text()
