"""Imports of exports of tenants: from one database into another, once, and line by line."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.actions.http import new_secret
from scheduler_app.config import Settings
from scheduler_app.domain.blackout import Blackout
from scheduler_app.domain.calendars import Calendar
from scheduler_app.domain.destination import DestinationDraft
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.ids import TENANT, WholeId, tenant_of, whole_id
from scheduler_app.domain.kill_switch import Scope, Target
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.tenant import Tenant, TenantLimits
from scheduler_app.embedded import Mongod
from scheduler_app.store import Store
from scheduler_app.usecases.deeds.calendars import CalendarService
from scheduler_app.usecases.deeds.creation import PAUSED_BY_IMPORT, Creation, Preconditions
from scheduler_app.usecases.deeds.destinations import DestinationService
from scheduler_app.usecases.deeds.messages import MessageQuota, MessageService
from scheduler_app.usecases.deeds.notification_rules import NotificationRuleService, SilenceService
from scheduler_app.usecases.deeds.tenant_imports import (
    MAX_IMPORTED_LINES,
    MAX_REFUSALS_TOLD,
    ImportCounts,
    TenantImport,
)
from scheduler_app.usecases.questions.tenant_exports import TenantExportService
from scheduler_app.usecases.stops import BlackoutService, KillSwitchService
from tests.builders import draft, event, message, notification_rule, silence
from tests.integration.usecases.test_deletions import documents as written
from tests.prepared_databases import PreparedDatabases

SECOND = timedelta(seconds=1)
SECRET = "a-secret-of-theirs"
TAKEN = {
    "calendars": 1,
    "destinations": 1,
    "schedules": 4,
    "blackouts": 1,
    "kill_switches": 1,
    "notifications": 1,
    "silences": 1,
}


@dataclass(frozen=True)
class Services:
    """Those of one installation, which sends nothing."""

    store: Store
    limit: int = 1_000

    @property
    def creation(self) -> Creation:
        return Creation(self.store, lambda schedules, now: None, 3, lambda action: None, new_secret)

    @property
    def messages(self) -> MessageService:
        quota = MessageQuota(self.store, self.limit)
        return MessageService(self.store, lambda events, now: None, 3, lambda action: None, new_secret, quota)

    @property
    def destinations(self) -> DestinationService:
        return DestinationService(self.store, lambda action: None, new_secret, None, None)

    @property
    def calendars(self) -> CalendarService:
        return CalendarService(self.store)

    @property
    def blackouts(self) -> BlackoutService:
        return BlackoutService(self.store)

    @property
    def kill_switches(self) -> KillSwitchService:
        return KillSwitchService(self.store)

    @property
    def notification_rules(self) -> NotificationRuleService:
        notices: Any = None
        return NotificationRuleService(self.store, lambda action: None, new_secret, notices)

    @property
    def silences(self) -> SilenceService:
        return SilenceService(self.store)


@pytest.fixture
def elsewhere(prepared_databases: PreparedDatabases, mongod_server: Mongod) -> Iterator[Store]:
    """The database of another installation."""
    name = prepared_databases.take()
    made = Store(Settings(mongo_uri=mongod_server.uri, mongo_database=name))
    yield made
    made.close()
    prepared_databases.give_back(name)


def plant(store: Store, now: datetime, tenant: str) -> None:
    there = Services(store)
    there.calendars.put(whole_id(tenant, "work"), Calendar(weekend=(5, 6)), now)
    to = DestinationDraft(url=f"http://127.0.0.1:9/?k={SECRET}", headers=(("Authorization", SECRET),))
    there.destinations.put(whole_id(tenant, "crm"), to, now, conditions=Preconditions())
    wanted: tuple[tuple[str, dict[str, Any]], ...] = (
        ("plain", {}),
        ("secret", {"headers": (("Authorization", SECRET),), "signing": True, "tags": ("customer:a",)}),
        ("named", {"destination": "crm", "url": NOT_GIVEN, "calendar": "work"}),
        ("gone", {}),
        ("paused", {}),
    )
    for name, fields in wanted:
        asked = draft(rrule="FREQ=HOURLY", **fields)
        there.creation.create(tenant, asked, now, schedule_id=whole_id(tenant, name))
    store.schedules.delete(whole_id(tenant, "gone"), now)
    paused = store.schedules.get(whole_id(tenant, "paused"))
    assert isinstance(paused, Schedule)
    assert store.schedules.revise(paused.revise(now, state=ScheduleState.PAUSED), version=paused.version)
    there.kill_switches.turn_on(Target(tenant, Scope.TAG, "customer:b"), now, note="n", by="k")
    night, all_of_it = {"cron": "0 22 * * *"}, Target(tenant, Scope.ALL)
    blackout = Blackout.of("night", all_of_it, night, timedelta(hours=1), "skip", now, timezone="UTC")
    there.blackouts.put(blackout, now)
    there.notification_rules.put(notification_rule(now, whole_id(tenant, "ops")), now)
    there.silences.put(silence(now, whole_id(tenant, "quiet")), now)
    waiting = [event(now + each * SECOND, whole_id(tenant, "plain")) for each in (60, 120)]
    store.events.insert([*waiting, event(now + SECOND, whole_id(tenant, "paused"))], now, "made")
    ended = event(now, whole_id(tenant, "plain"))
    store.events.insert([ended], now, "made")
    store.mongo.db["events"].update_one(
        {"_id": ended.id}, {"$set": {"state": "completed"}, "$unset": {"due_at": ""}}
    )
    later = message(now + 600 * SECOND, tenant=tenant, headers=(("Authorization", SECRET),))
    assert store.messages.insert(later, now) is not None


def exported(store: Store, tenant: str, now: datetime, *, with_secrets: bool = True) -> list[str]:
    pages = TenantExportService(store).pages(tenant, now, with_secrets=with_secrets)
    return [line for page in pages for line in page.splitlines()]


def take(store: Store, tenant: str, lines: list[str], now: datetime, *, active: bool = False) -> ImportCounts:
    return TenantImport(Services(store), store, Tenant(tenant, None), now, active=active).run(lines)


def documents(lines: list[str], *left: str) -> dict[tuple[str, str], Any]:
    """Those of an export by collection and id, without the fields `left`."""
    rows = [json.loads(line) for line in lines[1:-1]]
    return {
        (row["collection"], row["document"]["_id"]): {
            name: value for name, value in row["document"].items() if name not in (*left, "unlogged")
        }
        for row in rows
    }


def of(collection: str, **fields: Any) -> str:
    """A line with a document that lacks everything else."""
    document = {"_id": "acme:s", "tenant": "acme"} | fields
    return json.dumps({"collection": collection, "document": document})


#: What a beat or a reader counts, and when something was written here.
OF_HERE = ("status", "writes", "origin", "days_version", "version", "created_at", "updated_at", "since")


@pytest.mark.parametrize("tenant", ["acme", TENANT])
def test_what_is_exported_and_imported_and_exported_again_is_the_same(
    store: Store, elsewhere: Store, now: datetime, tenant: str
) -> None:
    plant(elsewhere, now, tenant)
    lines = exported(elsewhere, tenant, now)
    counts = take(store, tenant, lines, now + 30 * SECOND, active=True)
    assert (counts.refused, counts.refusals) == (0, [])
    assert counts.made == TAKEN | {"events": 3}
    assert (counts.left_out["schedules"], counts.left_out["events"]) == (1, 2)
    again = exported(store, tenant, now)
    before, after = documents(lines, *OF_HERE), documents(again, *OF_HERE)
    stayed = {
        key
        for key, row in before.items()
        if key[0] in ("ended_revisions", "ended_calendars")
        or row.get("state") in ("deleted", "completed")
        or row.get("schedule_id") == whole_id(tenant, "paused")
    }
    assert {key: row for key, row in before.items() if key not in stayed} == after


def test_a_second_import_makes_nothing_and_changes_nothing(
    store: Store, elsewhere: Store, now: datetime
) -> None:
    plant(elsewhere, now, "acme")
    lines = exported(elsewhere, "acme", now)
    take(store, "acme", lines[: len(lines) // 2], now, active=True)
    take(store, "acme", lines, now, active=True)
    before = documents(exported(store, "acme", now))
    counts = take(store, "acme", lines, now + SECOND, active=True)
    assert (counts.made, counts.refused) == ({}, 0)
    assert counts.there == TAKEN | {"events": 3}
    assert documents(exported(store, "acme", now)) == before


def test_schedules_arrive_paused_and_what_waited_stays_behind_unless_it_is_told_otherwise(
    store: Store, elsewhere: Store, now: datetime
) -> None:
    plant(elsewhere, now, "acme")
    counts = take(store, "acme", exported(elsewhere, "acme", now), now)
    assert (counts.made, counts.left_out["events"]) == (TAKEN, 5)
    for name, note in (("plain", PAUSED_BY_IMPORT), ("secret", PAUSED_BY_IMPORT), ("paused", None)):
        found = store.schedules.get(WholeId(f"acme:{name}"))
        assert isinstance(found, Schedule)
        assert (found.state, found.next_run_at) == (ScheduleState.PAUSED, None)
        assert (found.pause and found.pause.note) == note
    assert store.mongo.db["events"].count_documents({}) == 0


def test_a_tenant_may_be_called_otherwise_and_its_ids_follow(
    store: Store, elsewhere: Store, now: datetime
) -> None:
    plant(elsewhere, now, "acme")
    counts = take(store, TENANT, exported(elsewhere, "acme", now), now, active=True)
    assert (counts.made, counts.refused) == (TAKEN | {"events": 3}, 0)
    named = store.schedules.get(WholeId("named"))
    assert isinstance(named, Schedule)
    there = elsewhere.schedules.get(WholeId("acme:named"))
    assert isinstance(there, Schedule)
    assert (named.action.destination, named.next_run_at) == ("crm", there.next_run_at)
    rows = list(store.mongo.db["events"].find({}))
    assert {row["tenant"] for row in rows} == {tenant_of(row["_id"]) for row in rows} == {TENANT}
    assert {row.get("schedule_id") for row in rows} == {None, "plain"}


def test_lines_without_their_secrets_are_refused_and_harm_no_others(
    store: Store, elsewhere: Store, now: datetime
) -> None:
    plant(elsewhere, now, "acme")
    lines = exported(elsewhere, "acme", now, with_secrets=False)
    counts = take(store, "acme", lines, now, active=True)
    named = {(each.collection, each.name) for each in counts.refusals}
    assert {("schedules", "secret"), ("destinations", "crm"), ("notifications", "ops")} <= named
    assert ("schedules", "named") in named  # its destination is not there
    assert counts.made["schedules"] == 2
    reason = next(each.reason for each in counts.refusals if each.name == "secret")
    assert "are not in the export: export with them" in reason
    assert SECRET not in str(list(store.mongo.db["schedules"].find({})))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("{", "is no JSON of an export"),
        ("[" * 100_000, "is no JSON of an export"),
        ('"text"', "the line"),
        ('{"collection": "schedules"}', "document"),
        (of("schedules", _id=5), "document._id"),
        (of("schedules", _id="globex:s", tenant="globex"), "not of the tenant acme"),
        (of("schedules", _id="globex:s"), "not of the tenant acme"),
        (of("schedules"), "v"),
        (of("calendars"), "v"),
        (of("events", _id="acme:msg_m", state=7), "action"),
        (of("destinations", v=1, action=[7]), "action"),
        (of("silences", v=1, match=7), "match"),
        (of("kill_switches"), "is no kill switch"),
    ],
)
def test_a_wrong_line_is_refused_with_its_number(
    store: Store, elsewhere: Store, now: datetime, wrong: str, said: str
) -> None:
    plant(elsewhere, now, "acme")
    lines = exported(elsewhere, "acme", now)
    counts = take(store, "acme", [lines[0], wrong, *lines[1:]], now, active=True)
    (refused,) = counts.refusals
    assert (refused.number, said in refused.reason) == (2, True), refused
    assert counts.made == TAKEN | {"events": 3}


def test_a_file_of_something_else_and_too_many_lines_are_refused_whole(store: Store, now: datetime) -> None:
    first = json.dumps({"rrule_scheduler_export": 1, "tenant": "acme"})
    for lines in ([], ["{}"], ["x"], [json.dumps({"rrule_scheduler_export": 2, "tenant": "acme"})]):
        with pytest.raises(InvalidField, match="line 1"):
            take(store, "acme", lines, now)
    with pytest.raises(InvalidField, match="1000 at most"):
        take(store, "acme", [first] * (MAX_IMPORTED_LINES + 1), now)
    counts = take(store, "acme", [first, *["x"] * (MAX_IMPORTED_LINES - 1)], now)
    assert (counts.refused, len(counts.refusals)) == (MAX_IMPORTED_LINES - 1, MAX_REFUSALS_TOLD)


def test_messages_that_wait_are_within_the_quota(store: Store, elsewhere: Store, now: datetime) -> None:
    plant(elsewhere, now, "acme")
    lines = exported(elsewhere, "acme", now)
    full = message(now + 900 * SECOND, "other", tenant="acme")
    assert store.messages.insert(full, now) is not None
    counts = TenantImport(Services(store, limit=1), store, Tenant("acme", None), now, active=True).run(lines)
    (refused,) = counts.refusals
    assert (refused.collection, "MAX_MESSAGES" in refused.reason) == ("events", True)


def test_the_limits_are_those_of_the_tenant_that_takes_it(
    store: Store, elsewhere: Store, now: datetime
) -> None:
    plant(elsewhere, now, "acme")
    limited = Tenant("acme", None, limits=TenantLimits(schedules=2))
    lines = exported(elsewhere, "acme", now)
    counts = TenantImport(Services(store), store, limited, now, active=False).run(lines)
    assert (counts.made["schedules"], counts.refused) == (2, 2)
    assert {each.collection for each in counts.refusals} == {"schedules"}


def test_an_id_of_a_deleted_schedule_is_not_taken_again(
    store: Store, elsewhere: Store, now: datetime
) -> None:
    plant(elsewhere, now, "acme")
    Services(store).creation.create("acme", draft(), now, schedule_id="acme:plain")
    store.schedules.delete("acme:plain", now)
    counts = take(store, "acme", exported(elsewhere, "acme", now), now)
    (refused,) = counts.refusals
    assert (refused.name, "was deleted" in refused.reason) == ("plain", True)


def test_the_audit_has_a_line_with_the_counts_and_one_for_each_resource(
    store: Store, elsewhere: Store, now: datetime
) -> None:
    plant(elsewhere, now, "acme")
    take(store, "acme", exported(elsewhere, "acme", now), now)
    rows = list(store.mongo.db["audit"].find({"tenant": "acme"}))
    (line,) = (row for row in rows if row["what"] == "imported")
    assert line["after"]["made"] == TAKEN
    assert line["after"]["refused"] == 0
    kinds = {row["kind"] for row in rows}
    assert {"destination", "calendar", "notification", "silence", "blackout", "kill switch"} <= kinds


def test_a_dry_run_says_the_same_and_makes_nothing(store: Store, elsewhere: Store, now: datetime) -> None:
    plant(elsewhere, now, "acme")
    lines = exported(elsewhere, "acme", now)
    before = written(store)
    dry_store = store.dry_run()
    dry = TenantImport(Services(dry_store), dry_store, Tenant("acme", None), now, active=False).run(lines)
    assert dry.made["schedules"] + dry.refused >= 4
    assert written(store) == before
