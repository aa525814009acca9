"""A schedule that MongoDB does not let be written to keeps no other one from being written."""

from datetime import datetime, timedelta

from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from tests.builders import schedule

SECOND = timedelta(seconds=1)


def make_three(store: Store, now: datetime) -> list[str]:
    """The second of them fails the validation that an operator has given the collection since."""
    ids = [f"s{number}" for number in range(3)]
    for each in ids:
        store.schedules.insert(schedule(now, each, name="refused" if each == "s1" else "sound"))
    store.mongo.command("collMod", "schedules", validator={"name": {"$ne": "refused"}})
    return ids


def test_the_others_are_finished_when_their_last_occurrence_has_passed(store: Store, now: datetime) -> None:
    schedules = store.mongo.collection("schedules")
    make_three(store, now)
    ended = {"$set": {"finishes_at": now}, "$unset": {"next_run_at": ""}}
    schedules.update_many({}, ended, bypass_document_validation=True)
    store.cursors.finish_ended(now + SECOND)
    assert [row["state"] for row in schedules.find().sort("_id", 1)] == ["finished", "active", "finished"]


def test_the_claims_of_the_others_are_released(store: Store, now: datetime) -> None:
    schedules = store.mongo.collection("schedules")
    ids = make_three(store, now)
    claim = {"$set": {"owner": "token", "lease_until": now}}
    schedules.update_many({}, claim, bypass_document_validation=True)
    store.cursors.release(ids, "token")
    assert [row.get("owner") for row in schedules.find().sort("_id", 1)] == [None, "token", None]


def test_the_others_are_claimed_for_expansion(store: Store, now: datetime) -> None:
    ids = make_three(store, now)
    _, claimed = store.cursors.claim_for_expansion(ids, now + 60 * SECOND, lease_seconds=600)
    assert [each.id for each in claimed if isinstance(each, Schedule)] == ["s0", "s2"]
