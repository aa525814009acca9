"""A corrupt document harms only itself: each field of each document is corrupted, beside healthy ones, and
all go through every verb together."""

import base64
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from redis import Redis

from scheduler_app.broker.app import make_app
from scheduler_app.broker.publisher import CeleryPublisher
from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.errors import Conflict
from scheduler_app.domain.ids import TENANT, WholeId
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.states import FINAL, State
from scheduler_app.health.processes import check_fleet, check_settings
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.store.idempotency import Begun, InFlight
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.usecases.duties.dispatch import Dispatch
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.usecases.duties.housekeeping import Inspection, Recovery
from tests import broker_queue
from tests.acceptance.journal import Journal
from tests.builders import event, message, schedule
from tests.corruption import (
    IDEMPOTENCY,
    MISSING,
    OVERDUE,
    Corruption,
    corruptions,
    plant_destinations,
    plant_events,
    plant_messages,
    plant_nodes,
    plant_pages,
    plant_schedules,
)
from tests.integration.usecases.test_delivery import Bench, bench, journal, start
from tests.processes import wait_until

__all__ = ["bench", "journal", "start"]  # fixtures

SECOND = timedelta(seconds=1)
HEALTHY = 20


class System:
    """What beats and workers do, one step at a time, over a real MongoDB and a real Redis."""

    def __init__(self, bench: Bench, settings: Settings) -> None:
        self.bench = bench
        self.store = bench.store
        self._settings = settings
        app = make_app(settings)
        self._publisher = CeleryPublisher(app)
        self._expansion = Expansion(self.store, timeframe_seconds=60)
        self._dispatch = Dispatch(self.store, self._publisher, horizon_seconds=5)
        self._recovery = Recovery(self.store)
        self._inspection = Inspection(self.store)

    def collection(self, name: str) -> Any:
        return self.store.mongo.collection(name)

    def turn(self) -> None:
        """One tick of a beat, and what workers make of it."""
        self._expansion.finish_ended(clock.now())
        while self._expansion.expand_page(clock.now()).full:
            pass
        self._recovery.recover_workers(clock.now())
        self._recovery.recover_dispatches(clock.now())
        self._recovery.recover_messages(clock.now(), queue=self._publisher.queue_lengths())
        self._inspection.inspect(clock.now())
        while self._dispatch.dispatch_page(clock.now()).full:
            pass
        with Redis.from_url(self._settings.broker_url) as client:
            for key in broker_queue.lists(client):
                while raw := client.rpop(key):
                    keywords = json.loads(base64.b64decode(json.loads(raw)["body"]))[1]
                    self.bench.hand_over(keywords["ids"])

    def turn_until(self, condition: Callable[[], bool], what: str) -> None:
        def turned() -> bool:
            self.turn()
            return condition()

        wait_until(turned, what)

    def states(self, ids: list[str]) -> dict[str, str]:
        rows = self.collection("events").find({"_id": {"$in": ids}}, {"state": 1})
        return {row["_id"]: row.get("state") for row in rows}

    def are_completed(self, ids: list[str]) -> bool:
        return set(self.states(ids).values()) == {"completed"}

    def are_final(self, ids: list[str]) -> bool:
        return all(isinstance(state, str) and state in FINAL for state in self.states(ids).values())


@pytest.fixture
def system(bench: Bench, settings: Settings) -> System:
    return System(bench, settings)


def healthy_events(system: System, url: str, now: datetime) -> list[str]:
    """Of schedules of their own, due by and by around now."""
    ids = []
    for number in range(HEALTHY):
        rule = "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY"
        system.bench.schedule(url, f"healthy-{number}", rrule=rule)
        ids.append(system.bench.event(now - number * SECOND, f"healthy-{number}"))
    return ids


def test_a_corrupt_schedule_harms_only_itself(system: System, journal: Journal, whole: bool) -> None:
    now = clock.now()
    healthy = healthy_events(system, journal.url("/healthy"), now)
    table = plant_schedules(system.store, now, journal.url("/bad"), whole=whole)
    documents = system.collection("schedules")
    for number in range(HEALTHY):
        system.bench.schedule(journal.url("/due"), f"due-{number}", rrule=OVERDUE)

    def occurred() -> int:
        which = {"schedule_id": {"$regex": "^due-"}, "state": "completed"}
        return int(system.collection("events").count_documents(which))

    system.turn_until(lambda: system.are_completed(healthy), "healthy events")
    system.turn_until(lambda: occurred() == 5 * HEALTHY, "the occurrences of healthy schedules")
    for schedule_id, corruption in table.items():
        row = documents.find_one({"_id": schedule_id})
        if _is_harmless(corruption):
            assert row["state"] in ("active", "finished"), f"{corruption}: {row.get('reason')}"
        elif corruption.path.startswith(("action.headers", "signing", "action.body")):
            # What is sent is not read until it is to be sent.
            assert isinstance(system.store.schedules.get(schedule_id), CorruptSchedule), str(corruption)
        else:
            assert row["state"] == "error", str(corruption)
            assert corruption.field in row["reason"] or corruption.path == "pinned", (
                f"{corruption}: {row['reason']}"
            )


def _is_harmless(corruption: Corruption) -> bool:
    """Beats judge a claim by its lease, and one without an end has ended."""
    return corruption.path in ("owner", "lease_until")


def test_a_corrupt_event_harms_only_itself(system: System, journal: Journal, whole: bool) -> None:
    now = clock.now()
    healthy = healthy_events(system, journal.url("/healthy"), now)
    table = plant_events(system.store, now, journal.url("/bad"), whole=whole)
    documents = system.collection("events")
    system.turn_until(lambda: system.are_completed(healthy), "healthy events")
    system.turn_until(lambda: system.are_final(list(table)), "an end of each corrupt event")
    for event_id, (state, corruption) in table.items():
        row = documents.find_one({"_id": event_id})
        where = f"{state} {corruption}: {row.get('state')} {row['status'][-1]}"
        if row["state"] == "completed":
            assert not _must_be_set_aside(state, corruption), where
        else:
            assert row["state"] == "error", where
            assert corruption.field in row["status"][-1]["message"], where
            assert system.store.events.redrive([event_id], clock.now(), "redriven"), where
    system.turn_until(lambda: system.are_completed(list(table)), "those that were redriven")


def test_a_corrupt_message_harms_only_itself(system: System, journal: Journal, whole: bool) -> None:
    now = clock.now()
    sound = [message(now - SECOND, f"healthy-{n}", url=journal.url("/healthy")) for n in range(HEALTHY)]
    system.store.messages.insert_many(sound, now)
    table = plant_messages(system.store, now, journal.url("/bad"), whole=whole)
    system.turn_until(lambda: system.are_completed([each.id for each in sound]), "healthy messages")
    system.turn_until(lambda: system.are_final(list(table)), "an end of each corrupt message")
    for event_id, corruption in table.items():
        row = system.bench.document(event_id)
        assert row["state"] == "error", f"{corruption}: {row['status'][-1]}"
        said = row["status"][-1]["message"]
        # What is sealed cannot be opened; what is in no kind of action is of another.
        assert corruption.path.partition(".")[0] in said or "seal" in said, f"{corruption}: {said}"
    assert "/bad" not in journal.calls


def test_a_corrupt_destination_harms_only_what_names_it(
    system: System, journal: Journal, whole: bool
) -> None:
    now = clock.now()
    table = plant_destinations(system.store, now, journal.url("/bad"), whole=whole)
    system.store.destinations.insert(
        Destination(id=WholeId("sound"), url=journal.url("/healthy"), created_at=now, updated_at=now)
    )
    named = {name: message(now - SECOND, name, url=NOT_GIVEN, destination=name) for name in (*table, "sound")}
    system.store.messages.insert_many(list(named.values()), now)
    system.turn_until(lambda: system.are_completed(["msg_sound"]), "the sound one's message")
    system.turn_until(lambda: system.are_final([each.id for each in named.values()]), "an end of each")
    for name, corruption in table.items():
        row = system.bench.document(f"msg_{name}")
        said = row["status"][-1]["message"]
        assert row["state"] == "error", f"{corruption}: {said}"
        assert corruption.path.partition(".")[0] in said or "seal" in said, f"{corruption}: {said}"
    assert "/bad" not in journal.calls


def _must_be_set_aside(state: State, corruption: Corruption) -> bool:
    """Whatever else is in the document: its id says what is to be done, as long as these can be written. A
    lease that ran out gets a new time anyway."""
    lists = corruption.path in ("status", "attempts") and isinstance(corruption.value, str | int | dict)
    due_at = corruption.path == "due_at" and (state is not State.RUNNING or corruption.value is MISSING)
    return lists or due_at or corruption.path == "state"


def test_an_array_in_a_field_of_an_index_is_found_and_told_of(
    store: Store, now: datetime, capsys: pytest.CaptureFixture[str]
) -> None:
    inspection, events = Inspection(store), store.mongo.collection("events")
    # The database has been another test's, and the index remembers what it has met there.
    events.drop_index("due_v4")
    store.prepare()
    ids = {}
    for number, (field, value) in enumerate([("due_at", [now, now]), ("state", ["completed"])]):
        made = event(now + number * SECOND)
        store.events.insert([made], now, "made")
        ids[made.id] = field, value
    assert inspection.inspect(now) == 0
    assert "index.arrays" not in "".join(capsys.readouterr())
    for event_id, (field, value) in ids.items():
        events.update_one({"_id": event_id}, {"$set": {field: value}})
    assert inspection.inspect(now) == len(ids)
    assert "due_v4" in "".join(capsys.readouterr())
    for event_id, (field, _) in ids.items():
        row = events.find_one({"_id": event_id})
        assert row is not None
        assert (row["state"], row["status"][-1]["message"]) == (
            "error",
            f"Set aside: {field} is a list, {WANTED[field]}",
        )
    # The index remembers; it is not said each minute, nor is all that waits read each minute.
    assert inspection.inspect(now) == 0
    assert "index.arrays" not in "".join(capsys.readouterr())


#: What each of these fields must be.
WANTED = {"due_at": "not a date", "state": "not text"}


@pytest.mark.parametrize("path", ["status", "attempts", "attempt"])
def test_an_outcome_that_cannot_be_written_is_kept_with_the_event_that_is_set_aside(
    system: System, journal: Journal, path: str
) -> None:
    now = clock.now()
    healthy = healthy_events(system, journal.url("/healthy"), now)
    system.bench.schedule(journal.url("/bad"), "bad", rrule="DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY")
    bad = system.bench.event(now, "bad")
    token, won = system.store.claims.claim(
        [*healthy, bad], until=now, now=now, lease_seconds=600, worker="w1"
    )
    system.collection("events").update_one({"_id": bad}, {"$set": {path: "bent"}})
    records = [
        OutcomeRecord(each.id, token, State.COMPLETED, "done", None, {"number": 1, "status_code": 200}, now)
        for each in won
    ]
    assert system.store.outcomes.record(records) == []
    assert system.are_completed(healthy)
    row = system.bench.document(bad)
    assert (row["state"], row["attempts"][-1]["status_code"]) == ("error", 200)
    assert f"{path} is a str" in row["status"][-1]["message"]
    assert "bent" in row["corrupt"][path]


def test_a_corrupt_page_of_the_outbox_harms_only_itself(system: System, journal: Journal) -> None:
    now = clock.now()
    healthy = healthy_events(system, journal.url("/healthy"), now)
    system.bench.schedule(journal.url("/bad"), "bad", rrule="DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY")
    ids, pages = plant_pages(system.store, now, "bad"), system.collection("outbox")
    system.turn_until(lambda: system.are_completed([*healthy, *ids]), "the events of all pages")
    system.turn_until(lambda: pages.count_documents({}) == 0, "the end of all pages")


def test_a_schedule_that_runs_on_demand_alone_waits_for_nothing_and_is_not_corrupt(
    store: Store, now: datetime
) -> None:
    store.schedules.insert(schedule(now, on_demand=True))
    assert Inspection(store).inspect(now) == 0
    found = store.schedules.for_delivery(["s1"])["s1"]
    assert isinstance(found, Schedule)
    assert found.state is ScheduleState.ACTIVE


def test_a_corrupt_node_harms_only_itself(store: Store) -> None:
    healthy = plant_nodes(store)
    # However long this machine took for that, it is alive.
    alive_at = {"$set": {"seen_at": clock.now() + timedelta(hours=1)}}
    store.mongo.collection("nodes").update_one({"_id": healthy["_id"]}, alive_at)
    alive = store.processes.alive()
    assert healthy["_id"] in {each.id for each in alive}
    assert all(isinstance(each.role, str) and each.age_seconds < 60 for each in alive)
    assert [check.name for check in check_fleet(alive)] == ["beat", "worker", "clocks"]
    assert check_settings(alive, store.processes.settings, "1").name == "settings"


def test_a_corrupt_record_of_an_answer_harms_only_its_key(store: Store) -> None:
    records = store.mongo.collection("idempotency")
    for number, corruption in enumerate(corruptions(IDEMPOTENCY)):
        begun = store.idempotency.begin(TENANT, "me", str(number), "digest")
        assert isinstance(begun, Begun)
        if corruption.path.startswith("answer"):
            store.idempotency.finish(begun, 201, {"ETag": '"1"'}, b"{}")
        records.update_one({"_id": begun.id}, corruption.update())
        found = _begun_again(store, str(number))
        if isinstance(found, Conflict):
            assert corruption.field in str(found)
        elif isinstance(found, InFlight):
            assert corruption.path in ("v", "seed", "token", "created_at"), str(corruption)


def _begun_again(store: Store, key: str) -> object:
    try:
        return store.idempotency.begin(TENANT, "me", key, "digest")
    except Conflict as error:
        return error
