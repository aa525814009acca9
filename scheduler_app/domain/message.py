"""A message: a one-off delivery without a schedule. One document holds it from its creation to its record."""

from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from scheduler_app.domain.action import CALLBACKS
from scheduler_app.domain.deliverable import DEFAULT_TIMEOUT_SECONDS, Signing
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.http_action import HttpAction
from scheduler_app.domain.instants import whole_milliseconds
from scheduler_app.domain.lateness import DEFAULT_LATENESS, Lateness
from scheduler_app.domain.masking import split_query
from scheduler_app.domain.notice_action import NoticeAction
from scheduler_app.domain.retry import DEFAULT_RETRY, SUCCESS_CODES, Codes, RetryPolicy
from scheduler_app.domain.triggers.delay_seconds import MAX_DELAY_SECONDS

#: A message is something that its receiver is told.
DEFAULT_MESSAGE_METHOD = "POST"
MAX_EVENT_NAME = 200
#: Before the name of each item of metadata, in the header that carries it.
METADATA_PREFIX = "X-Scheduler-Metadata-"
#: The last instant, exclusive, that a message may be scheduled at: no date is stored beyond it.
LATEST_YEAR = 9998


@dataclass(frozen=True, slots=True)
class Timing:
    """When a message is asked to be delivered: at an instant, after a delay, or, with neither, at once."""

    scheduled_at: datetime | None = None
    """Aware; an instant that has passed means at once."""
    delay_seconds: float | None = None

    def instant(self, now: datetime) -> datetime:
        """The instant, in whole milliseconds, counted from `now`.

        Raises InvalidField for both at once, for a delay below 0 or of more than a century, and for an
        instant outside of the years 1970 to 9997.
        """
        if self.scheduled_at is not None and self.delay_seconds is not None:
            raise InvalidField("delay_seconds", "is given beside scheduled_at: give one of them")
        if self.scheduled_at is not None:
            if not 1970 <= self.scheduled_at.year < LATEST_YEAR:
                raise InvalidField("scheduled_at", f"must lie between the years 1970 and {LATEST_YEAR - 1}")
            return whole_milliseconds(self.scheduled_at)
        delay = self.delay_seconds or 0.0
        if not 0 <= delay <= MAX_DELAY_SECONDS:
            raise InvalidField("delay_seconds", f"must be between 0 and {MAX_DELAY_SECONDS}")
        return whole_milliseconds(now + timedelta(seconds=delay))


AT_ONCE = Timing()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnParts:
    """The fields that a request gives for this message alone, and the message keeps as they are, under the
    same names in both: `MessageDraft` inherits them, too."""

    event_name: str | None = None
    timing: Timing = AT_ONCE
    """As it was asked for when it was made; rescheduling moves the event alone."""

    def own_parts(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(OwnParts)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(OwnParts):
    """What a message delivers, and how. Its id, its times and its history are its event's."""

    action: HttpAction | NoticeAction
    """The request, or a notice that a rule of notifications made. Metadata are among the request's headers,
    and so are kept, shown and removed as headers are."""
    retry: RetryPolicy = DEFAULT_RETRY
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    success: Codes = SUCCESS_CODES
    signing: Signing | None = None
    queue: str = CALLBACKS
    """Whose workers deliver it; CALLBACKS leaves that to its destination."""
    hops: int = 0
    """Callbacks of ours, one after another, that led to the request that made it."""
    lateness: Lateness = DEFAULT_LATENESS
    on_success: str | None = None
    """The name of the destination of its tenant that is told when it was delivered."""
    on_failure: str | None = None
    """The same for when it was not."""
    wiped: bool = False
    """It was cancelled: its possible secrets are not stored any more."""

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers that were given as headers."""
        return tuple(pair for pair in self._all_headers if not _is_metadata(pair[0]))

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The items of metadata, by their names without the prefix."""
        own = (pair for pair in self._all_headers if _is_metadata(pair[0]))
        return tuple((name[len(METADATA_PREFIX) :], value) for name, value in own)

    @property
    def _all_headers(self) -> tuple[tuple[str, str], ...]:
        return self.action.headers if isinstance(self.action, HttpAction) else ()

    def same_content(self, other: "Message") -> bool:
        """Whether both ask for the same delivery at the same time. Of a wiped message only what is left is
        compared: its secrets are gone."""
        wiped = self.wiped or other.wiped
        return self._content(wiped=wiped) == other._content(wiped=wiped)

    def _content(self, *, wiped: bool) -> tuple["Message", bool]:
        """The message without what differs between requests for the same, and whether it is signed."""
        action = self.action
        if wiped and isinstance(action, HttpAction):
            url = split_query(action.url)[0]
            action = HttpAction(url=url, method=action.method, destination=action.destination)
        signed = wiped or self.signing is not None
        return replace(self, action=action, signing=None, hops=0, wiped=False), signed


class UnreadableMessage(NamedTuple):
    """A stored message whose content cannot be read, and why."""

    reason: str
    readable_elsewhere: bool = False
    """Nothing is wrong with it: a newer release wrote it, or this process lacks the key to its secrets."""


def _is_metadata(header_name: str) -> bool:
    return header_name.lower().startswith(METADATA_PREFIX.lower())
