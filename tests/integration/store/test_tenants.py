"""Whatever the store is asked for in the name of one tenant, it neither shows nor changes another's data."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.config import Settings
from scheduler_app.domain.backfill import BackfillOverlap
from scheduler_app.domain.blackout import Blackout
from scheduler_app.domain.calendar_feed import CalendarFeed
from scheduler_app.domain.calendars import Calendar, CalendarUse, NamedCalendar
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.event import token_digest
from scheduler_app.domain.forecast import Buckets
from scheduler_app.domain.ids import TENANT, event_id, tenant_of, whole_id
from scheduler_app.domain.kill_switch import KillSwitch, Scope, Target
from scheduler_app.domain.not_given import NOT_GIVEN
from scheduler_app.domain.schedule import EditRecord, Schedule
from scheduler_app.domain.states import State
from scheduler_app.domain.stored_fields import EARLIEST
from scheduler_app.embedded import Mongod
from scheduler_app.store import Store
from scheduler_app.store.backlogs import BacklogFilter
from scheduler_app.store.events.cancellations import PastCut
from scheduler_app.store.events.completions import ExpectedCompletion
from scheduler_app.store.events.lists import EventListFilter
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.store.idempotency import Answered, Begun
from scheduler_app.store.paging import PageRequest
from scheduler_app.usecases.duties.backfills import BackfillRequest, BackfillService
from tests.builders import draft, event, message, schedule
from tests.integration.conftest import NOON
from tests.prepared_databases import PreparedDatabases

SECOND = timedelta(seconds=1)
#: Whose data there are, and who asks.
OWNERS_AND_STRANGERS = [(TENANT, "acme"), ("acme", TENANT), ("acme", "acme-2")]


@dataclass
class World:
    """One tenant's schedules and events of each kind, and a stranger to them."""

    store: Store
    now: datetime
    owner: str
    stranger: str

    def __post_init__(self) -> None:
        store, now = self.store, self.now
        self.calendar = NamedCalendar(self.owner, "c1", Calendar.of(country="CH"), now, now)
        assert store.calendars.insert(self.calendar)
        self.living, self.deleted = whole_id(self.owner, "s1"), whole_id(self.owner, "s2")
        assert store.schedules.insert(
            schedule(now, self.living, tags=("t",), calendar="c1", named_calendar=self.calendar),
            request_seed="seed-1",
        )
        assert store.schedules.insert(schedule(now, self.deleted))
        self.destination = whole_id(self.owner, "d1")
        made = Destination(id=self.destination, url="http://x/", created_at=now, updated_at=now)
        assert store.destinations.insert(made)
        named = draft(url=NOT_GIVEN, destination="d1")
        assert store.schedules.insert(named.schedule(whole_id(self.owner, "s3"), now, max_retries=1))
        self.waiting = event(now + SECOND, self.living)
        self.dead = event(now, self.living)
        store.events.insert([self.waiting, self.dead, event(now, self.deleted)], now, "made")
        token, _ = store.claims.claim([self.dead.id], until=now, now=now, lease_seconds=600, worker="w")
        expected = ExpectedCompletion(self.dead.id, token, token_digest("shown"), 1, 60.0, None)
        assert store.completions.expect([expected]) == {self.dead.id}
        ended = OutcomeRecord(
            self.dead.id, token, State.ERROR, "said", None, {"number": 1, "error": "no"}, now
        )
        assert store.outcomes.record([ended]) == []
        assert store.schedules.delete(self.deleted, now, tenant=self.owner) == 1
        self.message = message(now + SECOND, tenant=self.owner)
        assert store.messages.insert(self.message, now)
        begun = store.idempotency.begin("open", "k:1", "digest", tenant=self.owner)
        assert isinstance(begun, Begun)
        nightly = {"cron": "0 22 * * *"}
        whole = Target(self.owner, Scope.ALL)
        hour = timedelta(hours=1)
        made_blackout = Blackout.of("b1", whole, nightly, hour, "skip", now, timezone="UTC")
        assert store.blackouts.put(made_blackout)
        asked = BackfillRequest(now - SECOND, now, 1.0, BackfillOverlap.ALLOW, only_missing=True)
        living = store.schedules.get(self.living, tenant=self.owner)
        assert isinstance(living, Schedule)
        assert BackfillService(store).start(replace(living, next_run_at=None), asked, now)
        assert store.kill_switches.insert(KillSwitch(Target(self.owner, Scope.TAG, "t"), now))
        self.edit = store.edits.new_id()
        store.edits.add(EditRecord(self.edit, self.living, now, "edited", 2, "ann", "", {}, {"name": "a"}))
        self.feed = whole_id(self.owner, "f1")
        store.calendar_feeds.insert(CalendarFeed(self.feed, "x", "0" * 64, now))
        store.idempotency.finish(begun, 200, {}, b"said")

    def documents(self) -> dict[tuple[str, Any], Any]:
        names = (
            "calendars",
            "schedules",
            "destinations",
            "events",
            "idempotency",
            "outbox",
            "calendar_feeds",
            "backfills",
            "kill_switches",
            "blackouts",
            "edits",
        )
        return {
            (name, row["_id"]): row for name in names for row in self.store.mongo.collection(name).find({})
        }


def _page(world: World, **asked: Any) -> list[Any]:
    return world.store.event_lists.page(PageRequest(limit=9), tenant=world.stranger, **asked).rows


def _begin(world: World) -> bool:
    """The same key of the same owner is free to a stranger."""
    begun = world.store.idempotency.begin("open", "k:1", "another", tenant=world.stranger)
    return isinstance(begun, Begun)


def _late(world: World) -> BacklogFilter:
    return BacklogFilter(world.now + 9 * SECOND)


def _foretold(world: World) -> Buckets:
    return Buckets(world.now, world.now + 9 * SECOND, SECOND)


#: Every verb that acts for one tenant: how a stranger calls it, and what that gives.
OF_ONE_TENANT: dict[str, tuple[Callable[[World], Any], Any]] = {
    "completions.find": (lambda w: w.store.completions.find(w.dead.id, tenant=w.stranger), None),
    "schedules.new_id": (
        lambda w: tenant_of(w.store.schedules.new_id(tenant=w.stranger)) != w.stranger,
        False,
    ),
    "schedules.made_by": (lambda w: w.store.schedules.made_by("seed-1", w.living, tenant=w.stranger), None),
    "schedules.delete": (lambda w: w.store.schedules.delete(w.living, w.now, tenant=w.stranger), None),
    "schedules.get": (lambda w: w.store.schedules.get(w.living, tenant=w.stranger), None),
    "schedules.exists": (lambda w: w.store.schedules.exists(w.living, tenant=w.stranger), False),
    "schedules.count_by_state": (
        lambda w: sum(w.store.schedules.count_by_state(tenant=w.stranger, most=9).values()),
        0,
    ),
    "schedules.page": (lambda w: w.store.schedules.page(PageRequest(limit=9), tenant=w.stranger).rows, []),
    "successors.predecessors": (
        lambda w: w.store.successors.predecessors([w.deleted], tenant=w.stranger),
        {},
    ),
    "cancellations.cancel_past_cut": (
        lambda w: w.store.cancellations.cancel_past_cut(
            w.living, 9, w.now - SECOND, w.now, "no", tenant=w.stranger
        ),
        0,
    ),
    "cancellations.cancel_all": (
        lambda w: w.store.cancellations.cancel_all(w.deleted, 9, w.now, "no", tenant=w.stranger),
        0,
    ),
    "cancellations.look_past_cut": (
        lambda w: w.store.cancellations.look_past_cut(w.living, 9, w.now - SECOND, tenant=w.stranger),
        PastCut(running=False, last_sent=None),
    ),
    "cancellations.cancel": (
        lambda w: w.store.cancellations.cancel(w.waiting.id, w.now, "no", tenant=w.stranger),
        False,
    ),
    "events.redrive": (lambda w: w.store.events.redrive([w.dead.id], w.now, "no", tenant=w.stranger), []),
    "events.dismiss": (lambda w: w.store.events.dismiss([w.dead.id], w.now, "no", tenant=w.stranger), 0),
    "events.get": (lambda w: w.store.events.get(w.waiting.id, tenant=w.stranger), None),
    "events.dead_letters": (lambda w: w.store.events.dead_letters(tenant=w.stranger, most=9), 0),
    "event_lists.page": (
        lambda w: [
            *_page(w),
            *_page(w, schedule_id=w.living),
            *_page(w, schedule_id=w.living, states={State.READY_QUEUE}),
            *_page(w, schedule_id=w.living, states={State.ERROR}),
            *_page(w, narrowing=EventListFilter(tag="t")),
        ],
        [],
    ),
    "newest_events.states": (
        lambda w: w.store.newest_events.states([w.living], frozenset(State), tenant=w.stranger),
        {},
    ),
    "event_lists.dead_letter_causes": (
        lambda w: w.store.event_lists.dead_letter_causes(tenant=w.stranger, most=9).read,
        0,
    ),
    "missed.at": (lambda w: w.store.missed.at(w.living, w.now, tenant=w.stranger), None),
    "schedules.living": (lambda w: w.store.schedules.living([w.living], tenant=w.stranger), set()),
    "schedules.count": (lambda w: w.store.schedules.count(tenant=w.stranger, most=9), (0, False)),
    "event_figures.newest": (
        lambda w: w.store.event_figures.newest(w.now - SECOND, w.now + SECOND, tenant=w.stranger, most=9),
        [],
    ),
    "event_figures.by_day": (
        lambda w: [
            w.store.event_figures.by_day(
                [w.now - SECOND], w.now + SECOND, tenant=w.stranger, most=9, schedule_ids=ids
            )
            for ids in (None, [w.living])
        ],
        [{}, {}],
    ),
    "event_figures.of_schedule": (
        lambda w: w.store.event_figures.of_schedule(
            w.living, w.now - SECOND, w.now + SECOND, tenant=w.stranger, most=9
        ),
        [],
    ),
    "event_figures.last_of_each": (
        lambda w: w.store.event_figures.last_of_each([w.living], w.now + SECOND, tenant=w.stranger, most=9),
        {},
    ),
    "hourly_counts.events": (
        lambda w: (
            w.store.hourly_counts.events(
                [w.living], w.now - SECOND, w.now + SECOND, tenant=w.stranger, most=9
            ).quarters
        ),
        {},
    ),
    "hourly_counts.dead_letters": (
        lambda w: (
            w.store.hourly_counts.dead_letters(
                None, w.now - SECOND, w.now + SECOND, tenant=w.stranger, most=9
            ).quarters
        ),
        {},
    ),
    "edits.page": (lambda w: w.store.edits.page(PageRequest(limit=9), w.living, tenant=w.stranger).rows, []),
    "edits.get": (lambda w: w.store.edits.get(w.edit, w.living, tenant=w.stranger), None),
    "calendars.get": (lambda w: w.store.calendars.get("c1", tenant=w.stranger), None),
    "calendars.known": (lambda w: w.store.calendars.known("c1", tenant=w.stranger), None),
    "calendars.attached_use": (
        lambda w: w.store.calendars.attached_use(CalendarUse("c1", "skip"), tenant=w.stranger).known,
        None,
    ),
    "calendars.users": (lambda w: w.store.calendars.users("c1", tenant=w.stranger), 0),
    "calendars.delete": (
        lambda w: w.store.calendars.delete("c1", w.now, tenant=w.stranger, version=None),
        False,
    ),
    "calendars.remove": (lambda w: w.store.calendars.remove("c1", tenant=w.stranger), None),
    "calendars.restore": (lambda w: w.store.calendars.restore("c1", tenant=w.stranger), None),
    "calendars.page": (lambda w: w.store.calendars.page(PageRequest(limit=9), tenant=w.stranger).rows, []),
    "blackouts.of": (lambda w: w.store.blackouts.of(w.now, tenant=w.stranger), []),
    "blackouts.delete": (lambda w: w.store.blackouts.delete("b1", tenant=w.stranger), False),
    "kill_switches.tags": (lambda w: w.store.kill_switches.tags(tenant=w.stranger), []),
    "kill_switches.of": (lambda w: w.store.kill_switches.of(tenant=w.stranger), []),
    "messages.get": (lambda w: w.store.messages.get(w.message.id, tenant=w.stranger), None),
    "messages.get_many": (lambda w: w.store.messages.get_many([w.message.id], tenant=w.stranger), {}),
    "messages.reschedule": (
        lambda w: w.store.messages.reschedule(w.message.id, w.now, w.now, w.now, "no", tenant=w.stranger),
        False,
    ),
    "messages.scheduled_for_later": (
        lambda w: w.store.messages.scheduled_for_later(EARLIEST, tenant=w.stranger, most=9),
        0,
    ),
    "messages.page": (lambda w: w.store.messages.page(PageRequest(limit=9), tenant=w.stranger).rows, []),
    "destinations.get": (lambda w: w.store.destinations.get(w.destination, tenant=w.stranger), None),
    "destinations.delete": (lambda w: w.store.destinations.delete(w.destination, tenant=w.stranger), False),
    "destinations.begin_deletion": (
        lambda w: w.store.destinations.begin_deletion(w.destination, tenant=w.stranger),
        False,
    ),
    "destinations.give_up_deletion": (
        lambda w: w.store.destinations.give_up_deletion(w.destination, tenant=w.stranger),
        False,
    ),
    "messages.remove_untouched": (
        lambda w: w.store.messages.remove_untouched([w.message.id], tenant=w.stranger),
        [],
    ),
    "destinations.messages_of": (
        lambda w: w.store.destinations.messages_of(w.destination, tenant=w.stranger),
        0,
    ),
    "destinations.in_use": (lambda w: w.store.destinations.in_use(w.destination, tenant=w.stranger), 0),
    "cancel_requests.put": (
        lambda w: w.store.cancel_requests.put(w.waiting.id, "", tenant=w.stranger),
        False,
    ),
    "cancel_requests.stands": (
        lambda w: w.store.cancel_requests.stands(w.waiting.id, tenant=w.stranger),
        False,
    ),
    "destinations.waiting": (
        lambda w: w.store.destinations.waiting(w.destination, in_flight=0, tenant=w.stranger),
        0,
    ),
    "destinations.page": (
        lambda w: w.store.destinations.page(PageRequest(limit=9), tenant=w.stranger).rows,
        [],
    ),
    "backfills.running": (lambda w: w.store.backfills.running(tenant=w.stranger, most=9), 0),
    "backfills.get": (lambda w: w.store.backfills.get(w.living, tenant=w.stranger), None),
    "backfills.cancel": (lambda w: w.store.backfills.cancel(w.living, w.now, tenant=w.stranger), False),
    "backlogs.owed": (lambda w: w.store.backlogs.owed(w.now + 9 * SECOND, tenant=w.stranger, limit=9), []),
    "backlogs.policies": (lambda w: w.store.backlogs.policies([w.living], tenant=w.stranger), {}),
    "backlogs.count": (lambda w: w.store.backlogs.count(_late(w), tenant=w.stranger, most=9), 0),
    "backlogs.page": (lambda w: w.store.backlogs.page(_late(w), tenant=w.stranger, limit=9), []),
    "backlogs.finished_since": (
        lambda w: w.store.backlogs.finished_since(w.now, tenant=w.stranger, most=9),
        0,
    ),
    "backlogs.expire": (
        lambda w: w.store.backlogs.expire([w.waiting.id], _late(w), w.now, "late", tenant=w.stranger),
        0,
    ),
    "forecasts.sample": (lambda w: w.store.forecasts.sample(9, tenant=w.stranger), (0, [])),
    "forecasts.read": (lambda w: w.store.forecasts.read([w.living], tenant=w.stranger), []),
    "forecasts.waiting": (
        lambda w: w.store.forecasts.waiting(_foretold(w), w.now + SECOND, limit=9, tenant=w.stranger),
        ([], 0),
    ),
    "forecasts.each_waiting": (
        lambda w: w.store.forecasts.each_waiting(
            w.now, w.now + 9 * SECOND, w.now + SECOND, limit=9, tenant=w.stranger
        ),
        [],
    ),
    "forecasts.made_since": (
        lambda w: w.store.forecasts.made_since(w.now, _foretold(w), limit=9, tenant=w.stranger),
        [],
    ),
    "forecasts.count": (
        lambda w: w.store.forecasts.count(w.now, w.now + 9 * SECOND, most=9, tenant=w.stranger),
        0,
    ),
    "idempotency.begin": (_begin, True),
    "calendar_feeds.new_id": (
        lambda w: tenant_of(w.store.calendar_feeds.new_id(tenant=w.stranger)) != w.stranger,
        False,
    ),
    "calendar_feeds.all": (lambda w: w.store.calendar_feeds.all(tenant=w.stranger), []),
    "calendar_feeds.delete": (lambda w: w.store.calendar_feeds.delete(w.feed, tenant=w.stranger), False),
}

#: Those that are given a document, or a claim or token that an earlier verb gave out: they write the document
#: itself, whose id names its tenant, or what that token holds. A session is an API key's.
BY_DOCUMENT_OR_TOKEN = {
    *("schedules.insert", "schedules.insert_many", "schedules.update", "schedules.revise"),
    *("messages.insert", "messages.insert_many", "destinations.insert", "destinations.update"),
    *("successors.replace", "events.insert", "last_runs.write", "outcomes.record", "outcomes.record_late"),
    *("idempotency.finish", "idempotency.release", "idempotency.give_up"),
    *(f"sessions.{verb}" for verb in ("open", "key_of", "close", "close_all")),
    *(
        f"calendars.{verb}"
        for verb in ("insert", "update", "renew", "schedules_to_recompute", "note", "settle", "attach")
    ),
    # A token names its feed, whoever's it is.
    *("calendar_feeds.insert", "calendar_feeds.find"),
    # A kill switch's target, and a blackout's, names its tenant.
    "blackouts.put",
    # A kill switch's target names its tenant.
    *(
        f"kill_switches.{verb}"
        for verb in ("insert", "note", "delete", "stopped_schedules", "stopped_events")
    ),
    *("calendar_feeds.insert", "calendar_feeds.find", "edits.add", "edits.new_id"),
}
#: The duties of beats and workers, and what operators ask of the whole: each document keeps its own tenant.
ACROSS_TENANTS = {
    *("schedules.deleted_before", "schedules.remove", "schedules.for_delivery", "events.any_of_schedule"),
    *("destinations.for_delivery", "destinations.reseal", "destinations.queues", "destinations.versions"),
    *("schedules.unreadable", "schedules.with_actions"),
    *("destinations.unreadable", "destinations.stoppable"),
    *("schedules.facts", "cancel_requests.texts", "cancel_requests.remove"),
    *("events.living_by_state", "events.oldest_due", "events.last_ended"),
    *(
        f"cursors.{verb}"
        for verb in ("ready_for_expansion", "claim_for_expansion", "claim_written", "advance")
    ),
    *(f"cursors.{verb}" for verb in ("release", "set_aside", "finish_ended", "claim", "condemn")),
    *(f"remakes.{verb}" for verb in ("with_older_zone_data", "claim_with_older_zone_data")),
    *(f"remakes.{verb}" for verb in ("with_other_days", "claim_with_other_days")),
    *(f"remakes.{verb}" for verb in ("keep_with_zone_data", "keep_with_days", "cut")),
    *("event_lists.made_after", "cancellations.cancel_these_past_cut"),
    *("calendars.changed", "calendars.with_older_holiday_data", "calendars.deleted_before"),
    *("pauses.over", "pauses.end", "pauses.set_aside"),
    *(f"holding.{verb}" for verb in ("hold", "keys", "count", "release")),
    *("blackouts.everybodys", "blackouts.corrupt", "blacked_out.skip", "blacked_out.postpone"),
    *("kill_switches.everybodys", "kill_switches.corrupt", "kill_switches.judged_by"),
    *("calendars.changed", "calendars.with_older_holiday_data"),
    *("owed_notifications.oldest", "owed_notifications.remove_marks"),
    *(f"owed.{verb}" for verb in ("waiting", "claim", "advance", "drop")),
    *(f"outbox.{verb}" for verb in ("due", "named_queues", "take", "put_off", "move", "sent", "put_back")),
    "outbox.put_back_abandoned",
    *(
        f"backfills.{verb}"
        for verb in ("claim", "advance", "set_aside", "sweep", "waiting", "overdue", "ended")
    ),
    *(f"backfills.{verb}" for verb in ("start", "there", "remove")),
    *(f"overlaps.{verb}" for verb in ("unfinished", "supersede", "superseded", "end", "wake_next")),
    *("completions.expect", "completions.overdue", "completions.tell"),
    *(f"claims.{verb}" for verb in ("claim", "renew", "isolate", "postpone", "give_back", "cancel_claimed")),
    *("expirations.expire_claimed", "expirations.newest_due", "missed.settle", "cursors.advance_within"),
    "waiting_work.kinds",
    *(f"recoveries.{verb}" for verb in ("recover_messages", "any_lease_over", "recover_workers")),
    *(f"inspections.{verb}" for verb in ("misplaced_events", "array_fields", "events_with_arrays")),
    *(f"inspections.{verb}" for verb in ("forgotten_events", "misplaced_schedules", "schedules_after")),
    *(f"processes.{verb}" for verb in ("report", "leave", "alive")),
}


def verbs(store: Store) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public method of what a store is made of, but for the connection and the key."""
    for name, part in vars(store).items():
        if not name.startswith("_") and name not in ("mongo", "secret_box"):
            for verb, method in inspect.getmembers(part, inspect.isroutine):
                if not verb.startswith("_"):
                    yield f"{name}.{verb}", method


@pytest.fixture(params=OWNERS_AND_STRANGERS, ids="-".join)
def world(request: pytest.FixtureRequest, store: Store, now: datetime) -> World:
    owner, stranger = request.param
    return World(store, now, owner, stranger)


def test_every_verb_is_either_for_one_tenant_or_across_them(store: Store) -> None:
    found = dict(verbs(store))
    asks = {
        name
        for name, method in found.items()
        if (given := inspect.signature(method).parameters.get("tenant"))
        and given.kind is given.KEYWORD_ONLY
        and given.default is given.empty
    }
    assert asks == set(OF_ONE_TENANT)
    assert found.keys() - asks == BY_DOCUMENT_OR_TOKEN | ACROSS_TENANTS


@pytest.fixture(params=OWNERS_AND_STRANGERS, ids="-".join, scope="module")
def shared_world(
    request: pytest.FixtureRequest, mongod_server: Mongod, prepared_databases: PreparedDatabases
) -> Iterator[World]:
    """One for all that changes nothing in it: to make it takes longer than any verb."""
    name = prepared_databases.take()
    with closing(Store(Settings(mongo_uri=mongod_server.uri, mongo_database=name))) as store:
        yield World(store, NOON, *request.param)
    prepared_databases.give_back(name)


@pytest.mark.parametrize("verb", OF_ONE_TENANT)
def test_a_stranger_sees_and_changes_nothing(shared_world: World, verb: str) -> None:
    world = shared_world
    before = world.documents()
    call, nothing = OF_ONE_TENANT[verb]
    assert call(world) == nothing
    after = world.documents()
    assert {key: after.get(key) for key in before} == before
    # What the stranger has made is in no later verb's way.
    for collection, document_id in after.keys() - before.keys():
        world.store.mongo.collection(collection).delete_one({"_id": document_id})


def test_the_owner_sees_and_changes_its_own(world: World) -> None:
    """The world is one in which each of these verbs has something to do."""
    store, now, owner = world.store, world.now, world.owner
    assert [each.name for each in store.blackouts.of(now, tenant=owner)] == ["b1"]
    (switch,) = store.kill_switches.of(tenant=owner)
    assert switch.target == Target(owner, Scope.TAG, "t")
    assert store.calendars.get("c1", tenant=owner) == store.calendars.known("c1", tenant=owner)
    assert store.calendars.attached_use(CalendarUse("c1", "skip"), tenant=owner).known == world.calendar
    assert store.calendars.users("c1", tenant=owner) == 1
    assert len(store.calendars.page(PageRequest(limit=9), tenant=owner).rows) == 1
    assert store.calendars.delete("c1", world.now, tenant=owner, version=1)
    assert store.schedules.made_by("seed-1", world.living, tenant=owner)
    assert store.schedules.living([world.living, world.deleted], tenant=owner) == {world.living}
    assert store.schedules.exists(world.deleted, tenant=owner)
    assert store.schedules.count_by_state(tenant=owner, most=9)["active"] == 2
    assert len(store.schedules.page(PageRequest(limit=9), tenant=owner).rows) == 2
    assert store.destinations.in_use(world.destination, tenant=owner) == 1
    assert set(store.successors.predecessors([world.deleted], tenant=owner)) == {world.deleted}
    assert store.events.dead_letters(tenant=owner, most=9) == 1
    awaited = store.completions.find(world.dead.id, tenant=owner)
    assert awaited is not None
    assert awaited.digests == (token_digest("shown"),)
    assert len(store.event_lists.dead_letter_causes(tenant=owner, most=9).rows) == 1
    assert len(store.event_lists.page(PageRequest(limit=9), tenant=owner, schedule_id=world.living).rows) == 2
    assert [each.id for each in store.calendar_feeds.all(tenant=owner)] == [world.feed]
    assert store.cancellations.look_past_cut(world.living, 9, now - SECOND, tenant=owner).last_sent == now
    assert [each.tenant for each in store.events.redrive([world.dead.id], now, "again", tenant=owner)] == [
        owner
    ]
    assert store.cancellations.cancel(world.waiting.id, now, "no", tenant=owner)
    assert store.messages.get_many([world.message.id], tenant=owner).keys() == {world.message.id}
    assert store.messages.scheduled_for_later(EARLIEST, tenant=owner, most=9) == 1
    assert len(store.messages.page(PageRequest(limit=9), tenant=owner).rows) == 1
    assert store.messages.reschedule(world.message.id, now, now, now, "later", tenant=owner)
    assert store.messages.remove_untouched([world.message.id], tenant=owner) == [world.message.id]
    assert store.destinations.begin_deletion(world.destination, tenant=owner)
    assert store.destinations.give_up_deletion(world.destination, tenant=owner)
    assert store.cancellations.cancel_all(world.deleted, 9, now, "no", tenant=owner) == 1
    assert isinstance(store.idempotency.begin("open", "k:1", "digest", tenant=owner), Answered)
    assert store.calendar_feeds.delete(world.feed, tenant=owner)


def test_two_tenants_may_choose_the_same_id(store: Store, now: datetime) -> None:
    ids = [whole_id(tenant, "nightly") for tenant in (TENANT, "acme", "acme-2")]
    assert all(store.schedules.insert(schedule(now, each)) for each in ids)
    assert store.events.insert([event(now, each) for each in ids], now, "made") == 3
    _, claimed = store.claims.claim(
        [event_id(each, 1, now) for each in ids], until=now, now=now, lease_seconds=600, worker="w"
    )
    assert sorted(each.tenant for each in claimed) == ["acme", "acme-2", TENANT]
    assert {each.schedule_id for each in claimed} == set(ids)
    assert set(store.schedules.for_delivery(ids)) == set(ids)


def test_an_event_read_from_its_document_has_the_tenant_of_its_id(store: Store, now: datetime) -> None:
    made = event(now, "acme:s1", attempt=1)  # not as it was made: its claim reads it
    store.events.insert([made], now, "made")
    store.mongo.collection("events").update_one({"_id": made.id}, {"$set": {"attempt": 1}})
    _, (claimed,) = store.claims.claim([made.id], until=now, now=now, lease_seconds=600, worker="w")
    assert (claimed.tenant, claimed.schedule_id, claimed.attempt) == ("acme", "acme:s1", 1)


@pytest.mark.parametrize(
    ("bent", "reason"),
    [
        ({"tenant": "acme"}, "tenant is 'acme', and the document's id is one of 'default'"),
        ({"schedule_id": "acme:s1"}, "schedule_id is 'acme:s1', which is another tenant's"),
    ],
)
def test_an_event_that_was_bent_to_another_tenant_is_set_aside(
    store: Store, now: datetime, bent: dict[str, str], reason: str
) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    store.mongo.collection("events").update_one({"_id": made.id}, {"$set": {"attempt": 1} | bent})
    _, claimed = store.claims.claim([made.id], until=now, now=now, lease_seconds=600, worker="w")
    assert claimed == []
    (shown,) = store.event_lists.page(PageRequest(limit=9), tenant=TENANT).rows
    assert (shown.state, shown.tenant, shown.schedule_id) == ("error", TENANT, "s1")
    assert reason in shown.status[-1]["message"]


def test_every_tenant_s_forgotten_events_are_found(store: Store, now: datetime) -> None:
    made = [event(now, whole_id(tenant, "s1")) for tenant in (TENANT, "acme", "zebra")]
    store.events.insert(made, now, "made")
    events = store.mongo.collection("events")
    events.update_many({}, {"$unset": {"due_at": ""}})
    # An index finds an array by what is in it, and this one has no tenant's name.
    events.insert_one({"_id": "x", "tenant": ["b", "y"], "run_time": now})
    assert store.inspections.forgotten_events(now, now + SECOND, limit=2) == 2
    assert store.inspections.forgotten_events(now, now + SECOND, limit=9) == 1
    assert _states(store, [each.id for each in made]) == {"error"}


def _states(store: Store, ids: Sequence[str]) -> set[str]:
    return {row["state"] for row in store.mongo.collection("events").find({"_id": {"$in": list(ids)}})}
