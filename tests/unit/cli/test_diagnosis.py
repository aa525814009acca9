"""`scheduler doctor` where nothing answers."""

import pytest

from scheduler_app.cli.diagnosis import diagnose
from scheduler_app.config import Settings
from scheduler_app.embedded import free_port
from scheduler_app.health import Status


def test_of_what_mongodb_would_tell_nothing_is_said_while_it_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scheduler_app.cli.diagnosis.STORE_SECONDS", 0.2)
    nowhere = Settings(mongo_uri=f"mongodb://127.0.0.1:{free_port()}", redis_port=free_port())
    checks = diagnose(nowhere, f"http://127.0.0.1:{free_port()}")
    assert {check.name: check.status for check in checks} == {
        "mongodb": Status.WRONG,
        **dict.fromkeys(("mongodb replica set", "mongodb writes", "mongodb indexes"), Status.UNKNOWN),
        "redis": Status.WRONG,
        "queue": Status.UNKNOWN,
        **dict.fromkeys(("beat", "worker", "clocks", "queues", "this clock"), Status.UNKNOWN),
        **dict.fromkeys(("settings", "releases", "receivers"), Status.UNKNOWN),
        **dict.fromkeys(("kill switches", "blackouts", "actions"), Status.UNKNOWN),
        **dict.fromkeys(("stored secrets", "destinations"), Status.UNKNOWN),
        "API_KEYS": Status.OK,
        "SECRETS_KEY": Status.NOTE,
        "flower": Status.NOTE,
    }
    (beat,) = (check for check in checks if check.name == "beat")
    assert beat.found == "cannot be told: MongoDB does not answer"
