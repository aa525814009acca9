"""Indexes of a large collection take longer to build than any command may take: they are waited for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from prometheus_client import REGISTRY
from pymongo import MongoClient
from structlog.testing import capture_logs

import scheduler_app.store.mongo
import scheduler_app.usecases.heartbeat
from scheduler_app.clock import Clock
from scheduler_app.config import Settings
from scheduler_app.health import Check, Status
from scheduler_app.health.mongodb import check_mongodb
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.index_builds import IndexBuildGoesOn
from scheduler_app.usecases.heartbeat import Presence
from tests.fail_points import MongodWithFailPoints
from tests.processes import wait_until

#: Instead of the 30 s after which a command is given up.
SOCKET_MS = 2_000
Answer = TypeVar("Answer")


@pytest.fixture(scope="module")
def mongod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MongodWithFailPoints]:
    with MongodWithFailPoints(tmp_path_factory.mktemp("mongod")) as server:
        yield server


@pytest.fixture
def large(mongod: MongodWithFailPoints, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Store]:
    """A store with events and without indexes, whose builds do not come to their end."""
    name = tmp_path.name[:60]
    with MongoClient[dict[str, Any]](mongod.uri) as client:
        client[name]["events"].insert_many({"n": n} for n in range(100))
    monkeypatch.setattr(scheduler_app.store.mongo, "SOCKET_MS", SOCKET_MS)
    made = Store(Settings(mongo_uri=mongod.uri, mongo_database=name))
    mongod.hold_index_builds()
    yield made
    mongod.release_index_builds()
    made.close()


def patiently(ask: Callable[[], Answer]) -> Answer:
    """A machine that stands still may lose MongoDB for another reason in between: then it is asked again."""
    while True:
        try:
            return ask()
        except IndexBuildGoesOn:
            raise
        except STORE_FAULTS:
            continue


def is_prepared(store: Store) -> bool:
    try:
        patiently(store.prepare)
    except IndexBuildGoesOn:
        return False
    return True


def test_a_build_that_goes_on_is_named_and_waited_for(large: Store, mongod: MongodWithFailPoints) -> None:
    for _ in range(2):  # whoever comes later joins the same build
        with pytest.raises(IndexBuildGoesOn, match=r"builds \w+.* of events"):
            patiently(large.prepare)
    assert issubclass(IndexBuildGoesOn, STORE_FAULTS)
    mongod.release_index_builds()
    wait_until(lambda: is_prepared(large), "the indexes")
    assert "due_v4" in patiently(large.mongo.collection("events").index_information)


def test_doctor_says_which_indexes_are_still_being_built(large: Store, mongod: MongodWithFailPoints) -> None:
    def diagnosis() -> Check:
        while True:  # as above
            found = check_mongodb(large, "mongodb://here", Settings())
            indexes = next(check for check in found if check.name == "mongodb indexes")
            if indexes.status is not Status.UNKNOWN:
                return indexes

    assert not is_prepared(large)
    building = diagnosis()
    assert building.status is Status.WRONG
    assert building.found.startswith("MongoDB is still building ")
    assert "events." in building.found
    mongod.release_index_builds()
    wait_until(lambda: is_prepared(large), "the indexes")
    assert diagnosis().status is Status.OK


def said(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the log says of MongoDB."""
    return [line["event"] for line in lines if line["event"] in ("indexes.building", "mongodb.unreachable")]


def up() -> float | None:
    return REGISTRY.get_sample_value("scheduler_dependency_up", {"dependency": "mongodb"})


def test_a_process_says_that_it_waits_and_reports_once_they_are_there(
    large: Store, mongod: MongodWithFailPoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler_app.usecases.heartbeat, "REPORT_SECONDS", 0.05)
    with capture_logs() as lines:
        presence = Presence(large, Clock(), "worker")
        presence.start()
        try:
            # A machine that stands still for two seconds may be without MongoDB in between.
            wait_until(lambda: said(lines)[-2:] == ["indexes.building"] * 2, "two turns that wait for it")
            wait_until(lambda: up() == 1, "MongoDB to count as up")
            assert presence.trouble() is None
            assert patiently(large.processes.alive) == []
            mongod.release_index_builds()
            wait_until(lambda: patiently(large.processes.alive) != [], "the report")
        finally:
            presence.stop()
            presence.join()
    assert all("events" in line["error"] for line in lines if line["event"] == "indexes.building")
