"""The release is written in one place, follows the changelog, and is what everything says of itself."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from scheduler_app.actions.http.request import USER_AGENT
from scheduler_app.api.factory import specification
from scheduler_app.cli import main
from scheduler_app.config import Settings
from scheduler_app.version import __version__

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
#: Where the release could be written a second time.
ROOMS = ("scheduler_app", "api", "beat", "deploy", "tests/bench", "docker-compose.yml", "pyproject.toml")
#: Where a copy has to stand, because nothing reads Python there.
COPIES = {"docker-compose.yml", "deploy/Dockerfile", "deploy/kubernetes/kustomization.yaml"}


def successors(release: str) -> set[str]:
    """The releases that may follow one, by semantic versioning."""
    major, minor, patch = map(int, release.split("."))
    return {f"{major}.{minor}.{patch + 1}", f"{major}.{minor + 1}.0", f"{major + 1}.0.0"}


def released(changelog: str) -> list[str]:
    return re.findall(r"^## (\d+\.\d+\.\d+)(?: .*)?$", changelog, re.MULTILINE)


def allowed(changelog: str) -> set[str]:
    """The newest release, or what may follow it while there is something unreleased."""
    newest = released(changelog)[0]
    return {newest} | (successors(newest) if "\n## Unreleased\n" in changelog else set())


def test_it_is_the_newest_heading_of_the_changelog_or_follows_it() -> None:
    assert __version__ in allowed(CHANGELOG)


@pytest.mark.parametrize(
    ("headings", "expected"),
    [
        ("\n## 1.2.3\n", {"1.2.3"}),
        ("\n## 1.2.3 (2027-01-02)\n", {"1.2.3"}),
        ("\n## Unreleased\n\n## 1.2.3\n", {"1.2.3", "1.2.4", "1.3.0", "2.0.0"}),
    ],
)
def test_only_an_unreleased_section_allows_a_following_release(headings: str, expected: set[str]) -> None:
    assert allowed(headings) == expected


def test_releases_of_the_changelog_are_in_order_and_each_has_one_heading() -> None:
    numbers = [tuple(map(int, release.split("."))) for release in released(CHANGELOG)]
    assert numbers == sorted(set(numbers), reverse=True)


def test_the_project_reads_it_and_names_none_of_its_own() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "scheduler_app/version.py"


def test_images_are_tagged_and_labelled_with_it() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    ours = {
        each["image"] for each in compose["services"].values() if each["image"].startswith("rrule-scheduler")
    }
    assert ours == {f"rrule-scheduler:{__version__}"}
    kustomization = yaml.safe_load((DEPLOY / "kubernetes" / "kustomization.yaml").read_text())
    assert kustomization["images"] == [{"name": "rrule-scheduler", "newTag": __version__}]
    assert f'org.opencontainers.image.version="{__version__}"' in (DEPLOY / "Dockerfile").read_text()


def test_it_is_written_nowhere_else() -> None:
    literal = re.compile(rf"(?<![\d.=]){re.escape(__version__)}(?![\d.])")
    found = {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in [ROOT / room, *(ROOT / room).rglob("*")]
        if path.suffix in {".py", ".yml", ".yaml", ".toml", ".html", ".service", ""} and path.is_file()
        if literal.search(path.read_text())
    }
    assert found == {"scheduler_app/version.py", *COPIES}


def test_everything_says_it_of_itself() -> None:
    assert json.loads(CliRunner().invoke(main, ["version", "--json"]).output)["version"] == __version__
    assert CliRunner().invoke(main, ["--version"]).output == f"scheduler, version {__version__}\n"
    assert f"RRule-Scheduler/{__version__}" == USER_AGENT
    assert specification(Settings())["info"]["version"] == __version__


def test_the_command_names_the_extras_that_are_installed() -> None:
    said = json.loads(CliRunner().invoke(main, ["version", "--json"]).output)
    assert said["extras"] == ["async", "embedded", "server"]
