"""What people and programs do with messages: schedule them, one or many, show, cancel and reschedule them."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from scheduler_app.domain.action import Action
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound, QuotaExceeded
from scheduler_app.domain.event import FINAL, Event, Kind, State
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.message import Message, MessageDraft, Timing
from scheduler_app.domain.message_ids import message_event_id, message_id_of
from scheduler_app.domain.signing import Signing
from scheduler_app.store import Store
from scheduler_app.store.events.messages import MessageRecord
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.claimed_cancellation import cancel_claimed
from scheduler_app.usecases.message_quota import MessageQuota
from scheduler_app.usecases.message_requests import MessageRequest
from scheduler_app.usecases.named_destination import (
    Known,
    deleted_meanwhile,
    names_deleted,
)

#: Why a message of a bulk was not made.
Refusal = InvalidField | Conflict | QuotaExceeded

log = get_logger(__name__)

CANCELLED = "Cancelled by a person or program"


class Scheduled(NamedTuple):
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
        draft: MessageDraft,
        now: datetime,
        *,
        tenant: str,
        request_seed: str | None = None,
        hops: int = 0,
    ) -> Scheduled:
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
            there = self.store.messages.get(event.id, tenant=tenant)
            if there is None:
                raise self._no_room()
            return _the_first(event, there)
        record = self.store.messages.insert(event, now)
        if record is None:
            if later:
                self.quota.give_back(tenant, 1)
            there = self.store.messages.get(event.id, tenant=tenant)
            return _the_first(event, there)
        for error in self._undone([event], request.known, tenant).values():
            raise error
        self.dispatch([event], now)
        return _made(record)

    def schedule_many(
        self,
        drafts: Sequence[MessageDraft],
        now: datetime,
        *,
        tenant: str,
        request_seed: str | None = None,
        hops: int = 0,
    ) -> list[Scheduled | Refusal]:
        """`schedule` for many at once: for each its result, or the error that `schedule` would raise."""
        results: list[Scheduled | Refusal | None] = [None] * len(drafts)
        wanted: list[tuple[int, Event]] = []
        request = self._request(tenant)
        for number, draft in enumerate(drafts):
            try:
                seed = f"{request_seed}-{number}" if request_seed else None
                wanted.append((number, self._event(draft, now, tenant, seed, hops, request)))
            except InvalidField as error:
                results[number] = error
        wanted = self._within_quota(wanted, results, now, tenant)
        records = self.store.messages.insert_many([event for _, event in wanted], now)
        taken = [event.id for (_, event), record in zip(wanted, records, strict=True) if record is None]
        there = self.store.messages.get_many(taken, tenant=tenant)
        self.quota.give_back(tenant, sum(event.id in taken and event.due_at > now for _, event in wanted))
        made: list[Event] = []
        for (number, event), record in zip(wanted, records, strict=True):
            if record is not None:
                made.append(event)
                results[number] = _made(record)
                continue
            try:
                results[number] = _the_first(event, there.get(event.id))
            except Conflict as error:
                results[number] = error
        if undone := self._undone(made, request.known, tenant):
            made = [event for event in made if event.id not in undone]
            for number, event in wanted:
                results[number] = undone.get(event.id, results[number])
        if made:
            self.dispatch(made, now)
        return [each for each in results if each is not None]

    def _undone(self, made: Sequence[Event], known: Known, tenant: str) -> dict[str, InvalidField]:
        """Removes those messages again that name a destination which was deleted meanwhile; returns why, by
        their events' ids. One that a worker has claimed by now stays."""
        if not known:
            return {}
        deleted = names_deleted(self.store, known)
        fields = {
            event.id: field
            for event in made
            if isinstance(event.message, Message) and (field := deleted(event.message, tenant))
        }
        removed = self.store.messages.remove_untouched(list(fields), tenant=tenant) if fields else []
        return {event_id: deleted_meanwhile(fields[event_id]) for event_id in removed}

    def _within_quota(
        self,
        wanted: Sequence[tuple[int, Event]],
        results: list[Scheduled | Refusal | None],
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
        there = self.store.messages.get_many([event.id for _, event in refused], tenant=tenant)
        for number, event in refused:
            try:
                results[number] = _the_first(event, there[event.id]) if event.id in there else self._no_room()
            except Conflict as error:
                results[number] = error
        return taken

    def _no_room(self) -> QuotaExceeded:
        return QuotaExceeded(
            f"there are {self.quota.most} messages scheduled for later, as many as MAX_MESSAGES allows:"
            " cancel some, wait until some are delivered, or ask an operator for more"
        )

    def get(self, message_id: str, *, tenant: str) -> MessageRecord:
        """Raises NotFound."""
        return self._get(message_event_id(message_id, tenant=tenant), tenant)

    def cancel(self, message_id: str, now: datetime, *, tenant: str) -> MessageRecord:
        """Cancels a message whose request has not begun; one that is cancelled already stays as it is.

        Raises NotFound; Conflict where its request is in flight, or it was delivered.
        """
        event_id = message_event_id(message_id, tenant=tenant)
        if self.store.cancellations.cancel(event_id, now, CANCELLED, tenant=tenant):
            return self._get(event_id, tenant)
        record = self._get(event_id, tenant)
        if record.event.state is State.RUNNING:
            cancel_claimed(self.store, event_id, CANCELLED, tenant=tenant)
            record = self._get(event_id, tenant)
        if record.event.state is not State.CANCELLED:
            raise _too_late(record, "cancelled")
        return record

    def reschedule(self, message_id: str, timing: Timing, now: datetime, *, tenant: str) -> MessageRecord:
        """Moves a message that no worker has claimed to another time. Raises InvalidField, NotFound, and
        Conflict where its request is in flight, or its history is final."""
        event_id, instant = message_event_id(message_id, tenant=tenant), timing.instant(now)
        why = f"Rescheduled to {shown_instant(instant)} by a person or program"
        moved = self.store.messages.reschedule(event_id, instant, max(instant, now), now, why, tenant=tenant)
        record = self._get(event_id, tenant)
        if not moved:
            raise _too_late(record, "rescheduled")
        if record.event.due_at is not None:
            self.dispatch([_waiting(record, record.event.due_at)], now)
        return record

    def _get(self, event_id: str, tenant: str) -> MessageRecord:
        record = self.store.messages.get(event_id, tenant=tenant)
        if record is None:
            raise NotFound(
                f"there is no message {message_id_of(event_id)[:128]}; it may be beyond the retention"
            )
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
            id=message_event_id(draft.id or request_seed or secrets.token_hex(12), tenant=tenant),
            schedule_id="",
            revision=1,
            run_time=instant,
            # A time that has passed is no lateness of ours.
            due_at=max(instant, now),
            due_since=now if message.lateness.judges and instant < now else None,
            kind=Kind.MESSAGE,
            origin=common.origin,
            queue=common.queue,
            hops=hops,
            message=replace(message, hops=hops) if hops else message,
        )


def _made(record: MessageRecord) -> Scheduled:
    content = record.content
    signing = content.signing if isinstance(content, Message) else None
    return Scheduled(record, created=True, signing_secret=signing.secret if signing else None)


def _the_first(event: Event, there: MessageRecord | None) -> Scheduled:
    """The message that has the id already, if it asks for the same. Raises Conflict."""
    message_id = message_id_of(event.id)
    if there is None:
        raise Conflict(f"the message {message_id} was removed at this moment; send the request again")
    if not isinstance(there.content, Message) or not isinstance(event.message, Message):
        raise Conflict(
            f"there is a message {message_id} already, and its content cannot be compared; take another id"
        )
    if not event.message.same_content(there.content):
        raise Conflict(
            f"there is a message {message_id} already, with other content: cancel or reschedule that one, or"
            " take another id"
        )
    return Scheduled(there, created=False)


def _too_late(record: MessageRecord, what: str) -> Conflict:
    state = record.event.state
    why = "its history is final" if state in FINAL else "its request is in flight, or about to be"
    return Conflict(f"the message is {state}: {why}, and it cannot be {what}")


def _waiting(record: MessageRecord, due_at: datetime) -> Event:
    """The event of a stored message that waits, as dispatch needs it."""
    content = record.content
    event = Event(record.event.id, "", 1, record.event.run_time, due_at, Kind.MESSAGE)
    if not isinstance(content, Message):
        return event
    return event._replace(origin=content.action.isolation_key, queue=record.queue)
