"""Deletions of tenants: everything of one is removed in batches, whichever collection it is in, and nothing
of another."""

import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.deletion import GRACE_SECONDS, LEAST_DURATION, QUIET, Deletion
from scheduler_app.domain.ids import TENANT, WholeId
from scheduler_app.domain.tenant import Tenant, TenantState
from scheduler_app.store import Store
from scheduler_app.store import deletions as deletions_module
from scheduler_app.store.tenant_documents import OF_INSTALLATION, TenantDocuments
from scheduler_app.usecases.duties.deletions import DeletionDuty
from tests.builders import event, schedule

SECOND = timedelta(seconds=1)
EARLIER = datetime(2020, 1, 1, tzinfo=UTC)
OTHERS = (TENANT, "acme-2", "acm", "acme0")


@pytest.fixture
def duty(store: Store) -> DeletionDuty:
    return DeletionDuty(store)


def started(store: Store, now: datetime) -> Deletion:
    deletion = Deletion(WholeId("d1"), "acme", now, "root", next_due_at=now)
    assert store.tenants.put(Tenant("acme", now))
    assert store.deletions.start(deletion)
    return deletion


def plant(store: Store, now: datetime, tenant: str) -> None:
    """One document in every collection, by the ids that those of the product have."""
    prefix = "" if tenant == TENANT else f"{tenant}:"
    db = store.mongo.db
    for name in TenantDocuments(store.mongo).collections():
        row: dict[str, Any] = {"_id": f"{prefix}planted", "tenant": tenant, "at": now, "rule": "r"}
        if name == "idempotency":
            owner = "open" if tenant == TENANT else f"{tenant}/open"
            row = {"_id": f"{owner}:acme:k", "owner": owner, "created_at": now}
        elif name == "cancel_requests":
            del row["tenant"]
        elif name == "sessions":
            row = {"_id": f"session of {tenant}", "key": f"key of {tenant}", "created_at": now}
        elif name == "api_keys":
            row["_id"] = f"key of {tenant}"
        elif name == "edits":
            row["_id"] = f"edit of {tenant}"
        elif name == "causes":
            row |= {"key": f"{prefix}planted"}
        db[name].insert_one(row)


def documents(store: Store) -> dict[tuple[str, Any], Any]:
    """All but what the installation's audit tells of them."""
    names = set(store.mongo.db.list_collection_names(filter={"type": "collection"}))
    found = {(name, row["_id"]): row for name in names for row in store.mongo.db[name].find({})}
    return {key: row for key, row in found.items() if key[0] != "audit" or not row.get("installation")}


def of(found: dict[tuple[str, Any], Any], tenant: str) -> dict[tuple[str, Any], Any]:
    return {
        key: row
        for key, row in found.items()
        if tenant in str(row).replace("acme-2", "").replace("acme0", "")
    }


def is_of(row: dict[str, Any], tenant: str) -> bool:
    names = (row.get("tenant"), str(row.get("owner")).split("/")[0], str(row["_id"]).split(":")[0])
    return tenant in (names[:1] if names[0] else (*names, str(row.get("key")).removeprefix("key of ")))


def run(duty: DeletionDuty, now: datetime, *, seconds: int = 120) -> datetime:
    for after in range(0, seconds, 5):
        while duty.work_page(now + after * SECOND):
            continue
    return now + seconds * SECOND


def test_everything_of_a_tenant_is_removed_and_nothing_of_another(
    store: Store, now: datetime, duty: DeletionDuty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletions_module, "DOCUMENTS_A_BATCH", 2)
    store.mongo.db["some_new_collection"].create_index("tenant", name="t")
    for tenant in (*OTHERS, "acme"):
        plant(store, now, tenant)
    store.mongo.db["some_newer_collection"].insert_one({"_id": "acme:1", "tenant": "acme"})
    # What it is called like is another tenant's.
    store.mongo.db["ended_revisions"].insert_one({"_id": "acme/1", "tenant": TENANT})
    store.events.insert([event(now + each * SECOND, "acme:s1") for each in range(7)], now, "m")
    assert store.schedules.insert(schedule(now, "acme:s1"))
    before = documents(store)
    deletion = started(store, now)
    end = run(duty, now)
    after = documents(store)
    gone = {key for key in before if key not in after}
    assert gone == {key for key, row in before.items() if is_of(row, "acme")}
    assert len({name for name, _ in gone}) > 20
    left = {key: row for key, row in before.items() if key not in gone}
    assert {key: after[key] for key in left} == left
    assert store.tenants.get("acme") is None
    ended = store.deletions.get(deletion.id)
    assert ended is not None
    assert ended.ended_at is not None
    assert ended.ended_at < end
    assert ended.counts == dict(Counter(name for name, _ in gone))
    assert not duty.work_page(end)


def test_every_collection_finds_a_tenant_s_documents_by_an_index(store: Store, now: datetime) -> None:
    """A collection without an index that begins with the tenant has ids that begin with its name."""
    documents = TenantDocuments(store.mongo)
    by_id = {name for name in documents.collections() if documents.index_of(name) is None}
    assert by_id == {
        *("ended_calendars", "ended_revisions", "figures", "tellings"),
        *("idempotency", "quotas", "sessions"),
    }
    assert not set(documents.collections()) & OF_INSTALLATION


def test_what_a_worker_holds_is_removed_when_its_lease_is_over(
    store: Store, now: datetime, duty: DeletionDuty
) -> None:
    made = event(now, "acme:s1")
    store.events.insert([made], now, "made")
    store.claims.claim([made.id], until=now, now=now, lease_seconds=600, worker="w")
    deletion = started(store, now)
    end = run(duty, now)
    assert of(documents(store), "acme").keys() == {
        ("events", made.id),
        ("deletions", "d1"),
        ("tenants", "acme"),
    }
    store.mongo.collection("events").update_one({}, {"$set": {"lease_until": EARLIER}})
    run(duty, end)
    ended = store.deletions.get(deletion.id)
    assert ended is not None
    assert (dict(ended.counts), ended.ended_at is not None) == ({"events": 1}, True)


def test_what_is_written_late_is_removed_too(store: Store, now: datetime, duty: DeletionDuty) -> None:
    deletion = started(store, now)
    end = run(duty, now, seconds=50)
    store.events.insert([event(now, "acme:s1")], now, "made")
    end = run(duty, end, seconds=10)
    found = store.deletions.get(deletion.id)
    assert found is not None
    assert (dict(found.counts), found.ended_at) == ({"events": 1}, None)
    run(duty, end)
    found = store.deletions.get(deletion.id)
    assert found is not None
    assert found.ended_at is not None
    assert found.ended_at >= end - 10 * SECOND + QUIET
    assert found.ended_at >= now + LEAST_DURATION


def test_nothing_is_removed_while_processes_may_believe_that_it_is_active(
    store: Store, now: datetime, duty: DeletionDuty
) -> None:
    assert store.schedules.insert(schedule(now, "acme:s1"))
    started(store, now)
    run(duty, now, seconds=GRACE_SECONDS)
    assert store.schedules.get(WholeId("acme:s1")) is not None
    tenant = store.tenants.get("acme")
    assert tenant is not None
    assert tenant.state is TenantState.DELETING
    assert not store.tenants.put(Tenant("acme", now))
    run(duty, now + GRACE_SECONDS * SECOND, seconds=6)
    assert store.schedules.get(WholeId("acme:s1")) is None


def test_a_beat_that_lost_its_claim_removes_nothing(store: Store, now: datetime) -> None:
    deletion = started(store, now)
    plant(store, now, "acme")
    claimed = store.deletions.claim(now, lease_seconds=0)
    assert claimed is not None
    token, _ = claimed
    assert store.deletions.claim(now, lease_seconds=60) is not None
    assert store.deletions.claim(now, lease_seconds=60) is None
    before = of(documents(store), "acme")
    assert store.deletions.remove_batch(deletion, token, now) == 0
    assert not store.deletions.close(deletion, token)
    assert not store.deletions.finish(deletion, token, now)
    store.deletions.advance(replace(deletion, next_due_at=now), token)
    assert of(documents(store), "acme") == before


def test_one_deletion_of_a_tenant_is_at_work_at_a_time(
    store: Store, now: datetime, duty: DeletionDuty
) -> None:
    deletion = started(store, now)
    assert not store.deletions.start(replace(deletion, id=WholeId("d2")))
    assert store.deletions.at_work(deletion.key) == deletion
    run(duty, now)
    assert store.deletions.at_work(deletion.key) is None
    assert store.deletions.start(replace(deletion, id=WholeId("d2")))
    assert [each.id for each in store.deletions.newest()] == ["d1", "d2"]


def test_a_beat_killed_at_any_write_leaves_right_counts(
    store: Store, now: datetime, duty: DeletionDuty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write raises once, before or after it was made: what another beat finds is counted once."""
    monkeypatch.setattr(deletions_module, "DOCUMENTS_A_BATCH", 2)
    store.events.insert([event(now + each * SECOND, "acme:s1") for each in range(5)], now, "m")
    assert store.schedules.insert(schedule(now, "acme:s1"))
    deletion = started(store, now)
    dice = random.Random(37)

    class Killed(Exception):
        pass

    def breaking(verb: Any) -> Any:
        def verb_that_breaks(*args: Any, **options: Any) -> Any:
            if (fate := dice.random()) < 0.3:
                raise Killed
            result = verb(*args, **options)
            if fate < 0.5:
                raise Killed
            return result

        return verb_that_breaks

    for name in ("_hold", "advance", "_remove", "finish", "close"):
        monkeypatch.setattr(store.deletions, name, breaking(getattr(store.deletions, name)))
    kills = 0
    for after in range(0, 1_000, 5):
        try:
            while duty.work_page(now + after * SECOND):
                continue
        except Killed:
            kills += 1
            # Its lease runs out.
            store.mongo.collection("deletions").update_one({}, {"$set": {"lease_until": EARLIER}})
    assert kills >= 10
    ended = store.deletions.get(deletion.id)
    assert ended is not None
    assert ended.ended_at is not None
    assert dict(ended.counts) == {"events": 5, "schedules": 1}
    assert of(documents(store), "acme").keys() == {("deletions", "d1")}
