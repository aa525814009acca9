"""What people and programs do with messages: schedule them, one or many, show, cancel and reschedule them.

`MessageQuota` says how many a tenant may have that are scheduled for later; `MessageRequest` makes and
checks once what the messages of one request have in common.
"""

import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from scheduler_app.clock import monotonic
from scheduler_app.domain.action import Action
from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound, QuotaExceeded
from scheduler_app.domain.event import Event
from scheduler_app.domain.ids import message_event_id, message_id_of
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.message import DEFAULT_MESSAGE_METHOD, Message, Timing
from scheduler_app.domain.message_draft import MessageDraft
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.domain.states import FINAL, Kind, State
from scheduler_app.store import Store
from scheduler_app.store.acting import current_act
from scheduler_app.store.events.messages import MessageRecord
from scheduler_app.store.paging import Page, PageRequest
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.deeds.events import FINISHED, IN_FLIGHT, cancel_claimed
from scheduler_app.usecases.deeds.named import (
    KnownDestinations,
    check_named_destination,
    check_notified_destinations,
    deleted_destination_finder,
    destination_deleted_error,
)
from scheduler_app.usecases.quotas import QuotaRoom, message_room

#: How long a count is used: at least this, and this many times as long as counting took, which is then 2 %
#: of a thread.
COUNT_LEAST_SECONDS = 1.0
COUNT_TIMES_ITS_COST = 50
#: Tenants whose counts are kept; with more of them all counts are dropped.
MOST_TENANTS = 1_000


class _Count(NamedTuple):
    number: int
    until: float


class MessageQuota:
    """The room that tenants have, from a count that is some seconds old, and what this process made since.

    Several processes may together exceed the quota by what they make in those seconds. Threads share it.
    """

    def __init__(self, store: Store, most: int, *, elapsed: Callable[[], float] = monotonic) -> None:
        """`most` messages for each tenant; 0: as many as they like, and nothing is counted. `elapsed` gives
        seconds."""
        self._messages = store.messages
        self.most = most
        self._elapsed = elapsed
        self._counts: dict[str, _Count] = {}
        self._lock = threading.Lock()

    def take(self, tenant: str, wanted: int, now: datetime) -> int:
        """Returns how many of `wanted` messages for later there is room for, and counts them as made. Raises
        a STORE_FAULT."""
        if not self.most:
            return wanted
        found = self._counts.get(tenant)
        if found is None or self._elapsed() >= found.until:
            began = self._elapsed()
            number = self._messages.scheduled_for_later(tenant, now, most=self.most)
            ended = self._elapsed()
            found = _Count(number, ended + max(COUNT_LEAST_SECONDS, COUNT_TIMES_ITS_COST * (ended - began)))
        with self._lock:
            if len(self._counts) >= MOST_TENANTS:
                self._counts = {}
            newer = self._counts.get(tenant)
            if newer is not None and newer.until >= found.until:
                found = newer
            taken = max(0, min(wanted, self.most - found.number))
            self._counts[tenant] = found._replace(number=found.number + taken)
        return taken

    def give_back(self, tenant: str, number: int) -> None:
        """Takes back what `take` has counted for messages that were not made."""
        with self._lock:
            found = self._counts.get(tenant)
            if found is not None:
                self._counts[tenant] = found._replace(number=max(0, found.number - number))


class MessageTemplate(NamedTuple):
    """What messages have in common that share a draft's request."""

    message: Message
    """Without what is each message's own."""
    origin: str
    queue: str
    """The one that their events are made in."""


class MessageRequest:
    """One request for messages, of one tenant. It keeps what it has read and checked for the last of them."""

    def __init__(
        self, store: Store, tenant: str, *, max_retries: int, check_action: Callable[[Action], None]
    ) -> None:
        """`max_retries` is for messages that name none. `check_action` raises InvalidField for a request that
        must not be made."""
        self.known: KnownDestinations = {}
        self._store = store
        self._tenant = tenant
        self._max_retries = max_retries
        self._check_action = check_action
        self._last: tuple[ScheduleDraft, MessageTemplate] | None = None

    def common(self, draft: MessageDraft) -> MessageTemplate:
        """What the draft's message has in common with all that share `draft.draft`. Raises InvalidField."""
        if self._last is None or self._last[0] is not draft.draft:
            self._last = draft.draft, self._checked(draft)
        return self._last[1]

    def _checked(self, draft: MessageDraft) -> MessageTemplate:
        common = draft.common(self._tenant, max_retries=self._max_retries)
        action = common.action
        self._check_action(action)
        check_named_destination(self._store, action, self.known, default_method=DEFAULT_MESSAGE_METHOD)
        check_notified_destinations(self._store, self._tenant, common, self.known)
        named = self.known.get(action.destination or "")
        queue = named.queue_for(common.queue) if isinstance(named, Destination) else common.queue
        return MessageTemplate(common, action.isolation_key, queue)


#: Why a message of a bulk was not made.
Refusal = InvalidField | Conflict | QuotaExceeded

log = get_logger(__name__)

CANCELLED = "Cancelled by a person or program"


class ScheduleMessageResult(NamedTuple):
    """The result of a request for a message."""

    record: MessageRecord
    created: bool
    """False where an earlier request had made it."""
    signing_secret: str | None = None
    """The secret that was generated for it; None also where it was made before."""


@dataclass(frozen=True)
class MessageService:
    """What people and programs do with messages.

    `dispatch` dispatches those that are due within the horizon; its failures are ignored, because the next
    tick of a beat does the same. `check_action` raises InvalidField for a request that must not be made.
    """

    store: Store
    dispatch: Callable[[Sequence[Event], datetime], None]
    max_retries: int
    check_action: Callable[[Action], None]
    new_secret: Callable[[], str]
    quota: MessageQuota

    def schedule(
        self,
        tenant: str,
        draft: MessageDraft,
        now: datetime,
        *,
        request_seed: str | None = None,
        hops: int = 0,
    ) -> ScheduleMessageResult:
        """Schedules a tenant's message. The same content under the same id is scheduled once.

        A request that may be begun again after a crash has a `request_seed`, which becomes the id unless the
        draft has one. `hops` are those of the request. Raises InvalidField, Conflict where the id is another
        message's, and QuotaExceeded.
        """
        request = self._request(tenant)
        event = self._event(draft, now, tenant, request_seed, hops, request)
        later = event.due_at > now
        if later and not self.quota.take(tenant, 1, now):
            # Messages that an earlier try made are in the answer all the same.
            existing = self.find(event.id)
            if existing is None:
                raise self._no_room()
            return _existing_result(event, existing)
        with self._room(tenant, 1, now) as room:
            record = None if room.refusal else self.store.messages.insert(event, now)
            room.made = int(record is not None)
        if record is None:
            if later:
                self.quota.give_back(tenant, 1)
            existing = self.find(event.id)
            if existing is None and room.refusal:
                raise room.refusal
            return _existing_result(event, existing)
        for error in self._undone([event], request.known).values():
            raise error
        self.dispatch([event], now)
        return _created_result(record)

    def adopt(self, event: Event, message: Message, now: datetime) -> bool:
        """Stores a message that waited in another installation; False where there is one of its id. Raises
        InvalidField and QuotaExceeded."""
        known: KnownDestinations = {}
        self.check_action(message.action)
        check_named_destination(self.store, message.action, known, default_method=DEFAULT_MESSAGE_METHOD)
        check_notified_destinations(self.store, event.tenant, message, known)
        if self.find(event.id) is not None:
            return False
        later = event.due_at > now
        if later and not self.quota.take(event.tenant, 1, now):
            raise self._no_room()
        with self._room(event.tenant, 1, now) as room:
            is_new = room.refusal is None and self.store.messages.insert(event, now) is not None
            room.made = int(is_new)
        if not is_new:
            if later:
                self.quota.give_back(event.tenant, 1)
            if room.refusal is not None:
                raise room.refusal
            return False
        for error in self._undone([event], known).values():
            raise error
        self.dispatch([event], now)
        return True

    def schedule_many(
        self,
        tenant: str,
        drafts: Sequence[MessageDraft],
        now: datetime,
        *,
        request_seed: str | None = None,
        hops: int = 0,
    ) -> list[ScheduleMessageResult | Refusal]:
        """`schedule` for many at once: for each its result, or the error that `schedule` would raise."""
        results: list[ScheduleMessageResult | Refusal | None] = [None] * len(drafts)
        wanted: list[tuple[int, Event]] = []
        request = self._request(tenant)
        for number, draft in enumerate(drafts):
            try:
                seed = f"{request_seed}-{number}" if request_seed else None
                wanted.append((number, self._event(draft, now, tenant, seed, hops, request)))
            except InvalidField as error:
                results[number] = error
        wanted = self._within_quota(wanted, results, now, tenant)
        with self._room(tenant, len(wanted), now) as room:
            if room.refusal:
                wanted = self._within_room(wanted, results, room, tenant, now)
            records = self.store.messages.insert_many([event for _, event in wanted], now)
            room.made = sum(record is not None for record in records)
        taken = [event.id for (_, event), record in zip(wanted, records, strict=True) if record is None]
        existing = self.store.messages.get_many(taken)
        self.quota.give_back(tenant, sum(event.id in taken and event.due_at > now for _, event in wanted))
        created: list[Event] = []
        for (number, event), record in zip(wanted, records, strict=True):
            if record is not None:
                created.append(event)
                results[number] = _created_result(record)
                continue
            try:
                results[number] = _existing_result(event, existing.get(event.id))
            except Conflict as error:
                results[number] = error
        if undone := self._undone(created, request.known):
            created = [event for event in created if event.id not in undone]
            for number, event in wanted:
                results[number] = undone.get(event.id, results[number])
        if created:
            self.dispatch(created, now)
        return [each for each in results if each is not None]

    def _undone(self, created: Sequence[Event], known: KnownDestinations) -> dict[str, InvalidField]:
        """Removes those messages again that name a destination which was deleted meanwhile; returns why, by
        their events' ids. One that a worker has claimed by now stays."""
        if not known:
            return {}
        deleted = deleted_destination_finder(self.store, known)
        fields = {
            event.id: field
            for event in created
            if isinstance(event.message, Message) and (field := deleted(event.message, event.tenant))
        }
        removed = self.store.messages.remove_untouched(list(fields)) if fields else []
        return {event_id: destination_deleted_error(fields[event_id]) for event_id in removed}

    def _room(self, tenant: str, wanted: int, now: datetime) -> AbstractContextManager[QuotaRoom]:
        """Room for so many more messages of this day."""
        limit = current_act().limits.messages_per_day
        if limit is None:
            return nullcontext(QuotaRoom(wanted))
        return message_room(self.store, tenant, limit, wanted, now)

    def _within_room(
        self,
        wanted: Sequence[tuple[int, Event]],
        results: list[ScheduleMessageResult | Refusal | None],
        room: QuotaRoom,
        tenant: str,
        now: datetime,
    ) -> list[tuple[int, Event]]:
        """Those that there is room for, the first ones first, and those that are there already: they need
        none. The results of the others are put into `results`."""
        there = self.store.messages.get_many([event.id for _, event in wanted])
        taken: list[tuple[int, Event]] = []
        left = room.granted
        for number, event in wanted:
            if event.id in there or left > 0:
                left -= event.id not in there
                taken.append((number, event))
            else:
                results[number] = room.refusal
                self.quota.give_back(tenant, int(event.due_at > now))
        return taken

    def _within_quota(
        self,
        wanted: Sequence[tuple[int, Event]],
        results: list[ScheduleMessageResult | Refusal | None],
        now: datetime,
        tenant: str,
    ) -> list[tuple[int, Event]]:
        """The messages that may be made; the results of the others are put into `results`."""
        room = self.quota.take(tenant, sum(event.due_at > now for _, event in wanted), now)
        taken: list[tuple[int, Event]] = []
        refused: list[tuple[int, Event]] = []
        for number, event in wanted:
            later = event.due_at > now
            (refused if later and not room else taken).append((number, event))
            room -= later and room > 0
        existing = self.store.messages.get_many([event.id for _, event in refused])
        for number, event in refused:
            try:
                results[number] = (
                    _existing_result(event, existing[event.id]) if event.id in existing else self._no_room()
                )
            except Conflict as error:
                results[number] = error
        return taken

    def _no_room(self) -> QuotaExceeded:
        return QuotaExceeded(
            f"there are {self.quota.most} messages scheduled for later, as many as MAX_MESSAGES allows:"
            " cancel some, wait until some are delivered, or ask an operator for more"
        )

    def page(self, tenant: str, window: PageRequest, **choice: Any) -> Page[MessageRecord]:
        """The messages that match, as `Messages.page` of the store has them."""
        return self.store.messages.page(tenant, window, **choice)

    def find(self, event_id: str) -> MessageRecord | None:
        """The message that the event is."""
        return self.store.messages.get(event_id)

    def get(self, event_id: str) -> MessageRecord:
        """The message whose event has that id. Raises NotFound."""
        record = self.find(event_id)
        if record is None:
            raise NotFound(
                f"there is no message {message_id_of(event_id)[:128]}; it may be beyond the retention"
            )
        return record

    def cancel(self, event_id: str, now: datetime) -> MessageRecord:
        """Cancels a message whose request has not begun; one that is cancelled already stays as it is.

        Raises NotFound; Conflict where its request is in flight, it was delivered, or its worker does not say
        in time.
        """
        if self.store.cancellations.cancel(event_id, now, CANCELLED):
            return self.get(event_id)
        record, why = self.get(event_id), IN_FLIGHT
        if record.event.state is State.RUNNING:
            why = cancel_claimed(self.store, event_id, CANCELLED)
            record = self.get(event_id)
        state = record.event.state
        if state is not State.CANCELLED:
            raise Conflict(f"the message is {state}: {FINISHED if state in FINAL else why}")
        return record

    def reschedule(self, event_id: str, timing: Timing, now: datetime) -> MessageRecord:
        """Moves a message that no worker has claimed to another time. Raises InvalidField, NotFound, and
        Conflict where its request is in flight, or its history is final."""
        instant = timing.instant(now)
        why = f"Rescheduled to {shown_instant(instant)} by a person or program"
        moved = self.store.messages.reschedule(event_id, instant, max(instant, now), now, why)
        record = self.get(event_id)
        if not moved:
            state = record.event.state
            why = "its history is final" if state in FINAL else "its request is in flight, or about to be"
            raise Conflict(f"the message is {state}: {why}, and it cannot be rescheduled")
        if record.event.due_at is not None:
            self.dispatch([_waiting_event(record, record.event.due_at)], now)
        return record

    def _request(self, tenant: str) -> MessageRequest:
        return MessageRequest(
            self.store, tenant, max_retries=self.max_retries, check_action=self.check_action
        )

    def _event(
        self,
        draft: MessageDraft,
        now: datetime,
        tenant: str,
        request_seed: str | None,
        hops: int,
        request: MessageRequest,
    ) -> Event:
        """The event that the new message is. Raises InvalidField."""
        common = request.common(draft)
        message = draft.with_own_parts(common.message)
        instant = message.timing.instant(now)
        if draft.draft.signing is True:
            message = replace(message, signing=Signing(self.new_secret(), now))
        return Event(
            id=message_event_id(tenant, draft.id or request_seed or secrets.token_hex(12)),
            schedule_id="",
            revision=1,
            run_time=instant,
            # A time that had passed already does not count as late.
            due_at=max(instant, now),
            due_since=now if message.lateness.judges and instant < now else None,
            kind=Kind.MESSAGE,
            origin=common.origin,
            queue=common.queue,
            hops=hops,
            message=replace(message, hops=hops) if hops else message,
        )


def _created_result(record: MessageRecord) -> ScheduleMessageResult:
    content = record.content
    signing = content.signing if isinstance(content, Message) else None
    return ScheduleMessageResult(record, created=True, signing_secret=signing.secret if signing else None)


def _existing_result(event: Event, existing: MessageRecord | None) -> ScheduleMessageResult:
    """The message that has the id already, if it asks for the same. Raises Conflict."""
    message_id = message_id_of(event.id)
    if existing is None:
        raise Conflict(f"the message {message_id} was removed at this moment; send the request again")
    if not isinstance(existing.content, Message) or not isinstance(event.message, Message):
        raise Conflict(
            f"there is a message {message_id} already, and its content cannot be compared; take another id"
        )
    if not event.message.same_content(existing.content):
        raise Conflict(
            f"there is a message {message_id} already, with other content: cancel or reschedule that one, or"
            " take another id"
        )
    return ScheduleMessageResult(existing, created=False)


def _waiting_event(record: MessageRecord, due_at: datetime) -> Event:
    """The event of a stored message that waits, as dispatch needs it."""
    content = record.content
    event = Event(record.event.id, "", 1, record.event.run_time, due_at, Kind.MESSAGE)
    if not isinstance(content, Message):
        return event
    return event._replace(origin=content.action.isolation_key, queue=record.queue)
