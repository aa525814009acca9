"""Makes messages, shows them, and moves those that wait to another time. What happens to them otherwise
happens as to every event."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

import bson
from bson.raw_bson import RawBSONDocument
from pymongo.errors import BulkWriteError

from scheduler_app.domain.event import Event, Kind, State
from scheduler_app.domain.message import Message, UnreadableMessage
from scheduler_app.domain.tenants import tenant_of, whole_id
from scheduler_app.store.documents.group_commit import GroupCommit
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.events.documents import sources, stored_queue
from scheduler_app.store.events.history import appended, line
from scheduler_app.store.events.message_documents import read_message, to_message_document
from scheduler_app.store.events.record import EventRecord, to_record
from scheduler_app.store.events.set_aside import update_sound
from scheduler_app.store.faults import only_duplicates
from scheduler_app.store.mongo import Document, Mongo
from scheduler_app.store.paging import Page, PagedQuery, RowFilter, Window

CREATED = "Message scheduled"


class MessageRecord(NamedTuple):
    """A stored message: its event with its history, and what it delivers."""

    event: EventRecord
    content: Message | UnreadableMessage
    queue: str
    """The one that it is in: its own, or that of its destination."""


class Messages:
    def __init__(self, mongo: Mongo, secret_box: SecretBox) -> None:
        self._events = mongo.collection("events")
        self._majority = mongo.majority("events")
        self._secret_box = secret_box
        self._group_commit = GroupCommit(self._insert_each)

    def insert(self, event: Event, now: datetime) -> MessageRecord | None:
        """Stores a new message; None when there is one of that id."""
        # Encoded here: a document that cannot be encoded is this caller's error, and not that of all callers
        # in the group.
        document = to_message_document(event, now, CREATED, self._secret_box)
        raw = RawBSONDocument(bson.encode(document, False, self._events.codec_options))
        return _new(event, document) if self._group_commit.do(raw) else None

    def insert_many(self, events: Sequence[Event], now: datetime) -> list[MessageRecord | None]:
        """Stores new messages; for each its record, or None when there is one of that id."""
        if not events:
            return []
        documents = [to_message_document(each, now, CREATED, self._secret_box) for each in events]
        refused = self._insert(documents)
        return [
            None if position in refused else _new(event, document)
            for position, (event, document) in enumerate(zip(events, documents, strict=True))
        ]

    def _insert_each(self, documents: Sequence[RawBSONDocument]) -> list[bool]:
        refused = self._insert(documents)
        return [position not in refused for position in range(len(documents))]

    def _insert(self, documents: Sequence[Document | RawBSONDocument]) -> set[int]:
        """Returns the positions of those whose id some document has."""
        try:
            self._events.insert_many(documents, ordered=False)
        except BulkWriteError as error:
            if not only_duplicates(error):
                raise
            return {failure["index"] for failure in error.details["writeErrors"]}
        return set()

    def get(self, event_id: str, *, tenant: str) -> MessageRecord | None:
        """The tenant's message whose event has that id."""
        return self.get_many([event_id], tenant=tenant).get(event_id)

    def get_many(self, event_ids: Collection[str], *, tenant: str) -> dict[str, MessageRecord]:
        """The tenant's messages among these, by their events' ids."""
        own = [each for each in event_ids if tenant_of(each) == tenant]
        if not own:
            return {}
        return {row["_id"]: self._record(row) for row in self._majority.find({"_id": {"$in": own}})}

    def remove_untouched(self, event_ids: Sequence[str], *, tenant: str) -> list[str]:
        """Removes those of the tenant's messages that are not dispatched yet; returns their ids."""
        own = [each for each in event_ids if tenant_of(each) == tenant]
        removed = []
        for event_id in own:
            which = {"_id": event_id, "state": State.READY_QUEUE.value, "attempt": 0}
            if self._events.delete_one(which).deleted_count:
                removed.append(event_id)
        return removed

    def scheduled_for_later(self, now: datetime, *, tenant: str, most: int) -> int:
        """Returns how many of the tenant's messages wait for an instant after `now`, at most `most`."""
        which = {
            "tenant": tenant,
            "kind": Kind.MESSAGE.value,
            "run_time": {"$gt": now},
            "due_at": {"$exists": True},
        }
        return self._events.count_documents(which, hint="messages_v1", limit=most)

    def reschedule(
        self,
        event_id: str,
        run_time: datetime,
        due_at: datetime,
        now: datetime,
        message: str,
        *,
        tenant: str,
    ) -> bool:
        """Moves a message that no worker has claimed to another time; False for every other. Attempts that
        were made count on. `due_at` is `run_time`, or later where that has passed."""
        if tenant_of(event_id) != tenant:
            return False
        written = update_sound(
            self._events,
            {"_id": event_id, "kind": Kind.MESSAGE.value, "state": sources("reschedule")},
            [
                {
                    "$set": {
                        "state": State.READY_QUEUE,
                        "due_at": due_at,
                        "run_time": run_time,
                        "due_since": due_at,
                        "status": appended("status", line(now, State.READY_QUEUE, message)),
                    }
                },
                # A message of the broker that was sent for the old time finds nothing that is due.
                {"$unset": ["dispatcher", "postponed_from", "held"]},
            ],
        )
        return written.matched == 1

    def page(
        self,
        window: Window,
        *,
        tenant: str,
        event_name: str | None = None,
        destination: str | None = None,
        states: Collection[State] | None = None,
        soonest_first: bool = True,
    ) -> Page[MessageRecord]:
        """A tenant's messages, of one event name or of all, for one of its destinations or for any receiver,
        in these states or in any. The window's times are those at which they are due first."""
        which: Document = {"tenant": tenant, "kind": Kind.MESSAGE.value}
        hint = "messages_v1"
        if event_name is not None:
            which["event_name"], hint = event_name, "message_names_v1"
        fits: list[Document] = []
        if destination is not None:
            own_id = {"$literal": whole_id(tenant, destination)}
            if event_name is None:
                which["action.destination"], hint = own_id["$literal"], "message_destinations_v1"
            else:
                fits.append({"$eq": ["$action.destination", own_id]})
        if states is not None:
            fits.append({"$in": ["$state", sorted(states)]})
        listing = PagedQuery(
            *(self._events, "run_time", which, hint, RowFilter({"$and": fits}) if fits else None),
            ascending=soonest_first,
        )
        found = listing.page(window)
        return Page(list(map(self._record, found.rows)), found.next)

    def _record(self, row: Document) -> MessageRecord:
        return MessageRecord(to_record(row), read_message(row, self._secret_box), stored_queue(row))


def _new(event: Event, document: Document) -> MessageRecord:
    """The record of a message that was stored as `event` says, without reading its document again."""
    if not isinstance(event.message, Message):
        raise ValueError(f"{event.id} has no content")
    record = EventRecord(
        id=event.id,
        schedule_id="",
        revision=event.revision,
        kind=event.kind,
        run_time=event.run_time,
        state=State.READY_QUEUE,
        attempt=0,
        status=document["status"],
        attempts=document["attempts"],
        created_at=document["created_at"],
        due_at=event.due_at,
        archived_at=None,
        missed=None,
        corrupt=None,
    )
    return MessageRecord(record, event.message, event.queue)
