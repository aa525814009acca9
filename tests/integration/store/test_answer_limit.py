"""A request waits a limited time for each answer of MongoDB, and waits an election out."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from pymongo import MongoClient

import scheduler_app.store.mongo
from scheduler_app.embedded import Mongod
from scheduler_app.store import STORE_FAULTS, Mongo, answers_within, within
from tests.processes import freeze, wait_until
from tests.standstills import Standstills

#: One document is found after 0.4 s.
SLOWLY = {"$where": "sleep(400) || true"}
ELECTION_SECONDS = 2.0


@pytest.fixture
def mongo(mongo_uri: str, database_name: str) -> Iterator[Mongo]:
    made = Mongo(mongo_uri, database_name)
    made.collection("rows").insert_one({"_id": 1})
    yield made
    made.close()


def test_work_may_take_longer_than_one_answer(mongo: Mongo, monkeypatch: pytest.MonkeyPatch) -> None:
    # In one second ten of the limit's pass: an answer may take long here, and all of them may not.
    monkeypatch.setattr(scheduler_app.store.mongo, "monotonic", lambda: 10 * time.monotonic())
    began = time.monotonic()
    rows = mongo.collection("rows")
    with answers_within(20.0):
        while time.monotonic() < began + 3.0:
            assert rows.find_one(SLOWLY) == {"_id": 1}
            assert [row["_id"] for row in rows.find(SLOWLY)] == [1]


def test_what_is_bounded_as_a_whole_inside_of_it_stays_so(mongo: Mongo) -> None:
    rows = mongo.collection("rows")
    with answers_within(60.0), within(1.0), pytest.raises(STORE_FAULTS):
        [rows.find_one(SLOWLY) for _ in range(100)]


def test_all_answers_that_a_frozen_mongod_owes_take_one_limit_together(
    mongo: Mongo, mongod_server: Mongod
) -> None:
    assert mongod_server.pid
    rows = mongo.collection("rows")
    freeze(mongod_server.pid)
    try:
        began = time.monotonic()
        with Standstills() as stood, answers_within(1.0):
            for _ in range(20):
                with pytest.raises(STORE_FAULTS):
                    rows.find_one({})
                with pytest.raises(STORE_FAULTS), within(5.0):
                    rows.find_one({})
        # Each for itself they would take 20 s at least.
        assert time.monotonic() - began - stood.seconds < 15
    finally:
        os.kill(mongod_server.pid, signal.SIGCONT)
    wait_until(lambda: answers(mongo), "mongod to answer again")


def test_an_election_is_waited_out(
    mongo: Mongo, mongo_uri: str, database_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A machine that stands still may be late to elect.
    monkeypatch.setattr(scheduler_app.store.mongo, "SELECT_SERVER_MS", 100_000)
    with (
        closing(Mongo(mongo_uri, database_name)) as patient,
        MongoClient[dict[str, int]](mongo_uri, directConnection=True) as client,
    ):
        assert patient.hello()["isWritablePrimary"]
        client.admin.command("replSetStepDown", 3_600, force=True)
        # The set has one member: it is elected again when it may be.
        election = threading.Timer(ELECTION_SECONDS, client.admin.command, ("replSetFreeze", 0))
        try:
            wait_until(
                lambda: not patient.client.topology_description.has_writable_server(),
                "the primary to step down",
            )
        finally:
            election.start()  # also where a test fails: others use this server
        try:
            with answers_within(0.5):
                assert patient.hello()["isWritablePrimary"]
                assert patient.collection("rows").find_one({}) == {"_id": 1}
        finally:
            election.join()
    wait_until(lambda: answers(mongo), "it to be primary for others, too")


def answers(mongo: Mongo) -> bool:
    try:
        return bool(mongo.hello())
    except STORE_FAULTS:
        return False
