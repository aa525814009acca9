"""The images that `deploy/` and `docker-compose.yml` name: pulled, or made of Debian where that cannot be."""

import json
import shutil
import subprocess
from pathlib import Path

from scheduler_app.embedded.binaries import find_mongod
from tests.containers.engine import Engine

FILES = Path(__file__).with_name("stand_ins")
#: The machine's own certificates: where packages come through a certificate of its network, builds need it.
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
#: The images of others, the folder of each one's stand-in, and the command that tells what it is.
PUBLIC = {
    "python:3.12-slim-bookworm": ("python", "python --version"),
    "mongo:7.0": ("mongo", "mongod --version | head -n 1"),
    "redis:7.4": ("redis", "redis-server --version"),
    "rabbitmq:4.1": ("rabbitmq", "rabbitmqctl version"),
}
#: What else the steps run: Debian with systemd.
DEBIAN_WITH_SYSTEMD = "standin/systemd"


def provide(engine: Engine) -> list[str]:
    """Makes every image available; a line for each says which one it is."""
    told = []
    for image, (folder, version) in PUBLIC.items():
        if (
            not _is_there(engine, image)
            and engine.run("docker", "pull", "-q", image, check=False).returncode != 0
        ):
            build(engine, folder, image)
        ran = engine.run("docker", "run", "--rm", "--network=none", "--entrypoint=sh", image, "-c", version)
        stood_in = _labels(engine, image).get("stands-in") == "yes"
        told.append(f"{image}: {ran.stdout.strip()}" + (" (a stand-in of Debian)" if stood_in else ""))
    return told


def build(engine: Engine, folder: str, image: str) -> None:
    """A stand-in, by its Dockerfile beside this file."""
    for suite in ("bookworm", "trixie"):
        if not _is_there(engine, f"standin/{suite}"):
            base = engine.share / f"base-{suite}.tar"
            subprocess.run(
                ["tar", "-C", str(engine.root / f"base-{suite}"), "-cf", str(base), "."], check=True
            )
            engine.run("docker", "import", str(base), f"standin/{suite}")
            base.unlink()
    context = engine.share / "images" / folder
    shutil.rmtree(context, ignore_errors=True)
    shutil.copytree(FILES / folder, context)
    if CERTIFICATES.exists():
        shutil.copy(CERTIFICATES, context / "certificates.crt")
    if folder in ("mongo", "systemd"):
        shutil.copy(find_mongod(), context / "mongod")
    engine.run("docker", "build", "--label", "stands-in=yes", "-t", image, str(context))


def _is_there(engine: Engine, image: str) -> bool:
    return engine.run("docker", "image", "inspect", image, check=False).returncode == 0


def _labels(engine: Engine, image: str) -> dict[str, str]:
    (told,) = json.loads(engine.run("docker", "image", "inspect", image).stdout)
    return told["Config"].get("Labels") or {}
