"""What doctor finds out about MongoDB's indexes."""

from typing import Any

import pytest

from scheduler_app.config import Settings
from scheduler_app.health import Check, Status, mongodb
from scheduler_app.health.mongodb import check_mongodb
from scheduler_app.store import Store
from tests.manual_releases import assert_named
from tests.processes import PATIENCE_SECONDS


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that stands still for a moment is no disk that takes nothing."""
    monkeypatch.setattr(mongodb, "WRITE_SECONDS", PATIENCE_SECONDS)


def found(store: Store, **changes: Any) -> dict[str, Check]:
    checks = check_mongodb(store, "mongodb://here", Settings(**changes))
    return {check.name: check for check in checks}


def test_a_prepared_store_is_in_order(store: Store) -> None:
    assert {name: check.status for name, check in found(store).items()} == {
        "mongodb": Status.OK,
        "mongodb replica set": Status.OK,
        "mongodb writes": Status.OK,
        "mongodb indexes": Status.OK,
    }


def test_the_manual_names_the_release_that_runs_here(store: Store) -> None:
    said = store.mongo.collection("events").database.client.admin.command("buildInfo")
    assert_named("MongoDB", said["version"])


def test_the_write_that_is_tried_leaves_nothing(store: Store) -> None:
    found(store)
    assert store.processes.alive() == []


def test_a_missing_index_is_named(store: Store) -> None:
    store.mongo.collection("events").drop_index("due_v4")
    check = found(store)["mongodb indexes"]
    assert (check.status, check.found) == (Status.WRONG, "missing: events.due_v4")


def test_a_database_that_no_process_has_used_yet_says_who_makes_the_indexes(store: Store) -> None:
    store.mongo.client.drop_database(store.mongo.db.name)
    check = found(store)["mongodb indexes"]
    assert "events.retention_v2" in str(check.facts["missing"])
    assert "start any process" in check.remedy


def test_another_retention_than_the_settings_say_is_wrong(store: Store) -> None:
    check = found(store, retention_days=7)["mongodb indexes"]
    assert check.status is Status.WRONG
    assert check.found == "finished events are kept for 30 days, and RETENTION_DAYS is 7"


def test_another_retention_of_messages_than_the_settings_say_is_wrong(store: Store) -> None:
    check = found(store, message_retention_days=7)["mongodb indexes"]
    assert check.status is Status.WRONG
    assert check.found == "finished messages are kept for 30 days, and MESSAGE_RETENTION_DAYS is 7"
