"""A small deployment in one process: a mongod, a Redis and a receiver that are real, and processes over them
whose clock is held."""

import base64
import json
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from flask import Flask
from flask.testing import FlaskClient
from redis import Redis
from structlog.typing import EventDict

from scheduler_app.api.factory import serve
from scheduler_app.beat.duties import duties
from scheduler_app.beat.scheduler import Tick
from scheduler_app.broker.redis.backend import key_prefix
from scheduler_app.config import Settings
from scheduler_app.domain.backfill import BackfillState
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.domain.states import FINAL, LIVING
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.worker import Pipeline
from tests import broker_queue
from tests.acceptance.journal import Call, Journal
from tests.builders import schedule
from tests.integration.fault_injection.door import PATIENCE_SECONDS, TRIED_HOST

NOON: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)
SCHEDULE: Final = "s"
#: Holds events that it never sent, until its lease is seen to be over.
NO_WORKER: Final = "lost"
LONG_AGO: Final = datetime(2020, 1, 1, tzinfo=UTC)
#: How often recovery is given a try, and by how much the clock is put forward between two tries: longer than
#: every grace and retry.
ROUNDS: Final = 8
STEP: Final = timedelta(seconds=30)
HORIZON: Final = timedelta(seconds=5)
#: How often Celery tries a task again whose message could not be worked on.
TRIES_OF_A_MESSAGE: Final = 3

_LEASES: Final = (
    ("events", "lease_until"),
    ("schedules", "lease_until"),
    ("schedules", "owed_lease_until"),
    ("backfills", "lease_until"),
    ("idempotency", "lease_until"),
    ("outbox", "until"),
)


def at(seconds: float) -> datetime:
    """So many seconds after noon, at which the clock is held first."""
    return NOON + timedelta(seconds=seconds)


class Time:
    """The clock of all processes; it stands still until a test moves it."""

    def __init__(self) -> None:
        self._now = NOON

    def __call__(self) -> datetime:
        return self._now

    def put(self, now: datetime) -> None:
        self._now = now


class Process:
    """An API, a beat and a worker in one."""

    def __init__(self, settings: Settings, app: Flask, time: Time) -> None:
        self.made = serve(app, settings)
        self.client: FlaskClient = app.test_client()
        self._time = time
        self._redis = Redis.from_url(settings.broker_url.replace(TRIED_HOST, "127.0.0.1"))
        self._pipeline: Pipeline | None = None
        self.taken: Counter[str] = Counter()
        """In how many messages of the queue each event came."""

    def tick(self, *names: str) -> None:
        """One tick of a beat, with all duties or those of these names."""
        chosen = [duty for duty in duties(self.made) if not names or duty.name in names]
        beat = Tick(chosen, now=self._time, stopping=lambda: False, unavailable=self.made.faults)
        beat.run()

    def deliver_messages(self) -> None:
        """Delivers what lies in the queue, until everything is recorded."""
        self.deliver(self._taken())

    def deliver(self, messages: list[list[str]]) -> None:
        """The same for messages with the ids of these events."""
        if messages and self._pipeline is None:
            self._pipeline = self.made.pipeline("w")
            self._pipeline.start()
        for ids in messages:
            self._deliver(ids)
        if self._pipeline is not None:
            assert self._pipeline.wait_until_empty(PATIENCE_SECONDS), "a worker does not come to an end"

    def end_worker(self) -> None:
        """In good order, as when a worker is told to end."""
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            pipeline.stop_starting()
            pipeline.interrupt()
            pipeline.stop()

    def close(self) -> None:
        self.end_worker()
        self._redis.close()
        self.made.store.close()

    def _deliver(self, ids: list[str]) -> None:
        assert self._pipeline is not None
        for left in reversed(range(TRIES_OF_A_MESSAGE)):
            try:
                self._pipeline.delivery.deliver(ids)
                return
            except STORE_FAULTS:
                if not left:
                    raise

    def _taken(self) -> list[list[str]]:
        found = []
        for key in broker_queue.lists(self._redis):
            while (raw := self._redis.rpop(key)) is not None:
                _, keywords, _ = json.loads(base64.b64decode(json.loads(cast("bytes", raw))["body"]))
                found.append(keywords["ids"])
                self.taken.update(keywords["ids"])
        return found


@dataclass(frozen=True)
class Ran:
    """What came of a run."""

    status: int | None
    """Of the answer, where it was a request."""
    raised: BaseException | None
    logs: list[EventDict]

    @property
    def said_something(self) -> bool:
        loud = ("warning", "error", "critical", "exception")
        return self.raised is not None or any(line["log_level"] in loud for line in self.logs)


class Run:
    """An action of a process in a thread of its own, which may never come to its end."""

    def __init__(self, action: Callable[[], int | None]) -> None:
        self._action = action
        self._status: int | None = None
        self._raised: BaseException | None = None
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="run", daemon=True)

    def start(self) -> "Run":
        self._thread.start()
        return self

    def result(self, logs: list[EventDict]) -> Ran:
        return Ran(self._status, self._raised, logs)

    @property
    def status(self) -> int | None:
        return self._status

    @property
    def succeeded(self) -> bool:
        return self._raised is None and (self._status or 0) < 300

    def __str__(self) -> str:
        return str(self._status or self._raised)

    def join(self) -> None:
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "a run does not come to its end"

    def _work(self) -> None:
        try:
            self._status = self._action()
        except BaseException as error:  # what a process dies of, too
            self._raised = error
        finally:
            self.ended.set()


class World:
    """The database, the queue and the receiver of one try."""

    def __init__(
        self, settings: Settings, store: Store, journal: Journal, apps: tuple[Flask, Flask], time: Time
    ) -> None:
        """`apps` are for the tried process and for the others."""
        self.settings, self.store, self.journal, self.time = settings, store, journal, time
        self._apps = apps
        self.path = f"/{secrets.token_hex(4)}"
        self.database = store.mongo.db
        self.resent: set[str] = set()
        """Events whose requests may have been made before their process ended: they may be sent twice."""
        self._sent_before_deletion: tuple[int, set[str]] | None = None
        self.answers: dict[str, int] = {}
        """The answers to requests about single events."""
        time.put(NOON)

    @property
    def url(self) -> str:
        return self.journal.url(self.path)

    @property
    def calls(self) -> list[Call]:
        return self.journal.calls[self.path]

    def process(self) -> Process:
        """A process that nothing happens to."""
        return Process(self.settings, self._apps[1], self.time)

    def tried(self) -> Process:
        """The process whose calls pass the door."""
        settings = replace(
            self.settings, broker_url=self.settings.broker_url.replace("127.0.0.1", TRIED_HOST)
        )
        return Process(settings, self._apps[0], self.time)

    # -- before the run ----------------------------------------------------------------------------------

    def schedule(
        self, schedule_id: str = SCHEDULE, *, made: int = -60, first: int = -24, count: int = 6, **fields: Any
    ) -> None:
        """A schedule made a minute before noon, whose `count` occurrences come every ten seconds."""
        stored = schedule(at(made), schedule_id, rrule=rule(first, count), url=self.url, **fields)
        self.store.schedules.insert(stored)

    def expand(self, until: datetime, *ids: str) -> None:
        process = self.process()
        made = process.made
        written = [made.manager.get(each) for each in ids or [SCHEDULE]]
        made.expansion.expand_these(written, at(-60), until)
        process.close()

    def dispatch(self) -> None:
        process = self.process()
        process.tick("dispatch")
        process.close()

    def set_event(self, event_id: str, change: dict[str, Any]) -> None:
        assert self.database["events"].update_one({"_id": event_id}, change).matched_count == 1

    def redis(self) -> Redis:
        return Redis.from_url(self.settings.broker_url)

    def has_time_of_flow_control(self) -> None:
        """Redis has counted for destinations for a while, and grants at once."""
        with self.redis() as client:
            client.set(f"{key_prefix(self.settings.mongo_database)}flow:began", "0")

    # -- after it ----------------------------------------------------------------------------------------

    def note_end_of_process(self) -> None:
        """A process has just ended: what it had claimed it may have sent, and mongod ends its transaction
        within a minute."""
        self.database.client.admin.command("killAllSessions", [])
        self.resent |= self._running()

    def note_deletion(self) -> None:
        """Where the schedule is deleted: from now on only what a worker holds may be sent."""
        if self._sent_before_deletion is None and self.database["schedules"].find_one(
            {"_id": SCHEDULE, "state": ScheduleState.DELETED.value}
        ):
            self._sent_before_deletion = len(self.calls), self._running()

    def sent_after_deletion(self) -> list[str]:
        count, held = self._sent_before_deletion or (len(self.calls), set())
        return [call.key for call in self.calls[count:] if call.key not in held]

    def _running(self) -> set[str]:
        """Events that a worker of this world has claimed."""
        found = self.database["events"].find({"state": "running", "owner": {"$ne": NO_WORKER}})
        return {row["_id"] for row in found}

    def age_leases(self) -> None:
        """All leases are over, by mongod's clock."""
        for collection, lease in _LEASES:
            self.database[collection].update_many({lease: {"$type": "date"}}, {"$set": {lease: LONG_AGO}})

    def settle(self, process: Process) -> None:
        """Lets another process repair and do everything, until nothing is left to do."""
        for _ in range(ROUNDS):
            self.age_leases()
            process.tick()
            # What was dispatched ahead is due.
            self.time.put(self.time() + HORIZON)
            process.deliver_messages()
            if self.is_quiet():
                return
            self.time.put(self.time() + STEP)

    def is_quiet(self) -> bool:
        active = {"state": ScheduleState.ACTIVE.value, "next_run_at": {"$exists": True}}
        held = [{name: {"$exists": True}} for name in ("owner", "owed")]
        return not (
            self.database["events"].find_one({"state": {"$in": sorted(LIVING)}})
            or self.database["schedules"].find_one({"$or": [active, *held]})
            or self.database["outbox"].find_one()
            or self.database["backfills"].find_one({"state": BackfillState.RUNNING.value})
        )

    def summary(self) -> object:
        """What two runs have in common that have done the same."""
        with self.redis() as client:
            waiting = broker_queue.waiting(client)
        events = sorted(
            (row["kind"], row["run_time"], row["state"]) for row in self.database["events"].find()
        )
        kept = ("state", "version", "revision", "next_run_at", "cut_pending")
        schedules = sorted(
            repr([row.get(name) for name in kept] + ["owner" in row])
            for row in self.database["schedules"].find()
        )
        others = [
            self.database[name].count_documents({})
            for name in ("outbox", "kill_switches", "backfills", "calendars")
        ]
        return waiting, events, schedules, others


def rule(first: int, count: int, *, every: int = 10) -> str:
    """Beginning so many seconds after noon; `every` is in seconds."""
    return f"DTSTART:{at(first):%Y%m%dT%H%M%SZ}\nRRULE:FREQ=SECONDLY;INTERVAL={every};COUNT={count}"


#: A schedule's id, the kind of an event, and its run time.
Occurrence = tuple[str, str, datetime]


@dataclass(frozen=True)
class Expected:
    """What has to have been sent, once."""

    sent: Collection[Occurrence]
    either: Collection[Occurrence] = ()
    """What may have been sent, once, or withdrawn."""


def occurrences(*seconds: int, of: str = SCHEDULE, kind: str = "scheduled") -> list[Occurrence]:
    return [(of, kind, at(each)) for each in seconds]


def audit(world: World, expected: Expected) -> list[str]:
    """What is wrong after everything was given the time to come to its end."""
    wrong: list[str] = []
    rows = list(world.database["events"].find())
    keys = [call.key for call in world.calls]
    completed: list[Occurrence] = []
    for row in rows:
        event_id, state, count = row["_id"], row["state"], keys.count(row["_id"])
        if state not in FINAL:
            wrong.append(f"{event_id} is stuck in {state}: {[line['message'] for line in row['status']]}")
        most = 2 if event_id in world.resent else 1
        if count > most:
            wrong.append(f"{event_id} was sent {count} times")
        if state == "completed":
            completed.append((row.get("schedule_id", ""), row["kind"], row["run_time"]))
            if not count:
                wrong.append(f"{event_id} is completed and was never sent")
        elif count and event_id not in world.resent:
            wrong.append(f"{event_id} is {state} and was sent")
    for strange in set(keys) - {row["_id"] for row in rows}:
        wrong.append(f"{strange} was sent and is no event")
    for each in set(completed):
        if completed.count(each) > 1:
            wrong.append(f"{each} has {completed.count(each)} events")
        if each not in expected.sent and each not in expected.either:
            wrong.append(f"{each} was sent and should not have been")
    wrong += [f"{each} was not sent" for each in expected.sent if each not in completed]
    for row in world.database["schedules"].find():
        # One whose last occurrence has passed is finished by some later tick.
        goes_on = row["state"] == "active" and "next_run_at" in row
        if "owner" in row or "owed" in row or goes_on or row["state"] == "error":
            wrong.append(f"the schedule {row['_id']} is left in {row['state']}, owner {row.get('owner')}")
    wrong += [f"{each} was sent after its schedule was deleted" for each in world.sent_after_deletion()]
    if world.database["outbox"].find_one():
        wrong.append("a page of the outbox is left")
    return wrong
