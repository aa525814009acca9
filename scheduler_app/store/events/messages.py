"""Messages: their documents, how they are made, shown and rescheduled, and the ended events whose
notification (a message too) is still to be made. Otherwise a message is treated as every event.

A message's document is an event's, with what it delivers beside its history. Its fields are named as in a
schedule's document, so that its secrets are sealed, opened and removed by the same functions. An event
that still owes a notification has had a mark, `notify`, since its end.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pymongo import UpdateOne

from scheduler_app.actions.registry import kind_of
from scheduler_app.domain.action import CALLBACKS
from scheduler_app.domain.event import Event
from scheduler_app.domain.http_action import HttpAction
from scheduler_app.domain.ids import tenant_of
from scheduler_app.domain.message import Message, Timing, UnreadableMessage
from scheduler_app.domain.notice_action import NoticeAction
from scheduler_app.domain.notification import Notifying, OwedNotification
from scheduler_app.domain.resources.message import MESSAGE, TIMING
from scheduler_app.domain.states import UNCLAIMED, Kind, State
from scheduler_app.domain.stored_fields import Corrupt, fields, whole
from scheduler_app.store.bulk_writes import GroupInsert, insert_new
from scheduler_app.store.encryption import (
    ACTION_WITHOUT_SECRETS,
    SecretBox,
    action_kind,
    open_document,
    seal_document,
    why_unreadable,
)
from scheduler_app.store.events.documents import (
    appended,
    line_of_act,
    source_states,
    stored_queue,
    to_event_document,
    update_or_set_aside,
)
from scheduler_app.store.events.events import EventRecord, to_record
from scheduler_app.store.events.fields import MESSAGE_VERSION, read_owed_notification
from scheduler_app.store.indexes import OWED_NOTIFICATIONS
from scheduler_app.store.mongo import Document, Mongo
from scheduler_app.store.paging import Page, PagedQuery, PageRequest, RowFilter
from scheduler_app.store.resource_fields import (
    RowCodec,
    delivery_document,
    lateness_document,
    notifies_document,
    read_delivery,
    read_lateness,
    read_notifies,
    read_signing,
    signing_document,
)
from scheduler_app.telemetry import get_logger

_ROWS = [row for row in MESSAGE if row.sparse and row.path == row.key]
#: The fields that documents hold as their rows say.
_BY_ROWS = RowCodec(Message, _ROWS)
_TIMING = RowCodec(Timing, TIMING)
#: The fields that hold what a message delivers. A claim reads these, and those in CLAIMED.
CONTENT = {
    "action": 1,
    "sealed": 1,
    "signing": 1,
    "asked": 1,
    "retry": 1,
    "timeout_seconds": 1,
    "success": 1,
    "lateness": 1,
    "wiped": 1,
    "notifies": 1,
    "queue_by_destination": 1,
    **dict.fromkeys((row.key for row in _ROWS), 1),
}
#: What a cancellation sets: nothing secret is left. `$$REMOVE` takes a field away.
WIPED: Document = {
    "action": ACTION_WITHOUT_SECRETS,
    "sealed": "$$REMOVE",
    "signing": "$$REMOVE",
    "wiped": True,
}


def to_message_document(event: Event, now: datetime, line_message: str, secret_box: SecretBox) -> Document:
    """A new message's document. Raises ValueError for an event without a message's content."""
    message = _content(event)
    document = to_event_document(event, now, line_message) | {
        "asked": _TIMING.document(message.timing),
        **delivery_document(message.retry, message.timeout_seconds, message.success),
        "lateness": lateness_document(message.lateness),
        "notifies": notifies_document(message.on_success, message.on_failure),
        **_BY_ROWS.document(message),
        **sealed_content(message, secret_box),
    }
    if message.queue == CALLBACKS != event.queue:
        document["queue_by_destination"] = True
    del document["schedule_id"]
    return {name: value for name, value in document.items() if value is not None}


def _content(event: Event) -> Message:
    if not isinstance(event.message, Message):
        raise ValueError(f"{event.id} has no content to store")
    return event.message


def sealed_content(message: Message, secret_box: SecretBox) -> Document:
    """The fields of a message's document that depend on the key: what is secret, and `v`."""
    content: Document = {"v": MESSAGE_VERSION, "action": kind_of(message.action).to_document(message.action)}
    if message.signing is not None:
        content["signing"] = signing_document(message.signing)
    return seal_document(content, secret_box)


def read_message(row: Mapping[str, Any], secret_box: SecretBox) -> Message | UnreadableMessage:
    """What a stored message delivers, or why that cannot be read."""
    try:
        return _message(row, secret_box)
    except Exception as error:  # a document edited by hand may cause any error
        return UnreadableMessage(*why_unreadable(error))


def _message(stored: Mapping[str, Any], secret_box: SecretBox) -> Message:
    row = open_document(stored, secret_box)
    document = fields(row.get("action"), "action")
    action = action_kind(document).from_document(document)
    if not isinstance(action, HttpAction | NoticeAction):
        raise Corrupt(f"action.type is {action.kind}, which no message has")
    if action.destination is not None and tenant_of(action.destination) != tenant_of(row["_id"]):
        # It would be sent this tenant's secrets.
        raise Corrupt("action.destination is another tenant's")
    retry, timeout_seconds, success = read_delivery(row)
    return Message(
        action=action,
        timing=Timing(**_TIMING.read(fields(row.get("asked"), "asked"))),
        retry=retry,
        timeout_seconds=timeout_seconds,
        success=success,
        signing=read_signing(row.get("signing"), secret_box),
        queue=CALLBACKS if row.get("queue_by_destination") is True else stored_queue(row),
        hops=whole(row.get("hops") or 0, "hops"),
        lateness=read_lateness(row.get("lateness")),
        wiped=row.get("wiped") is True,
        **read_notifies(row.get("notifies")),
        **_BY_ROWS.read(row),
    )


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
        self._group_insert = GroupInsert(self._events)

    def insert(self, event: Event, now: datetime) -> MessageRecord | None:
        """Stores a new message; None when there is one of that id."""
        document = to_message_document(event, now, CREATED, self._secret_box)
        return _new_record(event, document) if self._group_insert.insert(document) else None

    def insert_many(self, events: Sequence[Event], now: datetime) -> list[MessageRecord | None]:
        """Stores new messages; for each its record, or None when there is one of that id."""
        if not events:
            return []
        documents = [to_message_document(each, now, CREATED, self._secret_box) for each in events]
        refused = insert_new(self._events, documents)
        return [
            None if position in refused else _new_record(event, document)
            for position, (event, document) in enumerate(zip(events, documents, strict=True))
        ]

    def get(self, event_id: str) -> MessageRecord | None:
        """The message whose event has that id."""
        return self.get_many([event_id]).get(event_id)

    def get_many(self, event_ids: Collection[str]) -> dict[str, MessageRecord]:
        """The messages among these, by their events' ids."""
        if not event_ids:
            return {}
        rows = self._majority.find({"_id": {"$in": list(event_ids)}})
        return {row["_id"]: self._record(row) for row in rows}

    def remove_untouched(self, event_ids: Sequence[str]) -> list[str]:
        """Removes those of the messages that are not dispatched yet; returns their ids."""
        removed = []
        for event_id in event_ids:
            which = {"_id": event_id, "state": State.READY_QUEUE.value, "attempt": 0}
            if self._events.delete_one(which).deleted_count:
                removed.append(event_id)
        return removed

    def scheduled_for_later(self, tenant: str, now: datetime, *, most: int) -> int:
        """Returns how many of the tenant's messages wait for an instant after `now`, at most `most`."""
        which = {
            "tenant": tenant,
            "kind": Kind.MESSAGE.value,
            "run_time": {"$gt": now},
            "due_at": {"$exists": True},
        }
        return self._events.count_documents(which, hint="messages_v1", limit=most)

    def unsent(
        self,
        tenants: Collection[str],
        event_names: Collection[str],
        *,
        made_after: datetime,
        due_by: datetime,
        limit: int,
    ) -> list[str]:
        """The ids of messages of these names that are due since `due_by` or before, and that no worker has
        claimed; of each tenant `limit` at most, those that were made last first."""
        found: list[str] = []
        for tenant in sorted(tenants):
            which = {
                "tenant": tenant,
                "kind": Kind.MESSAGE.value,
                "event_name": {"$in": sorted(event_names)},
                "run_time": {"$gt": made_after},
                "due_at": {"$lte": due_by},
                "state": {"$in": sorted(UNCLAIMED)},
            }
            rows = self._events.find(which, {"_id": 1}, hint="message_names_v1").limit(limit)
            found += [row["_id"] for row in rows]
        return found

    def reschedule(
        self,
        event_id: str,
        run_time: datetime,
        due_at: datetime,
        now: datetime,
        message: str,
    ) -> bool:
        """Moves a message that no worker has claimed to another time; False for every other. Attempts that
        were made count on. `due_at` is `run_time`, or later where that has passed."""
        written = update_or_set_aside(
            self._events,
            {"_id": event_id, "kind": Kind.MESSAGE.value, "state": source_states("reschedule")},
            [
                {
                    "$set": {
                        "state": State.READY_QUEUE,
                        "due_at": due_at,
                        "run_time": run_time,
                        "due_since": due_at,
                        "status": appended("status", line_of_act(now, State.READY_QUEUE, message)),
                    }
                },
                # A message of the broker that was sent for the old time finds nothing that is due.
                {"$unset": ["dispatcher", "postponed_from", "held"]},
            ],
        )
        return written.matched == 1

    def page(
        self,
        tenant: str,
        window: PageRequest,
        *,
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
            if event_name is None:
                which["action.destination"], hint = destination, "message_destinations_v1"
            else:
                fits.append({"$eq": ["$action.destination", {"$literal": destination}]})
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


def _new_record(event: Event, document: Document) -> MessageRecord:
    """The record of a message that was stored as `event` says, without reading its document again."""
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
    return MessageRecord(record, _content(event), event.queue)


log = get_logger(__name__)


class EventOwingNotification(NamedTuple):
    """An event whose notification is still to be made."""

    event: EventRecord
    owed: OwedNotification
    redriven: bool
    """It was sent again after an earlier end, which may have been told of."""
    mark: Mapping[str, Any]
    """The mark as it is stored."""
    own: Mapping[Notifying, str]
    """The destinations that a message itself names; none for the event of a schedule."""


class OwedNotifications:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._majority = mongo.majority("events")

    def oldest(self, *, limit: int) -> tuple[list[EventOwingNotification], int]:
        """Returns up to `limit` events, those that ended first, and how many of the index were looked at. A
        corrupt mark is removed, with an error in the log."""
        rows = list(
            self._majority.find({"notify.since": {"$exists": True}}, hint=OWED_NOTIFICATIONS)
            .sort("notify.since", 1)
            .limit(limit)
            .batch_size(limit)
        )
        found: list[EventOwingNotification] = []
        for row in rows:
            try:
                found.append(_event_owing_notification(row))
            except Corrupt as error:
                self._discard(row, error)
        return found, len(rows)

    def remove_marks(self, those: Sequence[EventOwingNotification]) -> None:
        """Removes their marks: their notifications are made. A mark of a later end stays."""
        if those:
            self._events.bulk_write(
                [
                    UpdateOne({"_id": each.event.id, "notify": each.mark}, {"$unset": {"notify": ""}})
                    for each in those
                ],
                ordered=False,
            )

    def _discard(self, row: Document, error: Corrupt) -> None:
        self._events.update_one({"_id": {"$eq": row["_id"]}}, {"$unset": {"notify": ""}})
        log.error(
            "notify.corrupt",
            message="The notification that an event owes is corrupt and was removed; it is not sent",
            event_id=str(row["_id"])[:200],
            reason=str(error),
        )


def _event_owing_notification(row: Document) -> EventOwingNotification:
    """Raises Corrupt."""
    return EventOwingNotification(
        event=to_record(row),
        owed=read_owed_notification(row["notify"], "notify"),
        redriven=row.get("redrive") is not None,
        mark=row["notify"],
        own=read_notifies(row.get("notifies")),
    )
