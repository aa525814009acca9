"""An edit whose process is killed in the middle of it: MongoDB keeps its transaction open.

As a program, `python -m tests.killed_edits SCHEDULE` pauses a schedule, stands still before that is
committed, and says so.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pymongo import MongoClient
from pymongo.client_session import ClientSession

from scheduler_app.assembly import assemble
from scheduler_app.broker.app import make_app
from scheduler_app.config import Settings, load_settings

ROOT: Final = Path(__file__).parents[1]
_HELD: Final = b"held\n"
_LIFETIME: Final = "transactionLifetimeLimitSeconds"


@contextmanager
def lasting_transactions(mongo_uri: str) -> Iterator[None]:
    """mongod itself ends none of those that begin meanwhile before any test is over."""
    with MongoClient[dict[str, Any]](mongo_uri) as client:
        usual = client.admin.command({"getParameter": 1, _LIFETIME: 1})[_LIFETIME]
        client.admin.command({"setParameter": 1, _LIFETIME: 3_600})
        try:
            yield
        finally:
            client.admin.command({"setParameter": 1, _LIFETIME: usual})


def kill_edit(schedule_id: str, settings: Settings) -> None:
    """Leaves a pause of this schedule behind that is neither done nor undone."""
    with subprocess.Popen(
        [sys.executable, "-m", __name__, schedule_id],
        cwd=ROOT,
        env={
            **os.environ,
            "MONGO_URI": settings.mongo_uri,
            "MONGO_DATABASE": settings.mongo_database,
            "BROKER_URL": settings.broker_url,
        },
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.kill()
    assert line == _HELD, "the edit did not come to its commit"


def main(schedule_id: str) -> None:
    def stand_still(self: ClientSession) -> None:
        sys.stdout.buffer.write(_HELD)
        sys.stdout.buffer.flush()
        threading.Event().wait()

    ClientSession.commit_transaction = stand_still  # type: ignore[method-assign]
    settings = load_settings()
    made = assemble(settings, make_app(settings))
    made.manager.pause(schedule_id, made.now())


if __name__ == "__main__":
    main(sys.argv[1])
