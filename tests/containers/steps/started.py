"""From nothing to a first schedule: images, two builders, the README's blocks."""

import re

from tests.containers.deployment import IMAGE, block, blocks_of_step, until
from tests.containers.engine import StepFailed
from tests.containers.lane import Lane

_PYTHON = "python:3.12-slim-bookworm"


def images(lane: Lane) -> list[str]:
    """The images that the files name are pulled, or made of Debian."""
    versions = lane.engine.run(
        "sh",
        "-c",
        "dockerd --version; docker compose version; docker buildx version; buildah --version; podman -v",
    ).stdout
    return [*lane.images(), *filter(None, versions.splitlines())]


def build(lane: Lane) -> list[str]:
    """Two builders make the same image of deploy/Dockerfile."""
    engine, folder = lane.engine, lane.fresh_copy().folder
    command = block_of_dockerfile(folder.joinpath("deploy/Dockerfile").read_text())
    python = engine.share / "python.tar"
    with engine.internet():
        engine.shell(command.replace("docker build", "docker build --no-cache"), folder)
        engine.run("docker", "save", "-o", str(python), _PYTHON)
        engine.run("podman", "load", "-q", "-i", str(python))
        python.unlink()
        engine.run(
            "buildah", "build", "--isolation=chroot", "--pull=never", "-f", "deploy/Dockerfile",
            "-t", f"localhost/{IMAGE}", ".", cwd=folder,
        )  # fmt: skip
    question = (
        "import importlib.metadata as m, os, pathlib; print(os.getuid(), os.getcwd(), os.stat('.').st_uid,"
        " *sorted(f'{d.name}={d.version}' for d in m.distributions()))"
    )
    by_docker = engine.run("docker", "run", "--rm", "--network=none", IMAGE, "python", "-c", question).stdout
    mounted = engine.run("buildah", "from", "--pull=never", f"localhost/{IMAGE}").stdout.strip()
    by_buildah = engine.run(
        "buildah", "run", "--isolation=chroot", mounted, "--", "python", "-c", question
    ).stdout
    engine.run("buildah", "rm", mounted)
    if by_docker != by_buildah:
        raise StepFailed(f"the builders differ:\n{by_docker}\n{by_buildah}")
    user, folder_there, owner, *packages = by_docker.split()
    if (user, folder_there, owner) != ("10001", "/etc/scheduler", "0"):
        raise StepFailed(f"user {user} in {folder_there}, which belongs to {owner}")
    size = engine.run("docker", "image", "inspect", "--format", "{{.Size}}", IMAGE).stdout
    return [f"{len(packages)} packages, {int(size) / 1e6:.0f} MB, user {user}, its folder belongs to root"]


def block_of_dockerfile(text: str) -> str:
    """The command that its comment names."""
    found = re.search(r"^# +(docker build .*)$", text, re.MULTILINE)
    if found is None:
        raise StepFailed("deploy/Dockerfile does not say how it is built")
    return found[1]


def readme(lane: Lane) -> list[str]:
    """The README's Docker block, the manual's first schedule under Compose, and `doctor`, word for word."""
    deployment = lane.fresh_copy()
    lane.install()
    services = deployment.compose("ps", "--format", "{{.Service}} {{.Health}}").split("\n")
    unhealthy = [line for line in services if line and not line.endswith(" healthy")]
    if unhealthy:
        raise StepFailed(f"not healthy: {unhealthy}")
    commands, follow, _ = block("docs/operations.md", "docker compose --profile receiver up").rpartition(
        "docker compose --profile receiver logs --follow receiver"
    )
    created = deployment.shell(commands).stdout
    if '"id":"my-first"' not in created.replace(" ", ""):
        raise StepFailed(f"the first schedule was not created: {created}")
    watching = lane.engine.start_command(*follow.split(), cwd=deployment.folder)
    assert watching.stdout is not None
    calls = 0
    for line in watching.stdout:
        calls += '"GET / HTTP/1.1" 200' in line
        if calls == 3:
            break
    watching.kill()
    history = until(
        lambda: deployment.ask("GET", "/api/v1/schedules/my-first/events/history?limit=1")["events"],
        "a history",
    )
    (ask_doctor,) = blocks_of_step("docs/production.md", "readme")
    doctor = deployment.shell(ask_doctor).stdout
    if "warn" in doctor.lower():
        raise StepFailed(f"doctor warns of a healthy installation:\n{doctor}")
    listed = deployment.execute("api", "scheduler", "list")
    if "my-first" not in listed:
        raise StepFailed(f"scheduler list: {listed}")
    deployment.ask("DELETE", "/api/v1/schedules/my-first")
    return [
        f"{len(services) - 1} containers healthy, the first schedule's callbacks seen in the receiver's log",
        f"its history: {history[0]['state']}; `scheduler doctor` and `scheduler list` work in the container",
    ]


def env_again(lane: Lane) -> list[str]:
    """The README's block a second time changes nothing."""
    deployment = lane.running()
    before = deployment.settings()
    second = deployment.shell(block("README.md", "docker compose up --build --wait"), check=False)
    if deployment.settings() != before:
        raise StepFailed("the second time changed .env")
    if not deployment.answers():
        raise StepFailed(f"the installation does not answer afterwards: {second.stderr}")
    return [f"status {second.returncode}: {(second.stderr or second.stdout).strip().splitlines()[0]}"]


STEPS = (images, build, readme, env_again)
