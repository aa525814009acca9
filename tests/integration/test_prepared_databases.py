"""What a test finds in the database that another test had before it."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from pymongo import MongoClient

from scheduler_app.config import Settings
from scheduler_app.embedded import Mongod
from scheduler_app.health import Status, mongodb
from scheduler_app.health.mongodb import check_mongodb
from scheduler_app.store import Store
from tests import prepared_databases
from tests.prepared_databases import PreparedDatabases
from tests.processes import PATIENCE_SECONDS


@pytest.fixture(scope="module")
def databases(mongod_server: Mongod) -> Iterator[PreparedDatabases]:
    with pytest.MonkeyPatch.context() as patch, closing(PreparedDatabases(mongod_server.uri)) as made:
        # Each takes a while to make, and few show what many would.
        patch.setattr(prepared_databases, "RESTING", 2)
        yield made


@pytest.fixture(scope="module")
def client(mongod_server: Mongod) -> Iterator[MongoClient[dict[str, object]]]:
    with MongoClient[dict[str, object]](mongod_server.uri) as made:
        yield made


def lent_again(databases: PreparedDatabases, name: str) -> bool:
    """Whether the database comes back, which has just been given back, when all before it have rested."""
    for _ in range(prepared_databases.RESTING):
        other = databases.take()
        assert other != name
        databases.give_back(other)
    found = databases.take()
    databases.give_back(found)
    return found == name


def test_it_is_empty_and_has_all_indexes(
    databases: PreparedDatabases,
    client: MongoClient[dict[str, object]],
    mongod_server: Mongod,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mongodb, "WRITE_SECONDS", PATIENCE_SECONDS)
    name = databases.take()
    for collection in ("events", "nodes", "made_by_a_test"):
        client[name][collection].insert_one({"_id": "left"})
    databases.give_back(name)
    assert lent_again(databases, name)
    collections = set(client[name].list_collection_names()) - {"system.views"}
    assert "archived_events" in collections
    assert "made_by_a_test" not in collections
    assert not any(client[name][each].find_one({}) for each in collections)
    with closing(Store(Settings(mongo_uri=mongod_server.uri, mongo_database=name))) as store:
        checks = check_mongodb(store, mongod_server.uri, Settings())
    assert {check.status for check in checks} == {Status.OK}


def test_one_whose_index_has_met_a_list_is_not_lent_again(
    databases: PreparedDatabases, client: MongoClient[dict[str, object]]
) -> None:
    # An index keeps that when its documents are gone, and can no longer give an order: queries sort.
    name = databases.take()
    client[name]["events"].insert_one({"_id": "bent", "state": "retrying", "due_at": ["1", "2"]})
    databases.give_back(name)
    assert not lent_again(databases, name)
    name = databases.take()
    client[name]["schedules"].insert_one({"_id": "s1", "tenant": "default", "tags": ["a", "b"]})
    databases.give_back(name)
    assert lent_again(databases, name), "tags are lists in every database"


def test_one_that_is_lent_again_has_no_plans_for_queries(
    databases: PreparedDatabases, client: MongoClient[dict[str, object]]
) -> None:
    name = databases.take()
    events = client[name]["events"]
    events.insert_many({"_id": f"e{number}", "state": "error", "tenant": "t"} for number in range(20))

    def plans() -> int:
        return len(list(events.aggregate([{"$planCacheStats": {}}])))

    for _ in range(3):
        list(events.find({"state": "error", "tenant": "t", "schedule_id": "s", "run_time": {"$gt": 0}}))
    assert plans()
    databases.give_back(name)
    assert lent_again(databases, name)
    assert not plans()


def test_all_are_lent_again_in_whichever_order_their_indexes_were_made(databases: PreparedDatabases) -> None:
    def lent() -> list[str]:
        names = []
        for _ in range(prepared_databases.RESTING + 1):
            names.append(databases.take())
            databases.give_back(names[-1])
        return names

    assert lent() == lent()


@pytest.mark.parametrize(
    "command",
    [
        {"dropIndexes": "events", "index": "due_v4"},
        {"collMod": "events", "index": {"name": "retention_v2", "expireAfterSeconds": 7}},
        {"collMod": "audit", "validator": {"name": "refused"}},
        {"drop": "nodes"},
    ],
    ids=str,
)
def test_one_whose_indexes_or_collections_were_changed_is_not_lent_again(
    databases: PreparedDatabases, client: MongoClient[dict[str, object]], command: dict[str, object]
) -> None:
    name = databases.take()
    client[name].command(command)
    databases.give_back(name)
    assert not lent_again(databases, name)
    assert name not in client.list_database_names()
