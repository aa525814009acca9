"""Deletions by tag: schedules that have it and what hangs on them are removed, and nothing of others."""

import random
from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from scheduler_app.clock import clock
from scheduler_app.domain.api_key import Caller, KeyScope, StoredKey
from scheduler_app.domain.deletion import Deletion
from scheduler_app.domain.errors import InvalidField, NotFound
from scheduler_app.domain.ids import TENANT, WholeId, message_event_id, name_of, notification_id, whole_id
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.store import Store
from scheduler_app.store import deletions as deletions_module
from scheduler_app.usecases.deeds.deletions import DeletionService
from scheduler_app.usecases.duties.deletions import DeletionDuty
from tests.builders import event, schedule
from tests.integration.usecases.test_deletions import EARLIER, SECOND, documents

TAG = "customer:acme"
BY = Caller("root", None)


@pytest.fixture
def duty(store: Store) -> DeletionDuty:
    return DeletionDuty(store)


def insert(store: Store, now: datetime, own_id: str, *tags: str) -> None:
    """A schedule whose line of the audit is moved already."""
    assert store.schedules.insert(schedule(now, own_id, tags=tags))
    store.mongo.db["schedules"].update_one({"_id": own_id}, {"$unset": {"unlogged": ""}})


def plant(store: Store, now: datetime, own_id: str, *tags: str) -> None:
    """A schedule with everything that may hang on one."""
    insert(store, now, own_id, *tags)
    tenant, db = "acme" if ":" in own_id else TENANT, store.mongo.db
    made = [event(now + each * SECOND, own_id) for each in range(3)]
    store.events.insert(made, now, "made")
    for about, suffix in ((made[0].id, "-on-failure"), (own_id, "-on-pause-3")):
        own = message_event_id(tenant, notification_id(about, suffix))
        db["events"].insert_one({"_id": own, "tenant": tenant, "kind": "message", "state": "ready_queue"})
    db["backfills"].insert_one({"_id": own_id, "tenant": tenant})
    for revision in (1, 2):
        ended = {"_id": f"{own_id}/{revision}", "schedule_id": own_id, "tenant": tenant, "revision": revision}
        db["ended_revisions"].insert_one(ended)
    db["redrives"].insert_one({"_id": f"{own_id}-r", "tenant": tenant, "schedule_id": own_id})
    touched = {"schedules": {"names": [own_id]}, "tags": {"names": list(tags)}, "failing": [{"id": own_id}]}
    db["causes"].insert_one({"_id": f"{own_id}-c", "tenant": tenant, "key": own_id, "since": now} | touched)


def plant_tag(store: Store, now: datetime, tenant: str, tag: str) -> None:
    db = store.mongo.db
    db["heartbeats"].insert_one({"_id": whole_id(tenant, f"h-{tag}"), "tenant": tenant, "tags": [tag]})
    db["calendar_feeds"].insert_one({"_id": whole_id(tenant, f"f-{tag}"), "tenant": tenant, "tag": tag})
    db["redrives"].insert_one({"_id": whole_id(tenant, f"r-{tag}"), "tenant": tenant, "tag": tag})
    touched = {"schedules": {"names": [whole_id(tenant, "s2"), whole_id(tenant, "s3")]}}
    cause = {"_id": whole_id(tenant, f"c-{tag}"), "tenant": tenant, "key": tag + tenant, "since": now}
    db["causes"].insert_one(cause | touched | {"tags": {"names": [tag, "team"]}, "failing": []})
    figure = {"_id": whole_id(tenant, f"tag/{tag}/3600@20260101T000000Z"), "tenant": tenant}
    db["figures"].insert_one(figure | {"subject": f"tag/{tag}"})


def delete(store: Store, now: datetime, tenant: str = "acme", tag: str = TAG) -> Deletion:
    return DeletionService(store).delete_tag(tenant, tag, tag, BY, now)


def found(store: Store, deletion: Deletion) -> Deletion:
    again = store.deletions.get(deletion.id)
    assert again is not None
    return again


def run(duty: DeletionDuty, now: datetime, *, seconds: int = 200) -> datetime:
    for after in range(0, seconds, 5):
        while duty.work_page(now + after * SECOND):
            continue
    return now + seconds * SECOND


@pytest.mark.parametrize("tenant", ["acme", TENANT])
def test_everything_with_a_tag_is_removed_and_nothing_else(
    store: Store, now: datetime, duty: DeletionDuty, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletions_module, "DOCUMENTS_A_BATCH", 2)
    for each in ("acme", TENANT):
        plant(store, now, whole_id(each, "s1"), TAG)
        plant(store, now, whole_id(each, "s1-1"), "customer:acm")
        plant(store, now, whole_id(each, "s2"), "team", TAG)
        plant(store, now, whole_id(each, "s3"))
        plant_tag(store, now, each, TAG)
        plant_tag(store, now, each, "customer:acm")
    before = documents(store)
    deletion = delete(store, now, tenant)
    run(duty, now)
    after = documents(store)
    ended = found(store, deletion)
    assert ended.ended_at is not None
    gone = {key: row for key, row in before.items() if key not in after}
    assert dict(Counter(name for name, _ in gone)) == ended.counts
    theirs = {whole_id(tenant, name) for name in ("s1", "s2")}
    assert ended.counts == {
        "schedules": 2,
        "events": 10,
        "backfills": 2,
        "ended_revisions": 4,
        "redrives": 3,
        "heartbeats": 1,
        "calendar_feeds": 1,
        "figures": 1,
        "causes": 2,
    }
    assert {row["schedule_id"] for row in gone.values() if "schedule_id" in row} == theirs
    assert {row["tenant"] for row in gone.values()} == {tenant}
    # A failure that others have, too, stays without the customer.
    shared = [("causes", whole_id(tenant, f"c-{tag}")) for tag in (TAG, "customer:acm")]
    told = [(after[key]["tags"]["names"], after[key]["schedules"]["names"]) for key in shared]
    s3 = whole_id(tenant, "s3")
    assert told == [(["team"], [s3]), (["customer:acm", "team"], [s3])]
    left = {key: row for key, row in before.items() if key not in gone and key not in shared}
    assert {key: after[key] for key in left} == left
    lines = [row for row in store.mongo.db["audit"].find({"tenant": tenant}) if row["kind"] == "tag"]
    assert [(row["what"], row["after"]) for row in lines] == [("deleted", {"removed": dict(ended.counts)})]


def test_nothing_of_it_is_sent_from_the_first_look_on(
    store: Store, now: datetime, duty: DeletionDuty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler_app.store.tagged_documents.SCHEDULES_A_WRITE", 2)
    for number in range(5):
        insert(store, now, f"acme:s{number}", TAG)
    insert(store, now, "acme:other", "team")
    delete(store, now)
    while duty.work_page(now):
        continue
    assert [store.schedules.get(WholeId(f"acme:s{number}")) for number in range(5)] == [None] * 5
    rows = store.mongo.db["schedules"].find({"tags": TAG})
    assert [row["state"] for row in rows] == [ScheduleState.DELETED.value] * 5
    assert store.schedules.get(WholeId("acme:other")) is not None


def test_what_is_written_late_and_what_is_made_meanwhile_is_removed_too(
    store: Store, now: datetime, duty: DeletionDuty
) -> None:
    insert(store, now, "acme:s1", TAG)
    deletion = delete(store, now)
    end = run(duty, now, seconds=50)
    store.events.insert([event(now, "acme:s1")], now, "made")
    insert(store, now, "acme:s2", TAG)
    end = run(duty, end, seconds=20)
    assert dict(found(store, deletion).counts) == {"events": 1, "schedules": 1}
    run(duty, end)
    ended = found(store, deletion)
    assert (dict(ended.counts), ended.ended_at is not None) == ({"events": 1, "schedules": 2}, True)


def test_what_a_worker_holds_and_a_line_of_the_audit_that_is_still_to_be_moved_are_waited_for(
    store: Store, now: datetime, duty: DeletionDuty
) -> None:
    insert(store, now, "acme:s1", TAG)
    made = event(now, "acme:s1")
    store.events.insert([made], now, "made")
    store.claims.claim([made.id], until=now, now=now, lease_seconds=600, worker="w")
    assert store.schedules.insert(schedule(now, "acme:s2", tags=(TAG,)))
    deletion = delete(store, now)
    end = run(duty, now)
    assert (dict(found(store, deletion).counts), found(store, deletion).ended_at) == ({}, None)
    store.mongo.collection("events").update_one({}, {"$set": {"lease_until": EARLIER}})
    store.mongo.collection("schedules").update_one({"_id": "acme:s2"}, {"$unset": {"unlogged": ""}})
    run(duty, end)
    ended = found(store, deletion)
    assert (dict(ended.counts), ended.ended_at is not None) == ({"events": 1, "schedules": 2}, True)


def test_a_notification_that_a_worker_sends_is_waited_for(
    store: Store, now: datetime, duty: DeletionDuty
) -> None:
    insert(store, now, "acme:s1", TAG)
    own = message_event_id("acme", notification_id(event(now, "acme:s1").id, "-on-failure"))
    sent: dict[str, Any] = {"_id": own, "tenant": "acme", "kind": "message", "state": "running"}
    sent["lease_until"] = clock.now() + 600 * SECOND
    store.mongo.db["events"].insert_one(sent)
    deletion = delete(store, now)
    end = run(duty, now)
    assert (dict(found(store, deletion).counts), found(store, deletion).ended_at) == ({}, None)
    store.mongo.db["events"].update_one({}, {"$set": {"lease_until": EARLIER}})
    run(duty, end)
    assert dict(found(store, deletion).counts) == {"events": 1, "schedules": 1}


def test_what_hangs_on_a_schedule_that_is_made_anew_under_the_id_stays(
    store: Store, now: datetime, duty: DeletionDuty, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(store, now, "acme:s1", TAG)
    store.events.insert([event(now, "acme:s1")], now, "made")
    deletion = delete(store, now)
    run(duty, now, seconds=30)
    tagged = store.deletions._tagged
    find = tagged.batch

    def with_another(*args: Any, **options: Any) -> Any:
        batch = find(*args, **options)
        if batch is not None:
            remade = {"$set": {"tags": ["other"], "state": "active"}, "$unset": {"deleted_at": ""}}
            store.mongo.db["schedules"].update_one({"_id": "acme:s1"}, remade)
        return batch

    monkeypatch.setattr(tagged, "batch", with_another)
    run(duty, now + 30 * SECOND)
    assert store.mongo.db["events"].count_documents({}) == 1
    ended = found(store, deletion)
    assert (sum(ended.counts.values()), ended.ended_at is not None) == (0, True)


def test_it_is_confirmed_and_something_has_the_tag(store: Store, now: datetime) -> None:
    deeds = DeletionService(store)
    insert(store, now, "acme:s1", TAG)
    with pytest.raises(InvalidField, match="must be customer:acme, the tag"):
        deeds.delete_tag("acme", TAG, "customer:acm", BY, now)
    with pytest.raises(NotFound, match="nothing has the tag customer:acm"):
        deeds.delete_tag("acme", "customer:acm", "customer:acm", BY, now)
    with pytest.raises(NotFound):
        deeds.delete_tag(TENANT, TAG, TAG, BY, now)
    first = deeds.delete_tag("acme", TAG, TAG, BY, now)
    assert deeds.delete_tag("acme", TAG, TAG, BY, now).id == first.id
    assert deeds.all(Caller("k", None, tenant="acme")) == deeds.all(BY) == [first]
    assert deeds.all(Caller("k", None, tenant=TENANT)) == []
    assert deeds.find("acme", name_of(first.id), Caller("k", None, tenant="acme")) == first
    with pytest.raises(NotFound):
        deeds.find(TENANT, name_of(first.id), Caller("k", None, tenant=TENANT))


def test_a_tenant_s_people_see_no_deletion_of_a_tenant(store: Store, now: datetime) -> None:
    assert store.deletions.start(Deletion(WholeId("d1"), "acme", now, next_due_at=now))
    deeds = DeletionService(store)
    for tenant in (TENANT, "acme"):
        assert deeds.all(Caller("k", None, tenant=tenant)) == []
        with pytest.raises(NotFound):
            deeds.find(tenant, "d1", Caller("k", None, tenant=tenant))
    assert deeds.find("acme", "d1", BY).id == "d1"


def test_keys_for_the_tag_alone_are_deleted_at_once(store: Store, now: datetime) -> None:
    insert(store, now, "acme:s1", TAG)
    for number, tags in enumerate(((TAG,), (TAG, "team"), ())):
        made = StoredKey(
            id=whole_id("acme", f"k{number}"),
            name=f"k{number}",
            scopes=frozenset((KeyScope.READ,)),
            created_at=now,
            secret_sha256=f"{number}" * 64,
            tags=tags,
        )
        assert store.api_keys.insert(made)
    delete(store, now)
    assert {each.name for each in store.api_keys.of("acme")} == {"k1", "k2"}


def test_a_dry_run_counts_and_changes_nothing(store: Store, now: datetime) -> None:
    plant(store, now, "acme:s1", TAG)
    plant(store, now, "acme:s2", "team", TAG)
    plant_tag(store, now, "acme", TAG)
    before = documents(store)
    dry = DeletionService(store.dry_run())
    dry.delete_tag("acme", TAG, TAG, BY, now)
    assert dry.count_tag("acme", TAG)._asdict() == {
        "schedules": 2,
        "with_other_tags": 1,
        "events": 6,
        "heartbeats": 1,
    }
    assert store.deletions.count_tag("acme", TAG, most=2) == (2, 1, 2, 1)
    assert documents(store) == before


def test_a_deletion_of_its_tenant_ends_one_of_a_tag(store: Store, now: datetime, duty: DeletionDuty) -> None:
    insert(store, now, "acme:s1", TAG)
    delete(store, now)
    assert store.deletions.start(Deletion(WholeId("d1"), "acme", now, next_due_at=now))
    run(duty, now)
    assert [row["_id"] for row in store.mongo.db["deletions"].find({})] == ["d1"]


def test_a_beat_killed_at_any_write_leaves_right_counts(
    store: Store, now: datetime, duty: DeletionDuty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write raises once, before or after it was made: what another beat finds is counted once."""
    monkeypatch.setattr(deletions_module, "DOCUMENTS_A_BATCH", 2)
    for number in range(3):
        insert(store, now, f"acme:s{number}", TAG)
        store.events.insert([event(now + each * SECOND, f"acme:s{number}") for each in range(3)], now, "m")
    insert(store, now, "acme:other", "team")
    deletion, dice = delete(store, now), random.Random(37)

    class Killed(Exception):
        pass

    def breaking(verb: Any) -> Any:
        def verb_that_breaks(*args: Any, **options: Any) -> Any:
            if (fate := dice.random()) < 0.2:
                raise Killed
            result = verb(*args, **options)
            if fate < 0.4:
                raise Killed
            return result

        return verb_that_breaks

    for name in ("_hold", "advance", "_remove", "finish", "delete_schedules"):
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
    ended = found(store, deletion)
    assert (dict(ended.counts), ended.ended_at is not None) == ({"events": 9, "schedules": 3}, True)
    assert [row["_id"] for row in store.mongo.db["schedules"].find({})] == ["acme:other"]
