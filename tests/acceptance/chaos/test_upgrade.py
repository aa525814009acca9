"""An upgrade goes process by process, over documents and messages of the version before."""

import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pymongo import MongoClient

from scheduler_app.broker.app import make_app
from scheduler_app.broker.publisher import CeleryPublisher
from scheduler_app.config import Settings
from scheduler_app.domain.action import QueueLengths
from scheduler_app.store import Store
from scheduler_app.store.events.outbox import DueEvent
from scheduler_app.usecases.duties.dispatch_selection import Batch
from scheduler_app.usecases.duties.housekeeping import Recovery
from tests.acceptance.journal import Journal
from tests.acceptance.stack import Stack
from tests.builders import event, schedule
from tests.integration.store.taking import send
from tests.processes import wait_until

#: What documents have not had from the beginning, and what comes with something that happened to them.
LATER_FIELDS = {
    "schedules": ("zone_data", "signing", "checkpoint", "tags", "reason", "cut_pending"),
    "events": ("lost_leases", "attempts_before", "dispatches", "dispatched_at", "queue"),
}


FAR = "DTSTART:20400101T000000Z\nRRULE:FREQ=DAILY"


def settings_of(stack: Stack) -> Settings:
    environment = stack.environment
    return Settings(
        mongo_uri=environment["MONGO_URI"],
        mongo_database=environment["MONGO_DATABASE"],
        broker_url=environment["BROKER_URL"],
    )


def make_old(settings: Settings) -> None:
    """Takes the later fields away from everything in the database."""
    with MongoClient[dict[str, Any]](settings.mongo_uri) as client:
        for collection, fields in LATER_FIELDS.items():
            found = client[settings.mongo_database][collection]
            found.update_many({}, {"$unset": dict.fromkeys(fields, "")})


def leave_behind(store: Store, now: datetime, url: Callable[[str], str]) -> None:
    """One event for each state that a process of the version before may have left it in; a schedule each."""
    for state in ("waiting", "sent", "forgotten", "orphaned"):
        store.schedules.insert(schedule(now, state, url=url(f"/{state}"), rrule=FAR))
        store.events.insert([event(now, state)], now, "made by the version before")
    for state in ("sent", "forgotten"):
        made = event(now, state)
        token, _ = store.outbox.take([DueEvent(made.due_at, made.id)], now, now, lease_seconds=60)
        store.outbox.sent(token)
    taken = {"dispatcher": {"token": "of a beat that died", "until": now + timedelta(hours=1)}}
    store.mongo.collection("events").update_one({"_id": event(now, "waiting").id}, {"$set": taken})
    store.claims.claim([event(now, "orphaned").id], until=now, now=now, lease_seconds=0, worker="gone")


def test_recovery_and_dispatch_read_the_events_of_the_version_before(
    mongo_uri: str, database_name: str
) -> None:
    settings = Settings(mongo_uri=mongo_uri, mongo_database=database_name)
    store = Store(settings)
    store.prepare()
    now = datetime.now(UTC).replace(microsecond=0)
    leave_behind(store, now, "http://127.0.0.1:9{}".format)
    make_old(settings)
    recovery = Recovery(store)
    wait_until(lambda: recovery.recover_workers(now).workers == 1, "the lease to be over")
    assert recovery.recover_messages(now + timedelta(seconds=11), queue=QueueLengths()).messages == 2
    assert len(send(store.outbox, now + timedelta(seconds=20))) == 4
    rows = list(store.mongo.collection("events").find())
    assert [row["dispatches"] for row in rows] == [1, 1, 1, 1]
    assert [row.get("lost_leases", 0) for row in rows if row["schedule_id"] == "orphaned"] == [1]
    store.close()


@pytest.mark.chaos
@pytest.mark.timeout(180)
def test_documents_and_messages_of_the_version_before_are_delivered(
    make_stack: Callable[..., Stack], journal: Journal
) -> None:
    stack = make_stack()
    settings = settings_of(stack)
    now = datetime.now(UTC).replace(microsecond=0)
    store = Store(settings)
    store.prepare()
    leave_behind(store, now, journal.url)
    begin = f"{now + timedelta(seconds=5):%Y%m%dT%H%M%SZ}"
    rule = f"DTSTART:{begin}\nRRULE:FREQ=SECONDLY;COUNT=15"
    store.schedules.insert(schedule(now, "rule", url=journal.url("/rule"), rrule=rule))
    make_old(settings)
    store.close()
    app = make_app(settings)
    publisher = CeleryPublisher(app)
    publisher.publish([Batch(ids=(event(now, "sent").id,), eta=None)])

    stack.api()
    stack.beat()
    stack.worker()
    for state in ("waiting", "sent", "forgotten", "orphaned"):
        (done,) = stack.finished(state)
        assert (done["state"], done["attempt"]) == ("completed", 1), state
        assert len(journal.calls[f"/{state}"]) == 1
    stack.finished("rule", 15)
    assert len({call.run_time for call in journal.calls["/rule"]}) == 15


SCHEDULES = 10
EACH = 45


def end(process: subprocess.Popen[bytes]) -> None:
    """As a supervisor ends it; it has to end by itself, and well."""
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0


@pytest.mark.chaos
@pytest.mark.timeout(240)
def test_beats_workers_and_apis_restarted_one_by_one_under_load_lose_and_double_nothing(
    make_stack: Callable[..., Stack], journal: Journal
) -> None:
    stack = make_stack(PREQUEUER_EVENT_TIMEFRAME_MINUTES="1")
    api = stack.api()
    beats = [stack.beat(f"beat{number}") for number in range(2)]
    workers = [stack.worker(f"worker{number}") for number in range(2)]
    rule = f"FREQ=SECONDLY;COUNT={EACH}"
    made = [stack.create(journal.url(f"/{number}"), rrule=rule) for number in range(SCHEDULES)]
    wait_until(lambda: len(journal.calls["/0"]) >= 3, "some calls")
    for number in range(2):
        end(workers[number])
        stack.worker(f"newer-worker{number}")
        end(beats[number])
        stack.beat(f"newer-beat{number}")
        old, api = api, stack.api()
        made.append(stack.create(journal.url(f"/{SCHEDULES + number}"), rrule="FREQ=SECONDLY;COUNT=10"))
        end(old)
    restarted_at = time.time()
    assert journal.calls["/0"][-1].at < restarted_at + 1
    assert len(journal.calls["/0"]) < EACH, "the load has to outlast the restarts"
    for schedule_id in made:
        wait_until(lambda: not stack.events(schedule_id, "pending"), "nothing to be pending")  # noqa: B023
    for number in range(SCHEDULES + 2):
        owed = EACH if number < SCHEDULES else 10
        came = Counter(call.run_time for call in journal.calls[f"/{number}"])
        assert len(came) == owed, f"schedule {number} lost {owed - len(came)}"
        assert max(came.values()) == 1, f"schedule {number} sent {came.most_common(1)} twice"
