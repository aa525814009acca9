"""docs/containers.md against the steps of `make containers`, and what these take from the manual."""

import inspect
import re
import subprocess
from collections import Counter

import pytest

from scheduler_app import __version__
from tests.containers.__main__ import STEPS
from tests.containers.deployment import block
from tests.containers.images import FILES, PUBLIC
from tests.containers.page import BEGINS, PAGE
from tests.containers.steps import kept, started, units
from tests.containers.steps.kept import OLDER, WITHOUT_PASSWORDS
from tests.unit.deploy.commands import ROOT
from tests.unit.docs.manual import pages


def test_the_page_tells_of_steps_that_exist() -> None:
    above, _, below = PAGE.read_text().partition(BEGINS)
    assert above.startswith("# Run in containers")
    told = re.findall(r"^\| `([a-z-]+)` \|", below, re.MULTILINE)
    assert told, "the page was written by no run"
    assert set(told) <= set(STEPS)


@pytest.mark.parametrize(
    ("page", "beginning"),
    [
        ("README.md", "docker compose up --build --wait"),
        ("docs/operations.md", "docker compose --profile receiver up"),
    ],
)
def test_the_commands_that_a_step_runs_are_in_the_manual(page: str, beginning: str) -> None:
    assert beginning in block(page, beginning)


def test_each_block_that_a_page_gives_to_a_step_is_one_that_it_takes() -> None:
    told = Counter(
        (page, step)
        for page, text in pages().items()
        for step in re.findall(r"^<!-- run by make containers: ([\w-]+) -->\n```bash$", text, re.MULTILINE)
    )
    sources = "".join(inspect.getsource(module) for module in (kept, started, units))
    taken = {
        (page, step): len(names.strip(" ()").rstrip(",").split(","))
        for names, page, step in re.findall(
            r"^(.+) = blocks_of_step\(\"docs/(\w+)\.md\", \"([\w-]+)\"\)$", sources, re.MULTILINE
        )
    }
    assert told == taken
    assert {step for _, step in told} <= set(STEPS)


@pytest.mark.parametrize("commit", [OLDER, WITHOUT_PASSWORDS])
def test_an_upgrade_begins_with_a_commit_of_this_history(commit: str) -> None:
    ancestor = subprocess.run(["git", "-C", str(ROOT), "merge-base", "--is-ancestor", commit, "HEAD"])
    assert ancestor.returncode == 0


def test_every_image_of_others_has_a_stand_in() -> None:
    named = re.findall(r"^ +image: (\S+:\S+)$", (ROOT / "docker-compose.yml").read_text(), re.MULTILINE)
    named += re.findall(r"^ARG PYTHON=(\S+)$", (ROOT / "deploy" / "Dockerfile").read_text(), re.MULTILINE)
    ours = f"rrule-scheduler:{__version__}"
    assert {name.partition("@")[0] for name in named} - {ours} == set(PUBLIC)
    assert all((FILES / folder / "Dockerfile").is_file() for folder, _ in PUBLIC.values())
