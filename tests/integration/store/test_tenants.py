"""Whatever the store is asked for by a tenant, or by its ids, it neither shows nor changes another's data."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.config import Settings
from scheduler_app.domain.act import Act, Actor, ActorKind
from scheduler_app.domain.api_key import ALL_SCOPES, StoredKey
from scheduler_app.domain.audit import Change, Difference
from scheduler_app.domain.backfill import BackfillOverlap
from scheduler_app.domain.blackout import Blackout
from scheduler_app.domain.calendar_feed import CalendarFeed
from scheduler_app.domain.calendars import Calendar, CalendarUse, NamedCalendar
from scheduler_app.domain.cause import Tally, failing_key
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.event import token_digest
from scheduler_app.domain.figures import FigurePart, FigureSubject
from scheduler_app.domain.forecast import EVERY_CALLBACK, Buckets, ForecastChoice
from scheduler_app.domain.heartbeat import Heartbeat, new_heartbeat
from scheduler_app.domain.ids import TENANT, WholeId, event_id, name_of, tenant_of, whole_id
from scheduler_app.domain.kill_switch import KillSwitch, Scope, Target
from scheduler_app.domain.ledger import HOUR, Account, LedgerLine, OutcomeCounts, hour_of
from scheduler_app.domain.person import Person
from scheduler_app.domain.redrive import Redrive
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.states import State
from scheduler_app.domain.stored_fields import EARLIEST
from scheduler_app.domain.triggers import TriggerContext, new_trigger
from scheduler_app.embedded import Mongod
from scheduler_app.store import Store
from scheduler_app.store.acting import acting
from scheduler_app.store.audit import AuditFilter
from scheduler_app.store.backlogs import BacklogFilter
from scheduler_app.store.causes import CauseListFilter
from scheduler_app.store.events.cancellations import PastCut
from scheduler_app.store.events.completions import ExpectedCompletion
from scheduler_app.store.events.lists import EventListFilter
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.store.events.run_counts import RunChoice, RunCounts
from scheduler_app.store.forecasts import WaitingChoice
from scheduler_app.store.idempotency import Answered, Begun
from scheduler_app.store.paging import PageRequest
from scheduler_app.store.quotas import Noted
from scheduler_app.store.tenant_exports import EXPORTED
from scheduler_app.usecases.duties.backfills import BackfillRequest, BackfillService
from tests.builders import draft, event, message, notification_rule, schedule, silence
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
        assert store.schedules.delete(self.deleted, now) is not None
        self.message = message(now + SECOND, tenant=self.owner)
        assert store.messages.insert(self.message, now)
        begun = store.idempotency.begin(self.owner, "open", "k:1", "digest")
        assert isinstance(begun, Begun)
        nightly = {"cron": "0 22 * * *"}
        whole = Target(self.owner, Scope.ALL)
        hour = timedelta(hours=1)
        self.blackout = Blackout.of("b1", whole, nightly, hour, "skip", now, timezone="UTC")
        assert store.blackouts.put(self.blackout)
        self.rule = notification_rule(now, whole_id(self.owner, "n1"))
        assert store.notification_rules.put(self.rule)
        self.silence = silence(now, whole_id(self.owner, "n1"))
        assert store.silences.put(self.silence)
        asked = BackfillRequest(now - SECOND, now, 1.0, BackfillOverlap.ALLOW, only_missing=True)
        living = store.schedules.get(self.living)
        assert isinstance(living, Schedule)
        assert BackfillService(store).start(replace(living, next_run_at=None), asked, now)
        assert store.kill_switches.insert(KillSwitch(Target(self.owner, Scope.TAG, "t"), now))
        edited = Change("edited", "schedule", WholeId(self.living), Difference({}, {"name": "a"}), 2)
        with acting(Act(Actor(ActorKind.KEY, "ann"))):
            store.audit.note(edited)
        [line] = store.audit.edits(PageRequest(limit=1), self.living).rows
        self.line = line.id
        tally = Tally(failing_key(self.dead.id, "http://x:80", 500, None), now, now, dead=1)
        [self.cause] = store.causes.touch([tally])
        self.redrive = whole_id(self.owner, "r1")
        assert store.redrives.start(
            Redrive(id=self.redrive, cause=None, before=now, next_due_at=now, started_at=now)
        )
        self.heartbeat = new_heartbeat(
            Heartbeat(
                id=whole_id(self.owner, "h1"),
                trigger=new_trigger({"cron": "0 9 * * *"}, TriggerContext(now)),
                calendar=CalendarUse("c1", "skip", known=self.calendar),
                secret_sha256="0" * 64,
                created_at=now,
                since=now,
            ),
            now,
        )
        assert store.heartbeats.insert(self.heartbeat)
        part = FigurePart(hour_of(now), Counter(completed=1))
        store.figure_counters.add([(FigureSubject(self.owner), HOUR, part)])
        open_ = Account(OutcomeCounts(owed=1, open=1))
        assert store.ledger.append(LedgerLine(self.owner, 1, hour_of(now), 1, now, open_).sealed())
        self.key = whole_id(self.owner, "4k2m9x0p7q1z")
        assert store.api_keys.insert(StoredKey(self.key, "k", ALL_SCOPES, now, "0" * 64))
        self.person = whole_id(self.owner, "p" * 24)
        assert store.people.seen(Person(self.person, "ann", ALL_SCOPES, now, now)) == []
        self.feed = whole_id(self.owner, "f1")
        store.calendar_feeds.insert(CalendarFeed(self.feed, "x", "0" * 64, now))
        store.idempotency.finish(begun, 200, {}, b"said")

    def theirs(self, own_id: str) -> WholeId:
        """The id that what the stranger calls by the same name has."""
        return whole_id(self.stranger, name_of(own_id))

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
            "cancel_requests",
            "ledger",
            "audit",
            "figures",
            "causes",
            "redrives",
            "heartbeats",
            "notifications",
            "silences",
            "api_keys",
            "people",
        )
        return {
            (name, row["_id"]): row for name in names for row in self.store.mongo.collection(name).find({})
        }


def _page(world: World, **asked: Any) -> list[Any]:
    return world.store.event_lists.page(world.stranger, PageRequest(limit=9), **asked).rows


def _begin(world: World) -> bool:
    """The same key of the same owner is free to a stranger."""
    begun = world.store.idempotency.begin(world.stranger, "open", "k:1", "another")
    return isinstance(begun, Begun)


def _late(world: World) -> BacklogFilter:
    return BacklogFilter(world.now + 9 * SECOND)


def _foretold(world: World) -> Buckets:
    return Buckets(world.now, world.now + 9 * SECOND, SECOND)


def _chosen(world: World) -> WaitingChoice:
    return world.store.forecasts.waiting_choice(world.stranger, EVERY_CALLBACK)[0]


#: Every verb that acts for one tenant, or for what has an id: how a stranger calls it, with its own ids of
#: the same names, and what that gives.
OF_ONE_TENANT: dict[str, tuple[Callable[[World], Any], Any]] = {
    "tenant_exports.page": (
        lambda w: [
            w.store.tenant_exports.page(each, w.stranger, None, with_secrets=True) for each in EXPORTED
        ],
        [([], None)] * len(EXPORTED),
    ),
    "completions.find": (lambda w: w.store.completions.find(w.theirs(w.dead.id)), None),
    "schedules.made_by": (lambda w: w.store.schedules.made_by("seed-1", w.theirs(w.living)), None),
    "schedules.delete": (lambda w: w.store.schedules.delete(w.theirs(w.living), w.now), None),
    "schedules.get": (lambda w: w.store.schedules.get(w.theirs(w.living)), None),
    "schedules.exists": (lambda w: w.store.schedules.exists(w.theirs(w.living)), False),
    "schedules.count_by_state": (
        lambda w: sum(w.store.schedules.count_by_state(w.stranger, most=9).values()),
        0,
    ),
    "schedules.page": (lambda w: w.store.schedules.page(w.stranger, PageRequest(limit=9)).rows, []),
    "successors.predecessors": (
        lambda w: w.store.successors.predecessors([w.theirs(w.deleted)]),
        {},
    ),
    "cancellations.cancel_past_cut": (
        lambda w: w.store.cancellations.cancel_past_cut(w.theirs(w.living), 9, w.now - SECOND, w.now, "no"),
        0,
    ),
    "cancellations.cancel_all": (
        lambda w: w.store.cancellations.cancel_all(w.theirs(w.deleted), 9, w.now, "no"),
        0,
    ),
    "cancellations.look_past_cut": (
        lambda w: w.store.cancellations.look_past_cut(w.theirs(w.living), 9, w.now - SECOND),
        PastCut(running=False, last_sent=None),
    ),
    "cancellations.cancel": (
        lambda w: w.store.cancellations.cancel(w.theirs(w.waiting.id), w.now, "no"),
        False,
    ),
    "events.redrive": (lambda w: w.store.events.redrive([w.theirs(w.dead.id)], w.now, "no"), []),
    "events.dismiss": (lambda w: w.store.events.dismiss([w.theirs(w.dead.id)], w.now, "no"), 0),
    "events.get": (lambda w: w.store.events.get(w.theirs(w.waiting.id)), None),
    "events.dead_letters": (lambda w: w.store.events.dead_letters(w.stranger, most=9), 0),
    "event_lists.page": (
        lambda w: [
            *_page(w),
            *_page(w, schedule_id=w.theirs(w.living)),
            *_page(w, schedule_id=w.theirs(w.living), states={State.READY_QUEUE}),
            *_page(w, schedule_id=w.theirs(w.living), states={State.ERROR}),
            *_page(w, narrowing=EventListFilter(tag="t")),
        ],
        [],
    ),
    "newest_events.states": (
        lambda w: w.store.newest_events.states([w.theirs(w.living)], frozenset(State)),
        {},
    ),
    "event_lists.dead_letter_causes": (
        lambda w: w.store.event_lists.dead_letter_causes(w.stranger, most=9).read,
        0,
    ),
    "missed.at": (lambda w: w.store.missed.at(w.theirs(w.living), w.now), None),
    "schedules.living": (lambda w: w.store.schedules.living([w.theirs(w.living)]), set()),
    "schedules.count": (lambda w: w.store.schedules.count(w.stranger, most=9), (0, False)),
    "event_figures.newest": (
        lambda w: w.store.event_figures.newest(w.stranger, w.now - SECOND, w.now + SECOND, most=9),
        [],
    ),
    "event_figures.of_schedule": (
        lambda w: w.store.event_figures.of_schedule(
            w.theirs(w.living), w.now - SECOND, w.now + SECOND, most=9
        ),
        [],
    ),
    "event_figures.last_of_each": (
        lambda w: w.store.event_figures.last_of_each([w.theirs(w.living)], w.now + SECOND, most=9).popitem()[
            1
        ],
        [],
    ),
    "audit.edits_of_all": (lambda w: w.store.audit.edits_of_all(PageRequest(limit=9), w.stranger).rows, []),
    "audit.edits": (lambda w: w.store.audit.edits(PageRequest(limit=9), w.theirs(w.living)).rows, []),
    "audit.edits_of_schedules": (
        lambda w: w.store.audit.edits_of_schedules(PageRequest(limit=9), [w.theirs(w.living)]).rows,
        [],
    ),
    "audit.page": (
        lambda w: [
            *w.store.audit.page(w.stranger, PageRequest(limit=9), AuditFilter()).rows,
            *w.store.audit.page(
                w.stranger, PageRequest(limit=9), AuditFilter(kind="schedule", resource=w.living)
            ).rows,
        ],
        [],
    ),
    "ended_work.remove_events": (
        lambda w: w.store.ended_work.remove_events(w.stranger, w.now + 9 * SECOND, limit=9).count,
        0,
    ),
    "ended_work.remove_causes": (
        lambda w: w.store.ended_work.remove_causes(w.stranger, w.now + 9 * SECOND, limit=9),
        0,
    ),
    "ended_work.remove_redrives": (
        lambda w: w.store.ended_work.remove_redrives(w.stranger, w.now + 9 * SECOND, limit=9),
        0,
    ),
    "audit_chain.prune": (lambda w: w.store.audit_chain.prune(w.stranger, w.now, limit=9), 0),
    "audit.get": (lambda w: w.store.audit.get(w.line, "schedule", w.theirs(w.living)), None),
    "audit_chain.links": (lambda w: w.store.audit_chain.links(w.stranger, 0, limit=9), []),
    "audit_chain.chain": (lambda w: w.store.audit_chain.chain(w.stranger, limit=9), 0),
    "redrives.running": (lambda w: w.store.redrives.running(w.stranger, most=9), 0),
    "redrives.get": (lambda w: w.store.redrives.get(w.theirs(w.redrive)), None),
    "redrives.stop": (lambda w: w.store.redrives.stop(w.theirs(w.redrive), w.now), False),
    "causes.unsettled": (lambda w: w.store.causes.unsettled(w.stranger, limit=9), []),
    "causes.count_open": (lambda w: w.store.causes.count_open(w.stranger, most=9), 0),
    "event_lists.count_dead": (
        lambda w: w.store.event_lists.count_dead(w.stranger, PageRequest(limit=9)),
        (0, False),
    ),
    "causes.get": (lambda w: w.store.causes.get(w.theirs(w.cause.id)), None),
    "causes.change": (
        lambda w: w.store.causes.change(w.theirs(w.cause.id), lambda cause: cause.over(w.now)),
        None,
    ),
    "causes.page": (
        lambda w: w.store.causes.page(w.stranger, PageRequest(limit=9), CauseListFilter()).rows,
        [],
    ),
    "calendars.get": (lambda w: w.store.calendars.get(w.theirs(w.calendar.id)), None),
    "calendars.known": (lambda w: w.store.calendars.known(w.theirs(w.calendar.id)), None),
    "calendars.attached_use": (
        lambda w: w.store.calendars.attached_use(CalendarUse("c1", "skip"), w.stranger).known,
        None,
    ),
    "calendars.users": (lambda w: w.store.calendars.users(w.theirs(w.calendar.id)), 0),
    "calendars.delete": (
        lambda w: w.store.calendars.delete(w.theirs(w.calendar.id), w.now, version=None),
        False,
    ),
    "calendars.remove": (lambda w: w.store.calendars.remove(w.theirs(w.calendar.id)), None),
    "calendars.restore": (lambda w: w.store.calendars.restore(w.theirs(w.calendar.id)), None),
    "calendars.page": (lambda w: w.store.calendars.page(w.stranger, PageRequest(limit=9)).rows, []),
    "blackouts.of": (lambda w: w.store.blackouts.of(w.stranger, w.now), []),
    "blackouts.delete": (lambda w: w.store.blackouts.delete(w.theirs(w.blackout.id)), False),
    "heartbeats.get": (lambda w: w.store.heartbeats.get(w.theirs(w.heartbeat.id)), None),
    "heartbeats.of": (lambda w: w.store.heartbeats.of(w.stranger), []),
    "heartbeats.count": (lambda w: w.store.heartbeats.count(w.stranger), 0),
    "heartbeats.observing": (lambda w: w.store.heartbeats.observing(w.theirs(w.calendar.id)), []),
    "heartbeats.rotate": (lambda w: w.store.heartbeats.rotate(w.theirs(w.heartbeat.id), "1" * 64), False),
    "heartbeats.delete": (lambda w: w.store.heartbeats.delete(w.theirs(w.heartbeat.id)), False),
    "notification_rules.of": (lambda w: w.store.notification_rules.of(w.stranger), []),
    "notification_rules.observing": (
        lambda w: w.store.notification_rules.observing(w.theirs(w.calendar.id)),
        [],
    ),
    "notification_rules.get": (lambda w: w.store.notification_rules.get(w.theirs(w.rule.id)), None),
    "notification_rules.delete": (lambda w: w.store.notification_rules.delete(w.theirs(w.rule.id)), False),
    "silences.of": (lambda w: w.store.silences.of(w.stranger), []),
    "silences.delete": (lambda w: w.store.silences.delete(w.theirs(w.silence.id)), False),
    "tags.in_order": (lambda w: w.store.tags.in_order(w.stranger, limit=9), []),
    "deletions.count_tag": (lambda w: w.store.deletions.count_tag(w.stranger, "t", most=9), (0, 0, 0, 0)),
    "deletions.has_tagged": (lambda w: w.store.deletions.has_tagged(w.stranger, "t"), False),
    "deletions.newest": (lambda w: w.store.deletions.newest(w.stranger), []),
    "tags.schedules": (lambda w: w.store.tags.schedules(w.stranger, ["t"], limit=9), []),
    "tags.count": (lambda w: w.store.tags.count(w.stranger, "t", most=9), 0),
    "search.schedules_by_index": (
        lambda w: [
            found
            for words in (name_of(w.living), "")
            for found in w.store.search.schedules_by_index(w.stranger, words, limit=9)
        ],
        [],
    ),
    "search.schedules": (
        lambda w: w.store.search.schedules(w.stranger, "", limit=9, seconds=9.0),
        ([], True),
    ),
    "search.schedules_among": (
        lambda w: w.store.search.schedules_among(w.stranger, [w.theirs(w.living)], "", limit=9),
        [],
    ),
    "search.events_among": (
        lambda w: w.store.search.events_among(w.stranger, [w.theirs(w.living)], name_of(w.living), limit=9),
        [],
    ),
    "search.destinations": (lambda w: w.store.search.destinations(w.stranger, "", limit=9), ([], True)),
    "search.events": (lambda w: w.store.search.events(w.stranger, name_of(w.living), limit=9), []),
    "search.messages": (lambda w: w.store.search.messages(w.stranger, "m", limit=9), []),
    "kill_switches.of": (lambda w: w.store.kill_switches.of(w.stranger), []),
    "messages.get": (lambda w: w.store.messages.get(w.theirs(w.message.id)), None),
    "messages.get_many": (lambda w: w.store.messages.get_many([w.theirs(w.message.id)]), {}),
    "messages.reschedule": (
        lambda w: w.store.messages.reschedule(w.theirs(w.message.id), w.now, w.now, w.now, "no"),
        False,
    ),
    "messages.scheduled_for_later": (
        lambda w: w.store.messages.scheduled_for_later(w.stranger, EARLIEST, most=9),
        0,
    ),
    "messages.page": (lambda w: w.store.messages.page(w.stranger, PageRequest(limit=9)).rows, []),
    "destinations.get": (lambda w: w.store.destinations.get(w.theirs(w.destination)), None),
    "destinations.delete": (lambda w: w.store.destinations.delete(w.theirs(w.destination)), False),
    "destinations.begin_deletion": (
        lambda w: w.store.destinations.begin_deletion(w.theirs(w.destination)),
        False,
    ),
    "destinations.give_up_deletion": (
        lambda w: w.store.destinations.give_up_deletion(w.theirs(w.destination)),
        False,
    ),
    "messages.remove_untouched": (
        lambda w: w.store.messages.remove_untouched([w.theirs(w.message.id)]),
        [],
    ),
    "destinations.messages_of": (
        lambda w: w.store.destinations.messages_of(w.theirs(w.destination)),
        0,
    ),
    "destinations.in_use": (lambda w: w.store.destinations.in_use(w.theirs(w.destination)), 0),
    "cancel_requests.put": (
        lambda w: w.store.cancel_requests.put(w.theirs(w.waiting.id), ""),
        None,
    ),
    "cancel_requests.stands": (
        lambda w: w.store.cancel_requests.stands(w.theirs(w.waiting.id)),
        False,
    ),
    "destinations.users": (lambda w: w.store.destinations.users(w.theirs(w.destination), limit=9), []),
    "destinations.waiting": (
        lambda w: w.store.destinations.waiting(w.theirs(w.destination), in_flight=0),
        0,
    ),
    "destinations.page": (
        lambda w: w.store.destinations.page(w.stranger, PageRequest(limit=9)).rows,
        [],
    ),
    "backfills.running": (lambda w: w.store.backfills.running(w.stranger, most=9), 0),
    "backfills.get": (lambda w: w.store.backfills.get(w.theirs(w.living)), None),
    "backfills.cancel": (lambda w: w.store.backfills.cancel(w.theirs(w.living), w.now), False),
    "backlogs.owed": (lambda w: w.store.backlogs.owed(w.stranger, w.now + 9 * SECOND, limit=9), []),
    "backlogs.policies": (lambda w: w.store.backlogs.policies([w.theirs(w.living)]), {}),
    "backlogs.count": (lambda w: w.store.backlogs.count(w.stranger, _late(w), most=9), 0),
    "backlogs.page": (lambda w: w.store.backlogs.page(w.stranger, _late(w), limit=9), []),
    "backlogs.finished_since": (
        lambda w: w.store.backlogs.finished_since(w.stranger, w.now, most=9),
        0,
    ),
    "history.tagged": (lambda w: w.store.history.tagged(w.stranger, "t", limit=9), []),
    "history.counts": (lambda w: list(w.store.history.counts(w.stranger, hour_of(w.now))), []),
    "ledger.last": (lambda w: w.store.ledger.last(w.stranger), None),
    "ledger.newest_hour": (lambda w: w.store.ledger.newest_hour(w.stranger), None),
    "ledger.of_hour": (lambda w: w.store.ledger.of_hour(w.stranger, hour_of(w.now)), None),
    "ledger.lines": (
        lambda w: w.store.ledger.lines(w.stranger, hour_of(w.now), w.now + HOUR, limit=9),
        ([], False),
    ),
    "ledger.chain": (lambda w: w.store.ledger.chain(w.stranger, 0, limit=9), []),
    "ledger.settle": (lambda w: w.store.ledger.settle(w.stranger, hour_of(w.now), 9), None),
    "backlogs.expire": (
        lambda w: w.store.backlogs.expire([w.theirs(w.waiting.id)], _late(w), w.now, "late"),
        0,
    ),
    "forecasts.planned": (lambda w: w.store.forecasts.planned(w.stranger, most=9), (0, [])),
    "figure_counters.read": (
        lambda w: w.store.figure_counters.read(FigureSubject(w.stranger), HOUR, w.now - HOUR, w.now + HOUR),
        [],
    ),
    "figure_counters.first": (
        lambda w: w.store.figure_counters.first(FigureSubject(w.stranger), HOUR, w.now - HOUR),
        None,
    ),
    "forecasts.owners": (
        lambda w: w.store.forecasts.owners(w.stranger, ForecastChoice(tag="t"), limit=9),
        ([], False),
    ),
    "forecasts.waiting_choice": (lambda w: _chosen(w).which["tenant"] == w.stranger, True),
    "run_counting.exceeds": (
        lambda w: w.store.run_counting.exceeds(RunChoice(w.stranger), _foretold(w), most=0),
        False,
    ),
    "run_counting.read": (
        lambda w: w.store.run_counting.read(RunChoice(w.stranger), _foretold(w), w.now, most=9),
        RunCounts(),
    ),
    "run_counting.name": (
        lambda w: w.store.run_counting.name([w.theirs(w.living)], _foretold(w), w.now),
        RunCounts(),
    ),
    "forecasts.waiting": (
        lambda w: w.store.forecasts.waiting(_chosen(w), _foretold(w), w.now + SECOND, limit=9),
        ([], 0),
    ),
    "forecasts.each_waiting": (
        lambda w: w.store.forecasts.each_waiting(
            _chosen(w), w.now, w.now + 9 * SECOND, w.now + SECOND, limit=9
        ),
        [],
    ),
    "forecasts.made_since": (
        lambda w: w.store.forecasts.made_since(_chosen(w), w.now, _foretold(w), limit=9),
        [],
    ),
    "forecasts.count": (
        lambda w: w.store.forecasts.count(_chosen(w), w.now, w.now + 9 * SECOND, most=9),
        0,
    ),
    "idempotency.begin": (_begin, True),
    "calendar_feeds.new_id": (
        lambda w: tenant_of(w.store.calendar_feeds.new_id(w.stranger)) != w.stranger,
        False,
    ),
    "calendar_feeds.all": (lambda w: w.store.calendar_feeds.all(w.stranger), []),
    "api_keys.of": (lambda w: w.store.api_keys.of(w.stranger), []),
    "api_keys.count": (lambda w: w.store.api_keys.count(w.stranger), 0),
    "api_keys.get": (lambda w: w.store.api_keys.get(w.theirs(w.key)), None),
    "api_keys.many": (lambda w: w.store.api_keys.many([w.theirs(w.key)]), []),
    "api_keys.delete": (lambda w: w.store.api_keys.delete(w.theirs(w.key)), False),
    "api_keys.delete_all": (lambda w: w.store.api_keys.delete_all(w.stranger), 0),
    "api_keys.used": (lambda w: w.store.api_keys.used(w.theirs(w.key), w.now, "::1", every_seconds=0), None),
    "quotas.known": (lambda w: w.store.quotas.known([w.theirs("schedules")]), {}),
    "quotas.look": (
        lambda w: w.store.quotas.look(w.theirs("schedules"), "t"),
        Noted(0, None, timedelta.max, {}),
    ),
    "quotas.found": (lambda w: w.store.quotas.found(w.theirs("schedules"), 0, 1), None),
    "quotas.finish": (lambda w: w.store.quotas.finish(w.theirs("schedules"), "t", 1), None),
    "schedules.count_living": (lambda w: w.store.schedules.count_living(w.stranger, most=9), 0),
    "schedules.count_living_of": (
        lambda w: w.store.schedules.count_living_of([w.stranger], most=9)[w.stranger],
        0,
    ),
    "people.of": (lambda w: w.store.people.of(w.stranger), []),
    "people.get": (lambda w: w.store.people.get(w.theirs(w.person)), None),
    "people.delete_all": (lambda w: w.store.people.delete_all(w.stranger), []),
    "calendar_feeds.delete": (lambda w: w.store.calendar_feeds.delete(w.theirs(w.feed)), False),
}

#: Those that are given a document, or a claim or token that an earlier verb gave out: they write the document
#: itself, whose id names its tenant, or what that token holds. A session is an API key's.
BY_DOCUMENT_OR_TOKEN = {
    *("schedules.insert", "schedules.insert_many", "schedules.update", "schedules.revise"),
    *("messages.insert", "messages.insert_many", "destinations.insert", "destinations.update"),
    *("successors.replace", "events.insert", "last_runs.write", "outcomes.record", "outcomes.record_late"),
    *("idempotency.finish", "idempotency.release", "idempotency.give_up"),
    *(f"sessions.{verb}" for verb in ("open", "key_of", "close", "close_all")),
    # A person's is found by the person, whose provider says in which tenant.
    *(
        f"person_sessions.{verb}"
        for verb in ("open", "get", "begin_check", "tokens_of", "went_on", "close", "close_all", "let_in")
    ),
    *("person_sessions.any_of_provider", "person_sessions.close_of_provider"),
    *("person_sessions.take_grant", "people.seen", "people.given"),
    *(
        f"calendars.{verb}"
        for verb in ("insert", "update", "renew", "schedules_to_recompute", "note", "settle", "attach")
    ),
    # A token names its feed, whoever's it is.
    *("calendar_feeds.insert", "calendar_feeds.find"),
    # A key names itself by its id.
    *("api_keys.insert", "api_keys.rotate", "api_keys.renew", "api_keys.shown", "api_keys.end_overlap"),
    # A kill switch's target, and a blackout's, names its tenant.
    *(f"heartbeats.{verb}" for verb in ("insert", "edit", "replace_corrupt", "ping")),
    *("blackouts.put", "notification_rules.put", "silences.put", "tellings.forget"),
    # A kill switch's target names its tenant.
    *(
        f"kill_switches.{verb}"
        for verb in ("insert", "note", "delete", "stopped_schedules", "stopped_events")
    ),
    *("calendar_feeds.insert", "calendar_feeds.find", "schedules.new_name"),
    # The id of what is made names its tenant.
    *("quotas.note", "quotas.add"),
    # What is changed names its tenant.
    *("audit.change", "audit.change_of", "audit.note", "schedules.keep_revision"),
}
#: The duties of beats and workers, and what operators ask of the whole: each document keeps its own tenant.
ACROSS_TENANTS = {
    "messages.unsent",
    *("audit_chain.tenants", "audit_chain.move_owed", "audit_chain.carry_edits", "audit_chain.all_tenants"),
    *("transactions.idle", "transactions.end"),
    *(f"tenants.{verb}" for verb in ("put", "get", "all", "count", "close", "beside_default")),
    "tenants.retentions",
    *(f"deletions.{verb}" for verb in ("start", "at_work", "get", "claim", "close", "advance")),
    *(f"deletions.{verb}" for verb in ("remove_batch", "is_nothing_left", "finish", "delete_schedules")),
    *("schedules.deleted_before", "schedules.remove", "schedules.for_delivery", "events.any_of_schedule"),
    *("destinations.for_delivery", "destinations.reseal", "destinations.queues", "destinations.versions"),
    *("schedules.unreadable", "schedules.with_actions", "notification_rules.read"),
    *("destinations.unreadable", "destinations.stoppable", "destinations.with_breaker"),
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
    *(f"notification_rules.{verb}" for verb in ("everybodys", "telling", "take_turn", "end_turn", "reseal")),
    *(f"tellings.{verb}" for verb in ("open", "owed", "known", "messages_since", "insert", "close", "made")),
    *("silences.lasting", "causes.get_many"),
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
    *("redrives.start", "redrives.claim", "redrives.advance", "events.records"),
    *("waiting_work.kinds", "heartbeats.due", "heartbeats.settle", "causes.end"),
    *(
        f"causes.{verb}"
        for verb in ("living", "failing_after", "without_dead_letters", "newest", "touch", "write")
    ),
    *(f"causes.{verb}" for verb in ("unanswered", "answered")),
    *(f"cause_marks.{verb}" for verb in ("keys", "count", "counts", "unmarked", "marked", "mark")),
    "api_keys.expiring",
    *(f"cause_inspections.{verb}" for verb in ("overdue", "queued", "late_after")),
    *(f"cause_inspections.{verb}" for verb in ("far_ahead", "finished_with_calendar")),
    *(f"cause_inspections.{verb}" for verb in ("paused_by_failures", "in_error", "ending")),
    *(f"last_runs.{verb}" for verb in ("attach", "keep", "newest", "succeeded", "succeeding")),
    *(f"expectations.{verb}" for verb in ("after", "expecting", "unfinished", "last_success")),
    *(f"recoveries.{verb}" for verb in ("recover_messages", "recover_workers")),
    *(f"inspections.{verb}" for verb in ("misplaced_events", "array_fields", "events_with_arrays")),
    *(f"inspections.{verb}" for verb in ("forgotten_events", "misplaced_schedules", "schedules_after")),
    *(f"processes.{verb}" for verb in ("report", "leave", "alive")),
    *(f"partition_owners.{verb}" for verb in ("renew", "change", "leave")),
    # The witness judges everybody, and answers with ids of the asker's.
    *(
        f"history.{verb}"
        for verb in ("schedules", "ended_revisions", "calendar", "events", "missed", "tenants")
    ),
    *("figure_counters.add", "ledger.append", "ledger.unsettled", "ledger.tenants"),
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
    asks = {name for name, method in found.items() if "tenant" in inspect.signature(method).parameters}
    assert asks <= OF_ONE_TENANT.keys()
    assert found.keys() - OF_ONE_TENANT.keys() == BY_DOCUMENT_OR_TOKEN | ACROSS_TENANTS


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
    assert [each.name for each in store.blackouts.of(owner, now)] == ["b1"]
    (switch,) = store.kill_switches.of(owner)
    assert switch.target == Target(owner, Scope.TAG, "t")
    assert store.calendars.get(world.calendar.id) == store.calendars.known(world.calendar.id)
    assert store.calendars.attached_use(CalendarUse("c1", "skip"), owner).known == world.calendar
    assert store.calendars.users(world.calendar.id) == 1
    assert len(store.calendars.page(owner, PageRequest(limit=9)).rows) == 1
    assert store.calendars.delete(world.calendar.id, world.now, version=1)
    assert store.schedules.made_by("seed-1", world.living)
    assert store.schedules.living([world.living, world.deleted]) == {world.living}
    assert store.schedules.exists(world.deleted)
    assert store.schedules.count_by_state(owner, most=9)["active"] == 2
    assert len(store.schedules.page(owner, PageRequest(limit=9)).rows) == 2
    assert store.destinations.in_use(world.destination) == 1
    assert set(store.successors.predecessors([world.deleted])) == {world.deleted}
    assert store.events.dead_letters(owner, most=9) == 1
    awaited = store.completions.find(world.dead.id)
    assert awaited is not None
    assert awaited.digests == (token_digest("shown"),)
    assert len(store.event_lists.dead_letter_causes(owner, most=9).rows) == 1
    assert len(store.event_lists.page(owner, PageRequest(limit=9), schedule_id=world.living).rows) == 2
    assert [each.id for each in store.calendar_feeds.all(owner)] == [world.feed]
    assert store.cancellations.look_past_cut(world.living, 9, now - SECOND).last_sent == now
    assert [each.tenant for each in store.events.redrive([world.dead.id], now, "again")] == [owner]
    assert store.cancellations.cancel(world.waiting.id, now, "no")
    assert store.messages.get_many([world.message.id]).keys() == {world.message.id}
    assert store.messages.scheduled_for_later(owner, EARLIEST, most=9) == 1
    assert len(store.messages.page(owner, PageRequest(limit=9)).rows) == 1
    assert store.messages.reschedule(world.message.id, now, now, now, "later")
    assert store.messages.remove_untouched([world.message.id]) == [world.message.id]
    assert store.destinations.begin_deletion(world.destination)
    assert store.destinations.give_up_deletion(world.destination)
    assert store.cancellations.cancel_all(world.deleted, 9, now, "no") == 1
    assert isinstance(store.idempotency.begin(owner, "open", "k:1", "digest"), Answered)
    assert store.calendar_feeds.delete(world.feed)
    assert [each.id for each in store.api_keys.of(owner)] == [world.key]
    assert store.api_keys.count(owner) == 1
    store.api_keys.used(world.key, now, "::1", every_seconds=60)
    used = store.api_keys.get(world.key)
    assert used is not None
    assert (used.last_used_at, used.last_used_from) == (now, "::1")
    assert [each.id for each in store.people.of(owner)] == [world.person]
    found = store.people.get(world.person)
    assert found is not None
    assert found.called == "ann"
    assert store.people.delete_all(owner) == [world.person]
    assert store.api_keys.delete(world.key)
    assert store.api_keys.delete_all(owner) == 0


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
    (shown,) = store.event_lists.page(TENANT, PageRequest(limit=9)).rows
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
