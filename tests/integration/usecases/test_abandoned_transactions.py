"""What a process holds that was killed in the middle of a change: beats end its transaction, and nobody but
who came to the very same documents has waited."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from structlog.testing import capture_logs

from scheduler_app.assembly import Assembly, assemble
from scheduler_app.broker.app import make_app
from scheduler_app.config import Settings
from scheduler_app.domain.audit import Change
from scheduler_app.domain.ids import WholeId, whole_id
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.embedded import Mongod
from scheduler_app.store import STORE_FAULTS, Store, transactions
from scheduler_app.store.dry_run import NotInDryRun
from scheduler_app.store.mongo import Documents
from scheduler_app.usecases.duties import abandoned_transactions
from scheduler_app.usecases.duties.abandoned_transactions import AbandonedTransactions
from tests.builders import schedule
from tests.fail_points import MongodWithFailPoints
from tests.killed_edits import kill_edit, lasting_transactions
from tests.processes import PATIENCE_SECONDS, wait_until

HELD, OTHERS = "held", whole_id("acme", "others")
UNAUTHORIZED = 13


@pytest.fixture(autouse=True)
def _lasting(mongod_server: Mongod) -> Iterator[None]:
    with MongoClient[dict[str, Any]](mongod_server.uri) as client:
        # What an earlier test has left open is not counted here.
        client.admin.command("killAllSessions", [])
    with lasting_transactions(mongod_server.uri):
        yield


@pytest.fixture
def assembly(settings: Settings) -> Iterator[Assembly]:
    made = assemble(settings, make_app(settings))
    yield made
    made.store.close()


@pytest.fixture
def watch(store: Store) -> AbandonedTransactions:
    """It is not patient: what stands still from one look to the next is over."""
    return AbandonedTransactions(store, idle_seconds=0.0)


@pytest.fixture
def documents(store: Store) -> Documents:
    return store.mongo.collection("schedules")


def write(documents: Documents, own_id: str = "a") -> bool:
    documents.update_one({"_id": own_id}, {"$inc": {"count": 1}}, upsert=True)
    return True


def found(store: Store, schedule_id: str) -> Schedule:
    made = store.schedules.get(schedule_id)
    assert isinstance(made, Schedule)
    return made


def edits(store: Store, schedule_id: str) -> int:
    """How many lines of the audit tell of one."""
    which = {"resource": f"schedule/{schedule_id}", "what": {"$ne": "created"}}
    return store.mongo.collection("audit").count_documents(which)


@contextmanager
def ended_meanwhile(store: Store) -> Iterator[None]:
    """A transaction of this process, of which nothing is there afterwards."""
    with pytest.raises(STORE_FAULTS), store.mongo.transaction():
        yield


def test_an_edit_whose_process_was_killed_holds_up_no_other_schedule_and_no_other_tenant(
    assembly: Assembly, settings: Settings, watch: AbandonedTransactions
) -> None:
    store, now = assembly.store, datetime.now(UTC)
    for each in (HELD, OTHERS):
        store.schedules.insert(schedule(now, each, rrule="FREQ=SECONDLY;INTERVAL=10"))
    kill_edit(HELD, settings)
    version = found(store, HELD).version
    # Edits of others share no command with what is held.
    assert assembly.manager.pause(OTHERS, now).state is ScheduleState.PAUSED
    assert assembly.manager.resume(OTHERS, now).state is ScheduleState.ACTIVE
    # A beat expands both of them by the same commands.
    later = now + timedelta(seconds=40)
    expansion = threading.Thread(target=assembly.expansion.expand_page, args=(later,), daemon=True)
    expansion.start()

    assert watch.look() == 0, "its process may go on"
    assert watch.look() == 1
    expansion.join(PATIENCE_SECONDS)
    assert not expansion.is_alive()
    for each in (HELD, OTHERS):
        newest = store.mongo.collection("events").find_one({"schedule_id": each}, sort=[("run_time", -1)])
        assert newest is not None
        assert newest["run_time"] > later + timedelta(seconds=30)
    as_before = found(store, HELD)
    assert (as_before.state, as_before.version) == (ScheduleState.ACTIVE, version)
    assert edits(store, HELD) == 0
    assert assembly.manager.pause(HELD, now).state is ScheduleState.PAUSED
    assert edits(store, HELD) == 1


def test_a_transaction_that_goes_on_is_left_alone(
    store: Store, watch: AbandonedTransactions, documents: Documents
) -> None:
    with store.mongo.transaction():
        for _ in range(4):
            write(documents)
            assert watch.look() == 0
    assert watch.look() == 0
    with store.mongo.transaction():
        write(documents)
        assert watch.look() == 0, "another one of the same session"
    assert documents.find_one() == {"_id": "a", "count": 5}


def test_one_that_stands_still_for_less_than_two_seconds_is_left_alone(
    store: Store, documents: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = 1_000.0
    monkeypatch.setattr(abandoned_transactions, "monotonic", lambda: passed)
    watch = AbandonedTransactions(store)
    with ended_meanwhile(store):
        write(documents)
        assert watch.look() == 0
        passed += 1.9
        assert watch.look() == 0
        passed += 0.2
        assert watch.look() == 1
    assert documents.find_one() is None


def test_what_others_do_with_the_same_mongod_is_left_alone(
    store: Store, watch: AbandonedTransactions, documents: Documents, mongo_uri: str
) -> None:
    with (
        MongoClient[dict[str, Any]](mongo_uri, appname="a shop") as client,
        client.start_session() as session,
        session.start_transaction(),
    ):
        orders = client[store.mongo.db.name]["schedules"]
        orders.insert_one({"_id": "an order"}, session=session)
        assert [watch.look() for _ in range(3)] == [0, 0, 0]
    assert documents.find_one() == {"_id": "an order"}


def test_a_change_that_goes_on_after_it_was_ended_is_made_anew_and_once(
    store: Store, watch: AbandonedTransactions, documents: Documents
) -> None:
    ended: list[int] = []

    def writes() -> bool:
        write(documents)
        if not ended:
            # Its process stands still here.
            ended.extend([watch.look(), watch.look()])
        return True

    assert store.audit.change(Change("edited", "schedule", WholeId("a")), writes)
    assert ended == [0, 1]
    assert documents.find_one() == {"_id": "a", "count": 1}
    assert edits(store, "a") == 1


def test_a_look_sees_so_many_at_once_and_the_next_ones_the_others(
    store: Store, watch: AbandonedTransactions, documents: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "MAX_SEEN", 2)
    sessions = [store.mongo.client.start_session() for _ in range(3)]
    for number, session in enumerate(sessions):
        session.start_transaction()
        documents.insert_one({"_id": number}, session=session)
    ended = []
    while store.transactions.idle():
        ended.append(watch.look())
    assert sum(ended) == 3
    assert max(ended) <= 2
    for session in sessions:
        session.end_session()


def test_a_beat_ends_them_whatever_a_look_meets_and_with_no_role_but_readwrite(tmp_path: Path) -> None:
    with MongodWithFailPoints(tmp_path, password="secret") as mongod:
        with MongoClient[dict[str, Any]](mongod.uri) as client:
            role = {"role": "readWrite", "db": "schedulerdb"}
            client.admin.command("createUser", "plain", pwd="plain", roles=[role])
        uri = mongod.uri.replace("scheduler:secret@", "plain:plain@")
        store = Store(Settings(mongo_uri=uri))
        watch, documents = AbandonedTransactions(store, idle_seconds=0.0), store.mongo.collection("schedules")
        with capture_logs() as lines, pytest.MonkeyPatch.context() as patch, lasting_transactions(mongod.uri):
            patch.setattr(abandoned_transactions, "LOOK_SECONDS", 0.01)
            # Of two that make the same collection, mongod ends the transaction.
            write(documents)
            mongod.refuse("aggregate", UNAUTHORIZED)
            with ended_meanwhile(store):
                write(documents)
                watch.start()
                # Without a transaction: it waits until the other one is over.
                waiting = threading.Thread(target=write, args=(documents,), daemon=True)
                waiting.start()
                waiting.join(PATIENCE_SECONDS)
            wait_until(lambda: len(lines) >= 2, "the lines of the log")
            watch.stop()
        assert documents.find_one() == {"_id": "a", "count": 2}
        assert [line["event"] for line in lines] == ["transactions.unknown", "transactions.ended"]
        assert (lines[0]["log_level"], lines[1]["count"]) == ("warning", 1)
        store.close()


def test_a_dry_run_ends_none(store: Store) -> None:
    with pytest.raises(NotInDryRun):
        store.dry_run().transactions.end([])
