"""The audit: a change and its line are one write, and the chain shows what was done to lines afterwards."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from pymongo.errors import OperationFailure

from scheduler_app.domain.act import Act, Actor, ActorKind
from scheduler_app.domain.audit import MAX_FIELDS_BYTES, Change, Difference
from scheduler_app.domain.hash_chain import digest, verify
from scheduler_app.domain.heartbeat import Heartbeat, new_heartbeat
from scheduler_app.domain.ids import TENANT, WholeId, whole_id
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.triggers import TriggerContext, new_trigger
from scheduler_app.store import Store, audit
from scheduler_app.store.acting import acting
from scheduler_app.store.audit import AuditFilter
from scheduler_app.store.audit_chain import AuditChain
from scheduler_app.store.paging import PageRequest
from scheduler_app.store.schedules.schedules import DeletedSchedule
from scheduler_app.usecases.deeds.schedules import delete_with_line
from scheduler_app.usecases.duties.audit import AuditDuty
from tests.builders import schedule, silence

ANN = Act(Actor(ActorKind.KEY, "ann", address="203.0.113.9"), "asked by Bob", "r-1")

OF_S1 = AuditFilter(kind="schedule", resource="s1")


def _lines(store: Store, **which: Any) -> list[dict[str, Any]]:
    return list(store.mongo.collection("audit").find(which).sort("_id", 1))


def _edited(resource: str = "s1") -> Change:
    return Change("edited", "schedule", WholeId(resource), Difference({"name": "a"}, {"name": "b"}), 2)


def _written(store: Store, value: int = 1) -> Callable[[], bool]:
    def write() -> bool:
        change = {"$set": {"value": value}}
        store.mongo.collection("schedules").update_one({"_id": "s1"}, change, upsert=True)
        return True

    return write


def _value(store: Store) -> object:
    return (store.mongo.collection("schedules").find_one({"_id": "s1"}) or {}).get("value")


def test_a_line_says_who_did_what_why_and_from_where(store: Store) -> None:
    with acting(ANN):
        assert store.audit.change(_edited(), _written(store))
    [line] = store.audit.page(TENANT, PageRequest(limit=9), OF_S1).rows
    assert (line.act, line.change) == (ANN, _edited())
    assert (line.number, line.hash) == (None, None), "a beat chains it"


def test_what_changes_nothing_has_no_line(store: Store) -> None:
    assert store.audit.change(_edited(), lambda: False) is False
    assert store.audit.change(_edited(), lambda: None) is None
    assert _lines(store) == []


@pytest.mark.parametrize("first", ["line", "change"])
def test_where_one_of_them_fails_there_is_neither(store: Store, first: str) -> None:
    def fails() -> bool:
        _written(store)()
        raise RuntimeError("after the write")

    if first == "line":
        store.mongo.command("collMod", "audit", validator={"$jsonSchema": {"required": ["nothing"]}})
        with pytest.raises(OperationFailure):
            store.audit.change(_edited(), _written(store))
    else:
        with pytest.raises(RuntimeError):
            store.audit.change(_edited(), fails)
    assert (_lines(store), _value(store)) == ([], None)


def test_a_change_that_meets_another_write_begins_anew(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight threads change one document at once: all of them succeed, each with its line."""
    # The others try again while one of them, on a machine that is slow, waits for its commit.
    monkeypatch.setattr(audit, "TRIES", 10_000)
    documents = store.mongo.collection("schedules")
    documents.insert_many([{"_id": "s1", "value": 0}])

    def change() -> None:
        def write() -> bool:
            return documents.update_one({"_id": "s1"}, {"$inc": {"value": 1}}).matched_count == 1

        assert store.audit.change(_edited(), write)

    threads = [threading.Thread(target=change) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (_value(store), len(_lines(store))) == (8, 8)


def test_a_resource_s_line_has_what_differs_in_its_document(store: Store, now: datetime) -> None:
    quiet = silence(now, whole_id(TENANT, "n1"))
    assert store.silences.put(quiet)
    assert not store.silences.put(quiet), "the same again"
    assert store.silences.delete(quiet.id)
    assert not store.silences.delete(quiet.id)
    made, deleted = _lines(store)
    assert [(each["what"], each["resource"]) for each in (made, deleted)] == [
        ("created", "silence/n1"),
        ("deleted", "silence/n1"),
    ]
    assert "before" not in made
    assert made["after"] == deleted["before"]


def test_a_heartbeat_over_one_that_cannot_be_read_is_one_line(store: Store, now: datetime) -> None:
    store.mongo.collection("heartbeats").insert_many([{"_id": "h1", "tenant": TENANT, "v": "x"}])
    trigger = new_trigger({"every_seconds": 60}, TriggerContext(now))
    made = Heartbeat(id=WholeId("h1"), trigger=trigger, secret_sha256="x", created_at=now, since=now)
    store.heartbeats.replace_corrupt(new_heartbeat(made, now))
    assert [each["what"] for each in _lines(store)] == ["edited"]
    assert isinstance(store.heartbeats.get(made.id), Heartbeat)


def test_a_dry_run_writes_no_line(store: Store, now: datetime) -> None:
    assert store.dry_run().silences.put(silence(now, whole_id(TENANT, "n1")))
    assert _lines(store) == []


def test_values_that_are_too_long_are_left_out_with_a_note(store: Store) -> None:
    long = Difference({"name": "a"}, {"name": "b", "rrule": "x" * MAX_FIELDS_BYTES})
    store.audit.note(Change("edited", "schedule", WholeId("s1"), long))
    [line] = _lines(store)
    assert (line["cut"], line["before"], line["after"]["name"]) == (True, {"name": "a"}, "b")
    assert line["after"]["rrule"].startswith("(327")


# -- in schedules' own documents -----------------------------------------------------------------------------


def test_a_new_schedule_brings_its_line_which_a_beat_moves(store: Store, now: datetime) -> None:
    with acting(ANN):
        assert store.schedules.insert(schedule(now, "s1"))
    assert _lines(store) == []
    duty = AuditDuty(store, 400)
    assert not duty.move_page(now)
    assert not duty.move_page(now)
    [line] = store.audit.page(TENANT, PageRequest(limit=9), OF_S1).rows
    assert (line.what, line.act, line.after) == ("created", ANN, {"name": line.after["name"]})
    assert "unlogged" not in (store.mongo.collection("schedules").find_one({"_id": "s1"}) or {})


def test_a_beat_that_is_killed_while_it_moves_lines_moves_them_once(store: Store, now: datetime) -> None:
    store.schedules.insert(schedule(now, "s1"))
    documents = store.mongo.collection("schedules")
    row = documents.find_one({"_id": "s1"}) or {}
    store.audit_chain.move_owed(limit=9)
    documents.update_one({"_id": "s1"}, {"$set": {"unlogged": row["unlogged"]}})
    assert store.audit_chain.move_owed(limit=9) == 1
    assert [each["number"] for each in _lines(store)] == [1]
    assert "unlogged" not in (documents.find_one({"_id": "s1"}) or {})


def test_lines_that_a_beat_moves_have_their_places_at_once(store: Store, now: datetime) -> None:
    """A second write for each would cost more than the first."""
    store.audit.note(_edited())
    store.schedules.insert_many([schedule(now, name) for name in ("s1", "s2", "acme:s1", "s3")])
    assert store.audit_chain.chain(TENANT, limit=9) == 1
    assert not AuditDuty(store, 400).move_page(now)
    assert store.audit_chain.tenants(limit=9) == []
    assert {
        tenant: [each["number"] for each in _lines(store, tenant=tenant)] for tenant in (TENANT, "acme")
    } == {
        TENANT: [1, 2, 3, 4],
        "acme": [1],
    }
    assert [verify(store.audit_chain.links(each, 0, limit=9)).wrong for each in (TENANT, "acme")] == [
        None,
        None,
    ]


def test_a_line_that_comes_while_others_are_moved_stays_until_the_next_time(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.schedules.insert_many([schedule(now, "s1"), schedule(now, "s2")])
    insert = AuditChain._insert_with_places

    def insert_while_another_comes(chain: AuditChain, lines: Any) -> int:
        assert store.cursors.condemn("s1", ValueError("no"))
        return insert(chain, lines)

    with monkeypatch.context() as patched:
        patched.setattr(AuditChain, "_insert_with_places", insert_while_another_comes)
        assert store.audit_chain.move_owed(limit=9) == 2
    assert [each["what"] for each in _lines(store)] == ["created", "created"]
    left = store.mongo.collection("schedules").find({"unlogged": {"$exists": True}})
    assert [(row["_id"], [each["what"] for each in row["unlogged"]]) for row in left] == [
        ("s1", ["set aside"])
    ]
    assert store.audit_chain.move_owed(limit=9) == 1
    assert (_wrong(store), len(_lines(store))) == (None, 3)


def test_beats_that_move_at_once_make_one_chain(store: Store, now: datetime) -> None:
    store.schedules.insert_many([schedule(now, f"s{number}") for number in range(100)])

    def move() -> None:
        for _ in range(30):
            store.audit_chain.move_owed(limit=7)

    threads = [threading.Thread(target=move) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    while store.audit_chain.move_owed(limit=7):
        pass
    assert store.mongo.collection("schedules").count_documents({"unlogged": {"$exists": True}}) == 0
    assert (_wrong(store), len(store.audit_chain.links(TENANT, 0, limit=999))) == (None, 100)


@pytest.mark.parametrize(
    "bent",
    ["x", [5], [{"what": "no id"}], {}, [{"_id": "l", "tenant": 5}], [{"_id": ["l"], "tenant": TENANT}]],
)
def test_lines_that_somebody_bent_are_no_obstacle(store: Store, now: datetime, bent: object) -> None:
    store.schedules.insert_many([schedule(now, "s1"), schedule(now, "s2")])
    store.mongo.collection("schedules").update_one({"_id": "s1"}, {"$set": {"unlogged": bent}})
    store.audit_chain.move_owed(limit=9)
    assert [each["resource"] for each in _lines(store)] == ["schedule/s2"]


@pytest.mark.parametrize("bent", [{"_id": 5}, [{"_id": "$"}], [{"_id": {}}]])
def test_a_bent_line_that_beats_find_is_no_obstacle_either(store: Store, now: datetime, bent: object) -> None:
    store.schedules.insert_many([schedule(now, "s1"), schedule(now, "s2")])
    documents = store.mongo.collection("schedules")
    documents.update_one({"_id": "s1"}, {"$set": {"unlogged": bent}})
    store.audit_chain.move_owed(limit=1)
    store.audit_chain.move_owed(limit=9)
    assert [each["_id"] for each in _lines(store, resource="schedule/s2")]
    assert documents.count_documents({"unlogged": {"$exists": True}}) == 0


def test_a_deletion_takes_the_lines_of_its_document_along(store: Store, now: datetime) -> None:
    store.schedules.insert(schedule(now, "s1"))
    assert delete_with_line(store, "s1", now) == DeletedSchedule(revision=1, name="test")
    lines = _lines(store)
    assert [each["what"] for each in lines] == ["created", "deleted"]
    assert lines[1]["before"] == {"name": "test"}


def test_a_schedule_with_a_bent_name_is_deleted_all_the_same(store: Store, now: datetime) -> None:
    store.schedules.insert(schedule(now, "s1"))
    store.mongo.collection("schedules").update_one({"_id": "s1"}, {"$set": {"name": 5}})
    assert delete_with_line(store, "s1", now) == DeletedSchedule(revision=1, name="")
    assert "before" not in _lines(store)[1]


def test_what_beats_do_by_themselves_has_lines(store: Store, now: datetime) -> None:
    made = schedule(now, "s1")
    store.schedules.insert(made)
    documents = store.mongo.collection("schedules")
    documents.update_one({"_id": "s1"}, {"$set": {"finishes_at": now - timedelta(seconds=1)}})
    assert store.cursors.finish_ended(now) == 1
    assert store.cursors.condemn("s1", ValueError("$no"))
    store.audit_chain.move_owed(limit=9)
    lines = _lines(store, **{"by.kind": "scheduler"})
    done = [(each["what"], each.get("before"), each["after"]) for each in lines]
    assert sorted(done)[-2:] == [
        ("finished", {"state": "active"}, {"state": "finished"}),
        ("set aside", {"state": "finished"}, {"state": "error", "reason": "$no"}),
    ]


# -- the chain -----------------------------------------------------------------------------------------------


@pytest.fixture
def chained(store: Store) -> Store:
    """Six lines with their places."""
    for number in range(6):
        store.audit.note(_edited(f"s{number}"))
    assert not AuditDuty(store, 400).chain_page(datetime.now().astimezone())
    return store


def _wrong(store: Store) -> str | None:
    return verify(store.audit_chain.links(TENANT, 0, limit=99)).wrong


def test_lines_get_their_places_in_order(chained: Store) -> None:
    assert [each["number"] for each in _lines(chained)] == [1, 2, 3, 4, 5, 6]
    assert _wrong(chained) is None
    chained.audit.note(_edited())
    assert chained.audit_chain.tenants(limit=9) == [TENANT]
    assert chained.audit_chain.chain(TENANT, limit=9) == 1
    assert (_wrong(chained), len(chained.audit_chain.links(TENANT, 0, limit=99))) == (None, 7)


def test_a_changed_line_is_found(chained: Store) -> None:
    for field, value in (
        ("reason", "x"),
        ("after.name", "c"),
        ("by.name", "eve"),
        ("version", 3),
    ):
        lines = chained.mongo.collection("audit")
        before = lines.find_one({"number": 3}) or {}
        lines.update_one({"number": 3}, {"$set": {field: value}})
        assert "was changed" in (_wrong(chained) or ""), field
        lines.delete_one({"_id": before["_id"]})
        lines.insert_many([before])
    assert _wrong(chained) is None


def test_a_removed_line_is_found(chained: Store) -> None:
    chained.mongo.collection("audit").delete_one({"number": 3})
    assert _wrong(chained) == "line 3 is missing: 4 follows 2"


def test_lines_in_another_order_are_found(chained: Store) -> None:
    lines = chained.mongo.collection("audit")
    third, fourth = (lines.find_one({"number": number}) or {} for number in (3, 4))
    lines.delete_many({"number": {"$in": [3, 4]}})
    lines.insert_many([third | {"number": 4}, fourth | {"number": 3}])
    assert "was changed" in (_wrong(chained) or "")


def test_beats_that_chain_at_once_make_one_chain(store: Store, now: datetime) -> None:
    for number in range(100):
        store.audit.note(_edited(f"s{number}"))

    def chain() -> None:
        for _ in range(30):
            AuditDuty(store, 400).chain_page(now)

    threads = [threading.Thread(target=chain) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    while store.audit_chain.tenants(limit=9):
        AuditDuty(store, 400).chain_page(now)
    assert (_wrong(store), len(store.audit_chain.links(TENANT, 0, limit=999))) == (None, 100)


@pytest.mark.parametrize(
    "bent", [{"$set": {"number": "x"}}, {"$unset": {"hash": ""}}], ids=["number", "hash"]
)
def test_a_last_line_that_somebody_bent_does_not_end_the_chain(chained: Store, bent: dict[str, Any]) -> None:
    chained.mongo.collection("audit").update_one({"number": 6}, bent)
    chained.audit.note(_edited("s9"))
    assert chained.audit_chain.chain(TENANT, limit=9) == 1
    [line] = _lines(chained, resource="schedule/s9")
    assert line["number"] == (6 if "$set" in bent else 7)


def test_old_lines_go_from_the_beginning_of_the_chain(chained: Store, now: datetime) -> None:
    lines = chained.mongo.collection("audit")
    long_ago = now - timedelta(days=401)
    rows = {row["number"]: row for row in lines.find({})}
    previous = "0" * 64
    for number, row in rows.items():
        at = long_ago if number in (1, 2, 4) else now
        row |= {"at": at, "previous": previous}
        said = {name: value for name, value in row.items() if name != "hash"}
        row["hash"] = previous = digest(said)
        lines.delete_one({"_id": row["_id"]})
        lines.insert_many([row])
    assert not AuditDuty(chained, 400).prune_page(now)
    assert [each["number"] for each in _lines(chained)] == [3, 4, 5, 6], "the fourth comes after a newer one"
    assert _wrong(chained) is None


# -- what older releases have kept ---------------------------------------------------------------------------


def _older_edit(number: int) -> dict[str, Any]:
    return {
        "_id": f"{number:024x}", "v": 1, "tenant": TENANT, "schedule_id": "s1", "what": "edited",
        "at": datetime(2026, 1, 1, 0, number).astimezone(), "version": number, "by": "ann", "note": "why",
        "before": {"name": "a"}, "after": {"name": "b"}, "secrets_changed": True,
    }  # fmt: skip


def test_edits_of_older_releases_are_carried_over(store: Store, now: datetime) -> None:
    edits = store.mongo.collection("edits")
    edits.insert_many([_older_edit(number) for number in range(1, 4)])
    assert not AuditDuty(store, 400).carry_page(now)
    assert edits.count_documents({}) == 0
    found = store.audit.edits(PageRequest(limit=9), "s1").rows
    assert [(each.version, each.by, each.act.reason, each.secrets_changed) for each in found] == [
        (number, "ann", "why", True) for number in (3, 2, 1)
    ]
    # A kill in between leaves some, and another process of the older release writes one more.
    edits.insert_many([_older_edit(3), _older_edit(4)])
    AuditDuty(store, 400).carry_page(now)
    assert [each.version for each in store.audit.edits(PageRequest(limit=9), "s1").rows] == [4, 3, 2, 1]


def test_a_schedule_read_meanwhile_is_the_same(store: Store, now: datetime) -> None:
    store.schedules.insert(schedule(now, "s1"))
    before = store.schedules.get("s1")
    store.audit_chain.move_owed(limit=9)
    assert isinstance(before, Schedule)
    assert store.schedules.get("s1") == before
