"""Tenants that keep what has ended for less time than the installation does."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.tenant import Tenant, TenantState
from scheduler_app.store import Store, ended_work
from scheduler_app.usecases.deeds.api_keys import TenantService
from scheduler_app.usecases.duties import tenant_retention
from scheduler_app.usecases.duties.tenant_retention import TenantRetention
from tests.builders import event, message
from tests.examined import examined

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
TENANTS = (TENANT, "acme", "globex")


def insert(
    store: Store, ran: datetime, name: str, *, ended: datetime | None, tenants: Sequence[str] = TENANTS
) -> None:
    """An event of each tenant, which ran then and ended then; None: it has not."""
    rows = [
        event(ran, f"{name}" if tenant == TENANT else f"{tenant}:{name}", revision=number)
        for number, tenant in enumerate(tenants)
    ]
    store.events.insert(rows, ran, "made")
    change: dict[str, Any] = {"$set": {"state": "completed", "archived_at": ended}, "$unset": {"due_at": ""}}
    if ended is not None:
        ids = [each.id for each in rows]
        store.mongo.collection("events").update_many({"_id": {"$in": ids}}, change)


def kept(store: Store, collection: str = "events") -> dict[str, int]:
    found = store.mongo.collection(collection).aggregate([{"$group": {"_id": "$tenant", "n": {"$sum": 1}}}])
    return {row["_id"]: row["n"] for row in found}


def prune(store: Store, now: datetime) -> int:
    """Whole rounds of a beat; how many pages these were."""
    duty, pages = TenantRetention(store), 1
    while duty.prune_page(now):
        pages += 1
    return pages


@pytest.fixture(autouse=True)
def _tenants(store: Store, now: datetime) -> None:
    store.tenants.put(Tenant("acme", now, retention_days=2))
    store.tenants.put(Tenant("globex", now))


def test_events_that_ended_are_removed_for_the_tenant_that_says_so(store: Store, now: datetime) -> None:
    insert(store, now - 3 * DAY, "old", ended=now - 3 * DAY)
    insert(store, now - DAY, "new", ended=now - DAY)
    prune(store, now)
    assert kept(store) == {TENANT: 2, "acme": 1, "globex": 2}
    assert store.mongo.collection("events").find_one({"tenant": "acme"}, {"schedule_id": 1}) is not None
    left = store.mongo.collection("events").distinct("schedule_id", {"tenant": "acme"})
    assert left == ["acme:new"]


def test_the_default_tenant_can_say_so(store: Store, now: datetime) -> None:
    store.tenants.put(Tenant(TENANT, None, retention_days=1))
    insert(store, now - DAY - HOUR, "old", ended=now - DAY - HOUR)
    prune(store, now)
    assert kept(store) == {"acme": 1, "globex": 1}


def test_what_has_not_ended_or_has_just_ended_stays_however_old_it_is(store: Store, now: datetime) -> None:
    insert(store, now - 9 * DAY, "waits", ended=None)
    insert(store, now - 9 * DAY, "tried-for-days", ended=now - HOUR)
    prune(store, now)
    assert kept(store) == dict.fromkeys(TENANTS, 2)


def test_messages_are_removed_too(store: Store, now: datetime) -> None:
    store.messages.insert(message(now - 3 * DAY, tenant="acme"), now - 3 * DAY)
    ended = {"$set": {"state": "completed", "archived_at": now - 3 * DAY}, "$unset": {"due_at": ""}}
    store.mongo.collection("events").update_many({}, ended)
    prune(store, now)
    assert kept(store) == {}


def test_failures_and_redrives_that_are_over_are_removed(store: Store, now: datetime) -> None:
    for place, ended in enumerate((now - 3 * DAY, now - DAY, None)):
        for tenant in TENANTS:
            own = {"_id": f"{tenant}:{place}", "tenant": tenant}
            over = {} if ended is None else {"over_at": ended}
            done = {} if ended is None else {"ended_at": ended}
            since = {"key": f"{tenant}{place}", "since": now - 4 * DAY}
            store.mongo.collection("causes").insert_one(own | since | over)
            store.mongo.collection("redrives").insert_one(own | done)
    prune(store, now)
    for collection in ("causes", "redrives"):
        assert kept(store, collection) == {TENANT: 3, "acme": 2, "globex": 3}


def test_a_page_is_bounded_and_tenants_take_turns(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_retention, "DOCUMENTS_A_PAGE", 10)
    store.tenants.put(Tenant("globex", now, retention_days=2))
    for number in range(25):
        insert(store, now - 4 * DAY + number * HOUR, "s", ended=now - 3 * DAY, tenants=("acme",))
    insert(store, now - 4 * DAY, "s", ended=now - 3 * DAY, tenants=("globex",))
    duty = TenantRetention(store)
    assert duty.prune_page(now)
    assert kept(store) == {"acme": 15, "globex": 1}
    assert duty.prune_page(now)
    assert kept(store) == {"acme": 15}
    assert duty.prune_page(now)
    assert not duty.prune_page(now)
    assert kept(store) == {}


def test_what_is_living_is_passed_over_once_in_a_round(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_retention, "DOCUMENTS_A_PAGE", 10)
    for number in range(50):
        insert(store, now - 9 * DAY + number * HOUR, "waits", ended=None, tenants=("acme",))
    for number in range(30):
        insert(store, now - 4 * DAY + number * HOUR, "s", ended=now - 3 * DAY, tenants=("acme",))
    pages, seen = examined(store, lambda: prune(store, now))
    assert (pages, kept(store)) == (4, {"acme": 50})
    # Each that goes is found; the last one of a page is not found again, because it is gone.
    assert seen.documents <= 50 + 30 + 5


def test_an_event_that_is_sent_again_at_that_moment_stays(store: Store, now: datetime) -> None:
    insert(store, now - 3 * DAY, "old", ended=now - 3 * DAY, tenants=("acme",))
    events = store.mongo.collection("events")
    (row,) = events.find({}, {"run_time": 1})
    events.update_one({}, {"$set": {"state": "ready_queue", "due_at": now}, "$unset": {"archived_at": ""}})
    assert ended_work._remove(events, [row], {"archived_at": {"$lt": now - 2 * DAY}}) == 0


def test_without_such_a_tenant_a_look_is_one_find_of_few_documents(store: Store, now: datetime) -> None:
    store.tenants.put(Tenant("acme", now))
    insert(store, now - 9 * DAY, "old", ended=now - 9 * DAY)
    pages, seen = examined(store, lambda: prune(store, now))
    assert (pages, seen.documents, kept(store)) == (1, 2, dict.fromkeys(TENANTS, 1))


def test_a_tenant_goes_on_with_its_days_when_the_installation_keeps_less(store: Store, now: datetime) -> None:
    made, _ = TenantService(store, 30).put(Tenant("acme", now, retention_days=20))
    later = TenantService(store, 10)
    suspended, _ = later.put(replace(made, state=TenantState.SUSPENDED))
    assert suspended.retention_days == 20
    with pytest.raises(InvalidField, match="10 at most"):
        later.put(replace(made, retention_days=19))
