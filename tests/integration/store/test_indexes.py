"""What an older release leaves in the database."""

from scheduler_app.store import Store
from scheduler_app.store.index_builds import ensure_indexes
from scheduler_app.store.indexes import BY_ACTION, ENDS, STOPPED
from scheduler_app.usecases.duties.housekeeping import drop_replaced_indexes
from scheduler_app.version import INDEX_LEVEL

#: A report that does not grow too old meanwhile, however long this machine takes for the steps of a test.
LATELY = {"$add": ["$$NOW", 3_600_000]}


def test_an_index_that_was_replaced_is_dropped_once_its_successor_is_there_and_no_process_asks_for_it(
    store: Store,
) -> None:
    events, nodes = store.mongo.collection("events"), store.mongo.collection("nodes")
    events.create_index(
        [("state", 1), ("due_at", 1)], name="due_v2", partialFilterExpression={"due_at": {"$exists": True}}
    )
    events.create_index(
        [("archived_at", 1)],
        name="retention_v1",
        expireAfterSeconds=60,
        partialFilterExpression={"archived_at": {"$exists": True}},
    )
    store.processes.report("beat")
    older = {"_id": "older", "role": "api", "index_level": INDEX_LEVEL - 1}
    nodes.update_one({"_id": "older"}, [{"$set": older | {"seen_at": LATELY}}], upsert=True)
    ensure_indexes(store.mongo, retention_days=30, message_retention_days=90)
    drop_replaced_indexes(store)
    assert {"due_v2", "retention_v1", "due_v4", "retention_v2"} <= set(events.index_information())
    # The last release reports no level at all.
    nodes.update_one({"_id": "older"}, {"$unset": {"index_level": ""}})
    drop_replaced_indexes(store)
    assert "due_v2" in events.index_information()

    nodes.delete_one({"_id": "older"})
    for _ in range(2):  # the second time there is nothing to drop
        drop_replaced_indexes(store)
        names = set(events.index_information())
        assert {"due_v4", "retention_v2"} <= names
        assert not names & {"due_v2", "retention_v1"}


def test_indexes_of_schedules_that_were_merged_stay_while_an_older_process_names_them(store: Store) -> None:
    schedules, nodes = store.mongo.collection("schedules"), store.mongo.collection("nodes")
    merged = {
        *("finish_v1", "deleted_v1", "paused_until_v1", "set_aside_v1", "paused_by_failures_v1"),
        *("destination_v1", "other_actions_v1"),
    }
    for number, name in enumerate(merged):
        schedules.create_index([(f"field{number}", 1)], name=name)
    successors = {ENDS, STOPPED, BY_ACTION}
    older = {"_id": "older", "role": "api", "index_level": INDEX_LEVEL - 1}
    nodes.update_one({"_id": "older"}, [{"$set": older | {"seen_at": LATELY}}], upsert=True)
    drop_replaced_indexes(store)
    assert successors | merged <= set(schedules.index_information())
    nodes.delete_one({"_id": "older"})
    drop_replaced_indexes(store)
    left = set(schedules.index_information())
    assert successors <= left
    assert not left & merged


def test_a_collection_that_nothing_uses_any_more_is_dropped(store: Store) -> None:
    store.mongo.collection("sign_in_attempts").insert_one({"_id": "an address", "count": 1})
    for _ in range(2):  # the second time there is nothing to drop
        drop_replaced_indexes(store)
        assert "sign_in_attempts" not in store.mongo.db.list_collection_names()
