"""Tables, numbers of seconds and lists of states in the manual are those of the code and of the files under
deploy."""

import re
import subprocess
from configparser import RawConfigParser
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler_app.cli.commands.up import up
from scheduler_app.cli.up.data_directory import _OWN_NAMES
from scheduler_app.client import Scheduler
from scheduler_app.client.tries import _TRANSIENT
from scheduler_app.config.settings import names
from scheduler_app.domain.retry import MAX_TIMEOUT_SECONDS
from scheduler_app.worker.process import LAST_WORDS_SECONDS
from tests.acceptance.chaos.faults import FAULTS
from tests.unit.docs.manual import DOCS, FENCES, ROOT, pages, table

DEPLOY = ROOT / "deploy"
_LIST = re.compile(
    r"((?:^(?![-|#\d]).+\n)+)\n((?:(?:- |\d+\. ).*\n(?:(?:  +.*)?\n(?=  |- |\d+\. )|  +.*\n)*)+)",
    re.MULTILINE,
)
_NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}


def waited_for(part: str) -> set[float]:
    """How long each service manager waits for a process to end."""
    unit = RawConfigParser(strict=False)
    (file,) = (DEPLOY / "systemd").glob(f"scheduler-{part}*.service")
    unit.read(file)
    compose: Any = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    pods = list(yaml.safe_load_all((DEPLOY / "kubernetes" / f"{part}.yaml").read_text()))
    (pod,) = (each["spec"]["template"]["spec"] for each in pods if each["kind"] == "Deployment")
    return {
        float(unit["Service"]["TimeoutStopSec"]),
        float(compose["services"][part]["stop_grace_period"].removesuffix("s")),
        float(pod["terminationGracePeriodSeconds"]),
    }


def test_every_service_manager_waits_as_long_as_the_page_says() -> None:
    rows = table("operations", "| process | killed after |").rows
    assert [each.lower() for each, _ in rows] == ["worker", "beat", "api"]
    for process, seconds in rows:
        assert waited_for(process.lower()) == {float(seconds.removesuffix(" s"))}, process


def test_a_second_sigterm_ends_a_worker_within_the_seconds_that_the_page_says() -> None:
    said = re.search(r"After a second SIGTERM .*?ends within (\d+) s", pages()["operations"], re.DOTALL)
    assert said is not None
    assert float(said[1]) == LAST_WORDS_SECONDS


def test_make_chaos_strikes_with_each_fault_of_rabbitmq() -> None:
    struck = re.search(r"tests\.acceptance\.chaos --broker rabbitmq (.*)", (ROOT / "Makefile").read_text())
    assert struck is not None
    assert struck[1].split() == [name for name, fault in FAULTS.items() if fault.broker == "rabbitmq"]


@pytest.mark.parametrize("file", sorted(DOCS.glob("*.md")), ids=lambda file: file.stem)
def test_no_page_calls_something_reserved_or_to_come_that_exists(file: Path) -> None:
    if file.stem not in ("api", "cli"):
        assert not re.search(r"reserved for later|\bto come \||others are to come", file.read_text())


def counted_lists() -> list[tuple[str, str, int]]:
    """The last sentence before a list where it has a number, that number, and the items of the list."""
    found = []
    for text in pages().values():
        for before, items in _LIST.findall(FENCES.sub("", text)):
            sentence = re.split(r"(?<=[.:]) (?=[A-Z])", " ".join(before.split()))[-1]
            for number in re.findall(rf"\b({'|'.join(_NUMBERS)})\b", sentence.lower()):
                found.append((sentence, number, len(re.findall(r"^(?:- |\d+\. )", items, re.MULTILINE))))
    return found


def test_a_number_of_things_before_a_list_is_that_of_its_items() -> None:
    assert len(counted_lists()) > 1
    for sentence, number, items in counted_lists():
        assert items == _NUMBERS[number], sentence


def test_the_names_that_take_the_place_of_task_scheduler_s_are_settings() -> None:
    text = pages()["coming-from"].split("## task_scheduler")[1].split("\n## ")[0]
    left = re.findall(r"^\| `([A-Z_]+)\S*` \| (.+) \|$", text, re.MULTILINE)
    assert [name for name, _ in left] == ["SERVER_PORT", "REDIS_ADDRESS", "REDIS_MQ_URL"]
    for there, here in left:
        assert there not in names(), f"{there} is read now: say so"
        named = re.findall(r"`([A-Z_]+)", here)
        assert named
        assert set(named) <= set(names())


def test_a_crontab_s_commands_end_when_the_page_says() -> None:
    assert f"end after {MAX_TIMEOUT_SECONDS:g} s at most" in pages()["coming-from"]


def test_the_page_of_the_client_names_each_method_once() -> None:
    named = re.findall(r"`(\w+)`", " ".join(row[1] for row in table("client", "| for | methods |").rows))
    there = [name for name in vars(Scheduler) if not name.startswith("_")]
    assert sorted(named) == sorted(there)


def test_the_client_waits_and_tries_as_its_page_says() -> None:
    parameters = signature(Scheduler).parameters
    text = pages()["client"]
    assert f"up to {parameters['retries'].default} times (`retries`)" in text
    assert f"lasts {parameters['timeout'].default:g} s at most (`timeout`)" in text
    assert f"after no answer, {', '.join(map(str, _TRANSIENT[:-1]))} and {_TRANSIENT[-1]}," in text


def test_the_folder_that_is_copied_is_that_of_up() -> None:
    (option,) = (each for each in up.params if each.name == "data_dir")
    assert str(option.default) == "data"
    assert "secrets-key" in _OWN_NAMES


def test_the_commits_of_the_figures_are_in_this_history() -> None:
    """A rebase leaves the former name of a commit behind, which no clone has."""
    rows = (DOCS / "figures.md").read_text()
    cited = set(re.findall(r"^\| \d{4}-\d\d-\d\d, `([0-9a-f]{8})` \|", rows, re.MULTILINE))
    asked = ["git", "-C", str(ROOT), "rev-list", "HEAD"]
    commits = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()
    assert len(cited) > 10
    assert cited - {each[:8] for each in commits} == set()
