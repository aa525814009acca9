"""What is in the wheel and in the sdist, and that they are the same bytes whoever builds them."""

import importlib.util
import os
import re
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("api", "beat", "scheduler_app")
#: A page stands for the manual, which takes Sphinx half a minute; `make long` builds it all.
PAGE = "scheduler_app/api/manual/index.html"


@pytest.fixture(scope="module")
def dist() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dist", ROOT / "deploy" / "dist.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(dist: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist and the wheel of this checkout."""
    return made(dist, tmp_path_factory.mktemp("built"), 0o022)


def made(dist: Any, folder: Path, umask: int) -> tuple[Path, Path]:
    before = os.umask(umask)
    try:
        source, output = folder / "source", folder / "output"
        dist.copy_tracked(source)
        (source / PAGE).parent.mkdir(parents=True)
        (source / PAGE).write_text("<h1>Manual</h1>")
        output.mkdir()
        found: tuple[Path, Path] = dist.build(source, output, dist.reproducible_environment())
    finally:
        os.umask(before)
    return found


def of_git(*rooms: str) -> set[str]:
    """The files of these folders, by their names in a package: api/ and beat/ are parts of scheduler_app."""
    listed = subprocess.check_output(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *rooms], cwd=ROOT, text=True
    )
    found = {name for name in listed.splitlines() if (ROOT / name).is_file()}
    return {
        f"scheduler_app/{name}".replace("scheduler_app/scheduler_app/", "scheduler_app/") for name in found
    }


def test_the_wheel_holds_every_file_of_the_packages_and_the_manual_and_nothing_else(
    built: tuple[Path, Path],
) -> None:
    with zipfile.ZipFile(built[1]) as archive:
        names = set(archive.namelist())
    metadata = {name for name in names if PurePosixPath(name).parts[0].endswith(".dist-info")}
    assert names - metadata == of_git(*PACKAGES) | {PAGE}
    assert {PurePosixPath(name).name for name in metadata} == {
        *("METADATA", "WHEEL", "RECORD", "entry_points.txt"),
        *("LICENSE", "LICENSE-htmx"),
    }


def test_the_sdist_holds_what_the_wheel_is_made_of_and_no_tests(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    beside = {"CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", ".gitignore"}
    assert names == of_git(*PACKAGES) | {PAGE} | beside


def test_two_builds_in_two_folders_are_the_same_bytes(
    dist: Any, built: tuple[Path, Path], tmp_path: Path
) -> None:
    again = made(dist, tmp_path / "elsewhere", 0o077)
    for one, other in zip(built, again, strict=True):
        assert one.name == other.name
        assert one.read_bytes() == other.read_bytes(), one.name


def test_no_file_of_a_package_names_the_folder_that_it_was_built_in(built: tuple[Path, Path]) -> None:
    folder = str(built[0].parents[1]).encode()
    with zipfile.ZipFile(built[1]) as archive:
        assert [name for name in archive.namelist() if folder in archive.read(name)] == []


def test_the_metadata_of_the_wheel_name_every_extra_and_licence(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().splitlines()
    assert {line for line in lines if line.startswith("Provides-Extra: ")} == {
        f"Provides-Extra: {extra}" for extra in ("async", "dev", "embedded", "server")
    }
    assert "License-Expression: MIT AND 0BSD AND BSD-2-Clause" in lines


def test_the_manual_names_every_extra_that_users_install() -> None:
    text = (ROOT / "docs" / "releasing.md").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"^\| `rrule-scheduler\[(\w+)\]` \|", text, re.MULTILINE)
    assert set(named) == extras.keys() - {"dev"}
