"""deploy/mongo-health.sh, by which Docker Compose asks mongod for its health, against a real mongod."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from scheduler_app.embedded import Mongod
from tests.processes import wait_until

SCRIPT = Path(__file__).parents[3] / "deploy" / "mongo-health.sh"


def check(folder: Path, port: int) -> bool:
    """Whether it is healthy. The container's first check, which needs mongosh, has been made."""
    (folder / "prepared").touch()
    script = SCRIPT.read_text().replace("/tmp/", f"{folder}/")
    environment = {"PATH": "/usr/bin:/bin", "MONGO_PORT": str(port)}
    return subprocess.run(["bash", "-c", script], env=environment, capture_output=True).returncode == 0


@pytest.fixture
def mongod(tmp_path: Path) -> Any:
    server = Mongod(tmp_path / "data")
    try:
        yield server.start()
    finally:
        server.kill()


def test_a_primary_that_accepts_writes_is_healthy_and_nothing_else_is(mongod: Mongod, tmp_path: Path) -> None:
    assert mongod.port is not None
    assert check(tmp_path, mongod.port)
    with MongoClient[dict[str, Any]](mongod.uri, directConnection=True) as client:
        client.admin.command("replSetStepDown", 60, force=True)
        assert not check(tmp_path, mongod.port)
        client.admin.command("replSetFreeze", 0)
        wait_until(lambda: client.admin.command("hello")["isWritablePrimary"], "a primary")
    assert check(tmp_path, mongod.port)
    mongod.kill()
    assert not check(tmp_path, mongod.port)
