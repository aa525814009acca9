"""What is installed and deployed: locked by hashes; images that nobody has pinned are known by name."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.unit.deploy.commands import ROOT

FOLDER = ROOT / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
#: `embedded` includes `server` by the project's own name.
EMBEDDED = [each for each in EXTRAS["embedded"] if not each.startswith("rrule-scheduler[")]
SERVER = [*PROJECT["dependencies"], *EXTRAS["server"]]
ASKED = {
    "runtime": SERVER,
    "up": [*SERVER, *EMBEDDED],
    "dev": [*SERVER, *EMBEDDED, *EXTRAS["dev"]],
}
#: `make pin-images` needs docker and a registry, and has not been run yet. A new image comes here, or pinned.
NOT_PINNED = {"mongo:7.0", "redis:7.4", "rabbitmq:4.1", "python:3.12-slim-bookworm"}

every_lock = pytest.mark.parametrize("name", ["build", "dev", "manual", "runtime", "tools", "up"])


def locked(name: str) -> list[tuple[Requirement, int]]:
    """What a file pins, and by how many hashes."""
    text = re.sub(r"\s*#.*", "", (FOLDER / f"{name}.txt").read_text()).replace("\\\n", " ")
    entries = [line.split("--hash=") for line in text.splitlines() if line.strip()]
    return [(Requirement(pinned), len(hashes)) for pinned, *hashes in entries]


@every_lock
def test_each_package_is_pinned_by_hashes_and_no_index_is_named(name: str) -> None:
    entries = locked(name)
    assert entries
    for pinned, hashes in entries:
        assert [one.operator for one in pinned.specifier] == ["=="], pinned
        assert hashes >= 1, pinned
        assert pinned.url is None, pinned
    assert not re.search(
        r"^\s*(-i |--index|--extra-index|--find-links)|://", (FOLDER / f"{name}.txt").read_text()
    )


@pytest.mark.parametrize("name", ASKED)
def test_the_lock_has_what_the_project_asks_for(name: str) -> None:
    pinned: dict[str, list[str]] = {}
    for entry, _ in locked(name):
        (version,) = entry.specifier
        pinned.setdefault(canonicalize_name(entry.name), []).append(version.version)
    for text in [*ASKED[name], *(FOLDER / "build.in").read_text().split() * (name != "runtime")]:
        asked = Requirement(text)
        versions = pinned.get(canonicalize_name(asked.name), [])
        assert versions, f"{asked} is not in requirements/{name}.txt: make lock"
        assert any(version in asked.specifier for version in versions), f"{asked}: make lock"


def test_nothing_is_installed_but_what_is_locked() -> None:
    run = subprocess.run(
        ["make", "--dry-run", "--always-make", "up", "test", "audit", f"PYTHON={sys.executable}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", " ")
    installs = re.findall(r"pip\b[^&\n]*? (?:install|wheel) [^&\n]*", run.stdout + dockerfile)
    assert len(installs) >= 8
    for command in installs:
        ours = "--no-deps --no-build-isolation" in command or "--no-index" in command
        assert ours or "--require-hashes" in command, command


def test_an_image_is_pinned_by_its_digest_or_known_not_to_be() -> None:
    spec = importlib.util.spec_from_file_location("pin_images", ROOT / "deploy" / "pin_images.py")
    assert spec is not None
    assert spec.loader is not None
    pin_images = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pin_images)
    found = pin_images.images()
    assert len(found) == 4
    assert {image for _, image, digest in found if not digest} == NOT_PINNED
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for _, _, digest in found if digest)
    named = [
        line.split()[-1]
        for path in (Path(ROOT / "docker-compose.yml"), *(ROOT / "deploy").rglob("*.yaml"))
        for line in path.read_text().splitlines()
        if re.match(r"\s+(- )?image: ", line)
    ]
    known = {f"{image}@{digest}" if digest else image for _, image, digest in found}
    assert {name for name in named if name.partition(":")[0] != "rrule-scheduler"} <= known


def test_the_manual_names_the_licences_of_the_embedded_servers_and_where_to_report() -> None:
    said = " ".join((ROOT / "docs" / "operations.md").read_text().split())
    for name, licence in (("mongod", "Server Side Public License"), ("redis-server", "3-clause BSD licence")):
        assert re.search(rf"{name} \([\d.]+[^)]*\) has the {licence}", said), name
    policy = (ROOT / "SECURITY.md").read_text()
    assert "## Reporting" in policy
    assert "make audit" in policy
