"""What `pip install rrule-scheduler` brings alone: the client and the command line."""

import os
import re
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

import pytest

from tests.acceptance.stack import CODE, Stack


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program `scheduler` of an environment with our wheel and what that depends on, without extras."""
    folder = tmp_path_factory.mktemp("base")
    wheel = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir")
    subprocess.run([sys.executable, *wheel, str(folder), str(CODE)], check=True)
    (made,) = folder.glob("*.whl")
    # Without a pip of its own, which takes longer to install than all the rest.
    venv.create(folder / "venv", symlinks=True)
    scheduler = folder / "venv" / "bin" / "scheduler"
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    # The releases that this environment has, so that the test needs no network.
    for found in needed(contained(made)):
        copied(found, packages)
    pip(scheduler, "install", "--quiet", "--no-index", "--no-deps", str(made))
    pip(scheduler, "check")
    return scheduler


def pip(scheduler: Path, *arguments: str) -> str:
    """What this environment's pip says when it works on that of `scheduler`."""
    options = ("--disable-pip-version-check", "--python", str(scheduler.with_name("python")))
    command = [sys.executable, "-m", "pip", *options, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=without_this_checkout())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def contained(wheel: Path) -> Distribution:
    """What a wheel says of itself."""
    (folder,) = (each for each in zipfile.Path(wheel).iterdir() if each.name.endswith(".dist-info"))
    return PathDistribution(folder)


def needed(ours: Distribution) -> list[Distribution]:
    """What a distribution depends on without its extras, and what those depend on."""
    found: dict[str, Distribution] = {}
    open_ = list(ours.requires or ())
    while open_:
        requirement = open_.pop()
        if ";" in requirement and ("extra" in requirement or "sys_platform" in requirement):
            continue
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        assert name is not None
        if name[0].lower() not in found:
            one = found[name[0].lower()] = distribution(name[0])
            open_ += one.requires or ()
    return list(found.values())


def copied(one: Distribution, packages: Path) -> None:
    for file in one.files or ():
        if ".." in file.parts or file.suffix == ".pyc":
            continue
        target = packages / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(Path(str(one.locate_file(file))).read_bytes())


def run(program: Path, *arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=without_this_checkout() | {"HOME": str(cwd)} | environment,
    )


def without_this_checkout() -> dict[str, str]:
    """The environment variables for programs that have to do with what is installed."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def test_the_command_line_works_without_a_server_s_packages(
    scheduler: Path, stack: Stack, tmp_path: Path
) -> None:
    helped = run(scheduler, "--help", cwd=tmp_path)
    assert "tail" in helped.stdout, helped.stderr
    made = ("create", "https://example.com/", "--cron", "0 9 * * *", "--id", "base")
    for arguments, said in (
        (made, "base"),
        (("list",), "base"),
        (("next", "base"), "T09:00:00"),
        (("get", "base", "--json"), '"cron"'),
        (("doctor", "--help"), "Check"),
        (("tail", "--no-follow"), ""),
    ):
        done = run(scheduler, *arguments, cwd=tmp_path, SCHEDULER_URL=stack.url)
        assert done.returncode == 0, (arguments, done.stderr)
        assert said in done.stdout
    file = tmp_path / "all.yaml"
    file.write_text(
        "schedules:\n- {id: base, name: new, cron: 0 9 * * *, callback_url: https://example.com/}\n"
    )
    planned = run(scheduler, "apply", "-f", str(file), "--plan", cwd=tmp_path, SCHEDULER_URL=stack.url)
    assert planned.returncode == 2, planned.stderr
    assert 'name: "https://example.com/" → "new"' in planned.stdout
    imported = "from scheduler_app.client import Scheduler, AsyncScheduler"
    refused = run(scheduler.with_name("python"), "-c", imported, cwd=tmp_path)
    assert "pip install 'rrule-scheduler[async]'" in refused.stderr


@pytest.mark.parametrize(
    ("command", "extra"), [("up", "embedded"), ("doctor", "server"), ("reseal", "server")]
)
def test_a_server_s_command_names_what_to_install(
    scheduler: Path, tmp_path: Path, command: str, extra: str
) -> None:
    done = run(scheduler, command, cwd=tmp_path, SECRETS_KEY="A" * 43 + "=")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"pip install 'rrule-scheduler[{extra}]'" in done.stderr


def test_packages_of_a_server_are_not_there(scheduler: Path) -> None:
    listed = pip(scheduler, "list").lower()
    assert "requests" in listed
    for name in ("celery", "flask", "pymongo", "redis", "pycurl", "cryptography", "flower"):
        assert f"\n{name} " not in listed
