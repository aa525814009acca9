"""Two runs of `scheduler up`, shared by the tests that leave them as they were: each has seven processes."""

import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pymongo import MongoClient

from scheduler_app.embedded import Mongod, free_port
from tests.processes import Program

#: Each process may take as long to end as this machine makes it take.
_PATIENT = """
from scheduler_app.cli import main
from scheduler_app.cli.up import services
services._DOOR_GRACE = services._SERVER_GRACE = services._WORKER_MARGIN = 600.0
main()
"""
UP = (sys.executable, "-c", _PATIENT, "up", "--worker-count", "1")
READY = r"^Everything is ready"


class Ups:
    """They are started at the same moment, when a test first asks for them.

    In the folder of the first an older release, which left everything open, has kept its data, and on its
    PATH is a mongod that cannot be used.
    """

    def __init__(self) -> None:
        self._open = ExitStack()
        self.folders: tuple[Path, Path] | None = None
        self._runs: tuple[Program, Program] | None = None

    def runs(self) -> tuple[Program, Program]:
        """Both, once everything of them is ready."""
        if self._runs is None:
            one, other = (
                Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="up-"))) for _ in range(2)
            )
            keep_data_of_an_older_release(one)
            self.folders = one, other
            path = f"{_unusable_mongod(one)}:{os.environ['PATH']}"
            self._runs = start(one, LOG_LEVEL="debug", PATH=path), start(other, LOG_LEVEL="debug")
            for run in self._runs:
                self._open.callback(run.kill)
            for run in self._runs:
                run.wait_for(READY)
        return self._runs

    def close(self) -> None:
        """Ends what runs of them; they can be asked for again."""
        self._open.close()
        self._runs = None


def start(folder: Path, port: int | None = None, **environment: str) -> Program:
    """A run in a folder; by default on a port that is free."""
    return Program([*UP, "--port", str(port or free_port())], folder, environment)


def keep_data_of_an_older_release(folder: Path) -> None:
    with Mongod(folder / "data" / "mongod") as old, MongoClient[dict[str, Any]](old.uri) as client:
        client.old.kept.insert_one({"_id": 1})
    for path in (folder / "data", folder / "data" / "mongod"):
        path.chmod(0o755)


def _unusable_mongod(folder: Path) -> Path:
    """Returns the folder of a mongod that ends at once."""
    program = folder / "bin" / "mongod"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho libcrypto.so.1.1: no such file >&2\nexit 127\n")
    program.chmod(0o755)
    return program.parent
