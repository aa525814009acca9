"""An event whose document is corrupt ends by itself, keeps what was wrong as text, and can be redriven."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from pymongo.errors import OperationFailure
from structlog.testing import capture_logs

from scheduler_app.domain.stored_fields import Corrupt, Newer
from scheduler_app.store import Store
from scheduler_app.store.events.documents import (
    KEPT_CHARACTERS,
    KEPT_LAST,
    set_event_aside,
    update_by_token,
    update_or_set_aside,
)
from scheduler_app.store.mongo import Document
from tests.builders import event
from tests.documents import event_document

MINUTE = timedelta(minutes=1)
CORRUPT = Corrupt("attempt is a str, not a whole number")
#: What MongoDB says of a document that grew too large.
TOO_LARGE = OperationFailure("BSONObj size is invalid", 10334)


class Events:
    """Events of the test, whose documents are changed by hand."""

    def __init__(self, store: Store, now: datetime) -> None:
        self.store = store
        self.now = now
        self.documents = store.mongo.collection("events")

    def insert(self, second: int = 0, **changes: Any) -> str:
        made = event(self.now + timedelta(seconds=second))
        self.store.events.insert([made], self.now, "made")
        if changes:
            self.documents.update_one({"_id": made.id}, {"$set": changes})
        return made.id

    def row(self, event_id: str) -> Document:
        found = event_document(self.store, event_id)
        assert found is not None
        return found

    def set_aside(self, event_id: str, error: Exception = CORRUPT, **rest: Any) -> bool:
        return set_event_aside(self.documents, event_id, error, **rest)


@pytest.fixture
def events(store: Store, now: datetime) -> Events:
    return Events(store, now)


def test_a_corrupt_event_ends_in_error_with_the_reason_and_without_the_fields_of_the_living(
    events: Events, now: datetime
) -> None:
    living: dict[str, Any] = {"owner": "token", "lease_until": now, "dispatcher": "d", "isolated": "token"}
    living |= {"postponed_from": now, "due_since": now, "waits_for": "e", "superseded_by": "e", "held": "k"}
    made = events.insert(0, attempt="two", lost_leases="x", **living)
    with capture_logs() as lines:
        assert events.set_aside(made)
    row = events.row(made)
    assert (row["state"], row["attempt"], row["lost_leases"]) == ("error", 0, 0)
    assert not row.keys() & {"due_at", *living}
    assert row["archived_at"] > now
    told = row["status"][-1]
    assert (told["status"], told["time"]) == ("error", row["archived_at"])
    reason = "attempt is a str, not a whole number; lost_leases is a str, not a whole number"
    assert told["message"] == f"Set aside: {reason}"
    assert row["corrupt"]["attempt"] == 'attempt is a str, not a whole number: "two"'
    assert row["corrupt"].keys() == {"attempt", "lost_leases"}
    (line,) = [line for line in lines if line["event"] == "event.set_aside"]
    assert (line["event_id"], line["reason"]) == (made, reason)
    (again,) = events.store.events.redrive([made], now, "again")
    assert (again.id, events.row(made)["state"]) == (made, "ready_queue")


def test_a_finished_event_stays_what_it_was(events: Events, now: datetime) -> None:
    made = events.insert(state="completed", archived_at=now - MINUTE, attempts_before="x")
    assert events.set_aside(made)
    row = events.row(made)
    assert (row["state"], row["archived_at"], row["attempts_before"]) == ("completed", now - MINUTE, 0)
    assert row["status"][-1]["status"] == "completed"
    unknown = events.insert(1, state="completed", archived_at="x")
    assert events.set_aside(unknown)
    assert events.row(unknown)["archived_at"] > now
    lost = events.insert(2, state="lost", archived_at=now - MINUTE)
    assert events.set_aside(lost)
    assert (events.row(lost)["state"], events.row(lost)["archived_at"] > now) == ("error", True)


def test_an_event_with_which_nothing_is_wrong_is_left_alone(events: Events, now: datetime) -> None:
    made = events.insert()
    before = events.row(made)
    assert not events.set_aside(made, OperationFailure("a bad expression", 2))
    assert events.row(made) == before


def test_an_event_of_a_newer_release_and_one_that_is_gone_need_nothing(events: Events) -> None:
    made = events.insert(attempt="x")
    before = events.row(made)
    with capture_logs() as lines:
        assert events.set_aside(made, Newer("v is 9, and this release reads 2"))
    assert [line["event"] for line in lines] == ["event.newer"]
    assert events.row(made) == before
    assert events.set_aside("gone")


def test_an_event_that_mongodb_rejects_by_itself_is_set_aside_with_what_it_says(events: Events) -> None:
    made = events.insert()
    assert events.set_aside(made, OperationFailure("x" * 600, TOO_LARGE.code))
    row = events.row(made)
    assert row["state"] == "error"
    assert row["status"][-1]["message"] == f"Set aside: {'x' * 500}"
    assert "corrupt" not in row


def test_an_attempt_that_was_made_is_kept_and_counted(events: Events) -> None:
    attempt = {"number": 3, "claim": "token"}
    counted, bent = events.insert(attempt=2, lost_leases="x"), events.insert(1, attempt="x")
    for made in (counted, bent):
        assert events.set_aside(made, attempt=attempt)
        assert events.row(made)["attempts"] == [attempt]
    assert [events.row(made)["attempt"] for made in (counted, bent)] == [3, 0]


@pytest.mark.parametrize("count", [KEPT_LAST, KEPT_LAST + 1, KEPT_LAST + 20])
def test_its_lists_stay_bounded(events: Events, count: int) -> None:
    lines = [{"message": str(number)} for number in range(count)]
    made = events.insert(attempt="x", status=lines, attempts=lines)
    assert events.set_aside(made, attempt={"number": 1})
    row = events.row(made)
    kept = lines if count <= KEPT_LAST else [lines[0], *lines[1 - KEPT_LAST :]]
    assert row["status"][:-1] == kept
    assert row["attempts"] == [*kept, {"number": 1}]


def test_of_a_wrong_value_the_beginning_is_kept(events: Events) -> None:
    made = events.insert(attempt="x" * (KEPT_CHARACTERS + 5))
    assert events.set_aside(made)
    _, _, shown = events.row(made)["corrupt"]["attempt"].partition(": ")
    assert shown == '"' + "x" * (KEPT_CHARACTERS - 1)


def test_the_history_of_a_document_that_is_too_large_goes_and_the_reason_stays(events: Events) -> None:
    big = [{"message": "x" * 2**20} for _ in range(15)]
    made = events.insert(attempts=big, attempt="x", held=5, origin="y" * (2**20 - 200_000))
    claimed = {"number": 1, "claim": "token", "snippet": "z" * 200_000}
    assert events.set_aside(made, attempt=claimed)
    row = events.row(made)
    assert (row["state"], len(row["status"])) == ("error", 1)
    assert row["status"][0]["message"] == f"Set aside: {row['corrupt']['*']}"
    assert row["attempts"] == [{"claim": "token", "error": row["corrupt"]["*"]}]
    assert row["corrupt"]["*"].startswith("attempt is a str")
    assert "held" not in row


def test_an_event_that_moved_since_it_was_read_is_left_to_those_who_moved_it(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = events.insert(attempt="x", owner="token", state="running")
    update_one = events.documents.update_one

    def moved_before(*given: Any, **options: Any) -> Any:
        events.store.mongo.majority("events").find_one({"_id": made})
        events.store.mongo.collection("events").update_one({"_id": made}, {"$set": {"owner": "other"}})
        return update_one(*given, **options)

    monkeypatch.setattr(events.documents, "update_one", moved_before)
    assert events.set_aside(made)
    assert (events.row(made)["state"], events.row(made)["owner"]) == ("running", "other")


def test_an_update_that_one_document_makes_mongodb_reject_reaches_the_others(events: Events) -> None:
    ids = [events.insert(number) for number in range(4)]
    pipeline: list[Document] = [{"$set": {"hops": {"$add": ["$attempt", 1]}}}]
    found = update_or_set_aside(events.documents, {"_id": {"$in": ids}}, pipeline)
    assert found == (4, 4, True)
    events.documents.update_one({"_id": ids[2]}, {"$set": {"attempt": "x"}})
    events.documents.update_many({"_id": {"$in": [ids[0], ids[3]]}}, {"$set": {"attempt": 6}})
    found = update_or_set_aside(events.documents, {"_id": {"$in": ids}}, pipeline)
    assert (found.matched, found.at_once) == (3, False)
    assert [events.row(each)["hops"] for each in ids] == [7, 1, 1, 7]
    assert events.row(ids[2])["state"] == "error"


def test_an_update_says_how_many_it_matched_where_none_was_rejected(events: Events) -> None:
    ids = [events.insert(number) for number in range(2)]
    which: Document = {"_id": {"$in": ids}}
    pipeline: list[Document] = [{"$set": {"hops": {"$add": ["$attempt", 1]}}}]
    assert update_by_token(events.documents, which, pipeline) == 2
    events.documents.update_one({"_id": ids[0]}, {"$set": {"attempt": "x"}})
    assert update_by_token(events.documents, which, pipeline) is None
    assert events.row(ids[0])["state"] == "error"


def test_an_update_that_mongodb_rejects_as_such_is_an_error(events: Events) -> None:
    made = events.insert()
    with pytest.raises(OperationFailure):
        update_or_set_aside(events.documents, {"_id": made}, [{"$set": {"attempt": {"$nothing": 1}}}])
    with pytest.raises(OperationFailure):
        update_or_set_aside(events.documents, {"_id": "gone"}, [{"$set": {"attempt": {"$nothing": 1}}}])
    assert events.row(made)["state"] == "ready_queue"
