"""A rule of notifications: which causes are told, when, and to whom; and what is owed of a cause.

A rule tells of a cause once when it has lasted for a while, once when it is over, and in between as often as
it reminds. What is told is a message of our own engine, whose id is derived from the cause, the rule and
the change: however often it is made, it is sent once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from scheduler_app.domain.calendars import CalendarUse
from scheduler_app.domain.cause import FACTS, Cause, CauseKind, Touched, subject_shown
from scheduler_app.domain.cause_match import EVERYTHING, CauseMatch
from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.http_action import HttpAction, RequestBody
from scheduler_app.domain.ids import (
    WholeId,
    is_message,
    is_notification,
    message_id_of,
    name_of,
    tenant_of,
    whole_id,
)
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.masking import MASK, has_masked_query, masked_url, unmasked_url
from scheduler_app.domain.notice_action import ChannelKind, NoticeAction
from scheduler_app.domain.recurrence import AnyRecurrence
from scheduler_app.domain.triggers import Given, Trigger, TriggerContext, new_trigger

MAX_RULES: Final = 100
MAX_CHANNELS: Final = 10
AFTER_SECONDS: Final = 60.0
MAX_AFTER_SECONDS: Final = 86_400.0
LEAST_REMIND_SECONDS: Final = 300.0
MAX_REMIND_SECONDS: Final = 30 * 86_400.0
#: For each rule, of beginnings (with reminders) and of ends. The last one stands for all that are left.
MAX_AN_HOUR: Final = 20
HOUR: Final = timedelta(hours=1)
#: What is left over waits for so long, so that one message can say how many there are.
GATHERING: Final = timedelta(seconds=20)
#: Of a message: what it names of each kind.
MOST_NAMED: Final = 20
_TICK: Final = timedelta(microseconds=1)


class Told(StrEnum):
    """What a rule may tell: that a cause of a kind began, that a failure has dead letters, or is over."""

    FAILING = "failing"
    LATE = "late"
    STALLED = "stalled"
    UNSERVED = "unserved"
    MISSED = "missed"
    OVERRUNNING = "overrunning"
    NOT_COMPLETED = "not_completed"
    NO_SUCCESS = "no_success"
    KEY_EXPIRING = "key_expiring"
    PAUSED_BY_FAILURES = "paused_by_failures"
    BREAKER = "breaker"
    SET_ASIDE = "stored_document_set_aside"
    FINISHED = "finished"
    KILL_SWITCH = "kill_switch"
    MACHINERY = "machinery"
    DEAD_LETTER = "dead_letter"
    RECOVERED = "recovered"


#: Unless a rule says otherwise: what a failing receiver leads to is told as its failure, and facts are not.
USUAL: Final = tuple(
    each for each in Told if each not in (Told.DEAD_LETTER, Told.BREAKER, Told.FINISHED, Told.KILL_SWITCH)
)


@dataclass(frozen=True, slots=True)
class NotificationChannel:
    """One way to somebody."""

    kind: ChannelKind
    address: str = field(repr=False)
    """A URL, in which there may be a secret, or a mailbox."""

    @property
    def shown(self) -> str:
        """The address as answers show it: of a service its scheme alone, because any part of it may be a
        secret there."""
        if self.kind is ChannelKind.EMAIL:
            return self.address
        if self.kind is ChannelKind.WEBHOOK:
            return masked_url(self.address)
        return f"{self.address.partition('://')[0]}://{MASK}"

    @property
    def is_masked(self) -> bool:
        """Whether it came back from a reader."""
        if self.kind is ChannelKind.WEBHOOK:
            return has_masked_query(self.address)
        return self.kind is ChannelKind.APPRISE and self.address.endswith(f"://{MASK}")

    def unmasked(self, known: "NotificationChannel") -> "NotificationChannel | None":
        """This one with the secrets of a known one, where its masks may stand for them."""
        if self.kind is not known.kind:
            return None
        if self.kind is not ChannelKind.WEBHOOK:
            return known if known.shown == self.address else None
        try:
            return replace(self, address=unmasked_url(self.address, known.address))
        except KeyError:
            return None

    def trial(self) -> HttpAction | NoticeAction:
        """An action to it, by which its address can be judged."""
        if self.kind is ChannelKind.WEBHOOK:
            return HttpAction(url=self.address, method="POST")
        return NoticeAction.to(self.kind, self.address, "", "")


#: The triggers that may say when a rule may ring.
HOURS_KINDS: Final = ("rrule", "cron", "phrase")
MAX_HOURS: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class NotificationHours:
    """When a rule may ring: each occurrence of the trigger begins a window, but on closed days."""

    trigger: Trigger
    duration: timedelta
    since: datetime
    calendar: CalendarUse | None = None

    @classmethod
    def of(
        cls, given: Given, duration: timedelta, now: datetime, timezone: str, calendar: str | None = None
    ) -> "NotificationHours":
        """The calendar is named alone. Raises InvalidField."""
        if not any(given.get(kind) is not None for kind in HOURS_KINDS):
            raise InvalidField("hours", f"needs exactly one of {', '.join(HOURS_KINDS)}")
        since = now - duration - timedelta(days=1)
        context = TriggerContext(since, timezone=timezone, calendar=calendar is not None)
        return cls(new_trigger(given, context), duration, since).observing(calendar)

    def observing(self, calendar: str | None) -> "NotificationHours":
        """The same with the closed days of a calendar, which is not known yet."""
        use = calendar and CalendarUse(calendar, self.trigger.on_holiday or "skip")
        return replace(self, calendar=use or None)

    def check(self, now: datetime) -> None:
        """Raises InvalidField where it would never ring."""
        if not self.may_ring(now) and self._recurrence().after(now) is None:
            raise InvalidField("hours", "has no time from now on at which it may ring")

    def may_ring(self, at: datetime) -> bool:
        return bool(self._recurrence().between(at - self.duration + _TICK, at + _TICK, limit=1))

    def _recurrence(self) -> AnyRecurrence:
        """If the calendar is unknown, no day is closed: a message too many is better than none."""
        found = self.trigger.recurrence(self.since)
        return (
            found
            if self.calendar is None or self.calendar.known is None
            else self.calendar.observed_by(found)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationRule:
    """As it is stored, under the name that its tenant gave it."""

    id: WholeId
    to: tuple[NotificationChannel, ...]
    on: tuple[Told, ...] = USUAL
    match: CauseMatch = EVERYTHING
    after_seconds: float = AFTER_SECONDS
    remind_seconds: float | None = None
    hours: NotificationHours | None = None
    signing: Signing | None = None
    """The secret that its webhooks are signed with."""
    created_at: datetime

    @property
    def name(self) -> str:
        return name_of(self.id)

    @property
    def tenant(self) -> str:
        return tenant_of(self.id)

    def says_the_same(self, other: "NotificationRule") -> bool:
        """Whether the other one was given in the same words, whenever that was."""
        return self._words() == other._words()

    def _words(self) -> object:
        hours = self.hours
        closed = hours and hours.calendar and hours.calendar.name
        said = hours and (dict(hours.trigger.written), hours.trigger.timezone, hours.duration, closed)
        return self.to, self.on, self.match, self.after_seconds, self.remind_seconds, said

    def may_ring(self, now: datetime) -> bool:
        return self.hours is None or self.hours.may_ring(now)

    def owed(self, cause: Cause, begun: "Telling | None", now: datetime) -> str | None:
        """The change of a cause that is not over which is to be told now; None if none is. `begun` is what
        was told of it last, other than its dead letters."""
        if cause.dismissed_at is not None or is_of_notifications(cause) or not self.match.covers(cause):
            return None
        if begun is None:
            is_old = now - cause.since >= timedelta(seconds=self.after_seconds)
            return BEGIN if Told(cause.key.kind.value) in self.on and is_old else None
        if self.remind_seconds is None or cause.key.kind in FACTS:
            return None
        number = int((now - begun.told_at).total_seconds() // self.remind_seconds)
        return f"{REMINDER}{number}" if number > begun.reminders else None

    def owes_dead_letters(self, cause: Cause) -> bool:
        """Whether it tells that events of this cause have given up."""
        return (
            Told.DEAD_LETTER in self.on
            and cause.has_dead_letters
            and cause.dismissed_at is None
            and not is_of_notifications(cause)
            and self.match.covers(cause)
        )


#: Changes of a cause, as ids of what is told name them.
BEGIN: Final = "begin"
END: Final = "end"
DEAD: Final = "dead"
REMINDER: Final = "reminder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """That a rule tells of one change of one cause: written before its message is made, so that no crash
    separates the two."""

    rule_id: WholeId
    cause_id: str
    change: str
    told_at: datetime
    message: str
    """What the ids of its messages are derived from; several causes share one where an hour is full."""
    reminders: int = 0
    """Of a beginning: the last reminder's number."""

    @property
    def id(self) -> str:
        return f"{self.rule_id}/{self.change}/{self.cause_id}"


def is_of_notifications(cause: Cause) -> bool:
    """Whether notifications themselves fail: that is seen in the status, and told by no notification."""
    return (
        cause.key.kind is CauseKind.FAILING
        and not cause.schedules.count
        and is_message(cause.event_id)
        and is_notification(message_id_of(cause.event_id))
    )


def message_name(rule_id: WholeId, cause_id: str, change: str) -> str:
    """What the ids of the messages are derived from that tell of one change of one cause."""
    return whole_id(tenant_of(rule_id), f"{name_of(rule_id)}-{name_of(cause_id)}-{change}")


def webhook(channel: NotificationChannel, kind: str, now: datetime, data: Mapping[str, Any]) -> HttpAction:
    """The request: its body is as Standard Webhooks wants it."""
    body = {"type": kind, "timestamp": shown_instant(now), "data": dict(data)}
    return HttpAction(
        url=channel.address,
        method="POST",
        headers=(("Content-Type", "application/json"),),
        body=RequestBody.from_json(body),
    )


_TYPES: Final = {
    BEGIN: "failure.began",
    REMINDER: "failure.reminder",
    DEAD: "failure.dead_letters",
    END: "failure.over",
}
TEST_TYPE: Final = "test"
#: The `event_name` of each message that a rule sends.
MESSAGE_TYPES: Final = (*_TYPES.values(), TEST_TYPE)


def event_type(change: str) -> str:
    """The `type` of a message about a change."""
    return _TYPES[REMINDER if change.startswith(REMINDER) else change]


def failure_page(cause: Cause, public_url: str) -> str:
    """The page that shows a cause, and what can be done about it."""
    if cause.key.kind is CauseKind.FINISHED:
        return f"{public_url}/schedules/{name_of(cause.key.subject)}"
    if cause.key.kind is CauseKind.KILL_SWITCH:
        return f"{public_url}/stops"
    return f"{public_url}/failures/{name_of(cause.id)}"


def cause_told(cause: Cause, public_url: str) -> dict[str, Any]:
    """What a message says of a cause."""
    path = f"/api/v1/failures/{name_of(cause.id)}"
    told = {
        "id": name_of(cause.id),
        "kind": cause.key.kind.value,
        "subject": subject_shown(cause),
        "failure": cause.key.failure,
        "since": shown_instant(cause.since),
        "last": shown_instant(cause.last),
        "over_at": None if cause.over_at is None else shown_instant(cause.over_at),
        "events": cause.failed,
        "gave_up": cause.gave_up,
        "resent": cause.resent,
        "schedules": _named(cause.schedules, name_of),
        "tags": _named(cause.tags, str),
        "error": cause.error,
        "url": f"{public_url}{path}",
        "page": failure_page(cause, public_url) if public_url else None,
    }
    return {name: value for name, value in told.items() if value not in (None, "")}


def _named(touched: Touched, show: Any) -> dict[str, Any]:
    return {"count": touched.count, "first": [show(each) for each in touched.names[:MOST_NAMED]]}


def sentence(change: str, cause: Cause) -> str:
    """One line for people."""
    count = cause.schedules.count
    touched = f", {count} schedule{'s' if count != 1 else ''}" if count else ""
    said = cause.key.failure if cause.key.kind is CauseKind.FAILING else cause.error
    what = f"{cause.key.kind.value}: {subject_shown(cause)}{f' ({said})' if said else ''}"
    if change == END:
        again = f"; {cause.resent} dead letters were sent again" if cause.resent else ""
        return f"Over: {what}, since {shown_instant(cause.since)}{touched}{again}"
    if change == DEAD:
        return f"{cause.gave_up} events gave up: {what}, since {shown_instant(cause.since)}{touched}"
    still = "Still " if change.startswith(REMINDER) else ""
    return f"{still}{what}, since {shown_instant(cause.since)}{touched}"
