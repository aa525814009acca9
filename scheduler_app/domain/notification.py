"""What is told of an event's end, or of a schedule's pause: to which destination, and what the message says.

A notification is a message like any other; nobody is notified of how it ended.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from scheduler_app.domain.deliverable import DEFAULT_TIMEOUT_SECONDS, Signing
from scheduler_app.domain.event import Event
from scheduler_app.domain.http_action import HttpAction, RequestBody
from scheduler_app.domain.ids import message_event_id, notification_id, tenant_of, whole_id
from scheduler_app.domain.message import Message
from scheduler_app.domain.notice_action import TIMEOUT_SECONDS, NoticeAction
from scheduler_app.domain.retry import RetryPolicy
from scheduler_app.domain.states import Kind, State


class Notifying(StrEnum):
    """The field of a schedule or message that names who is told, in documents too."""

    ON_SUCCESS = "on_success"
    ON_FAILURE = "on_failure"


#: The `event_name` of a notification.
SUBJECTS = {Notifying.ON_SUCCESS: "event.completed", Notifying.ON_FAILURE: "event.error"}
PAUSED = "schedule.paused"


@dataclass(frozen=True, slots=True)
class OwedNotification:
    """A mark on an event that ended: its notification is still to be made. It is written together with the
    outcome, so that no crash can separate the two."""

    when: Notifying
    since: datetime
    """When the event ended."""
    destination: str | None = None
    """The name of one of the event's tenant. None: the schedule, or the message, is to be asked."""
    hops: int = 0
    """As an event's."""


def owed_notification(
    on_success: str | None, on_failure: str | None, state: State, since: datetime, hops: int
) -> OwedNotification | None:
    """Returns what an event owes that ended in `state`; None if no destination is to be notified."""
    if state is State.COMPLETED and on_success:
        return OwedNotification(Notifying.ON_SUCCESS, since, on_success, hops)
    if state is State.ERROR and on_failure:
        return OwedNotification(Notifying.ON_FAILURE, since, on_failure, hops)
    return None


def notification(
    about: str,
    suffix: str,
    subject: str,
    told: Mapping[str, Any],
    now: datetime,
    *,
    destination: str,
    retry: RetryPolicy,
    hops: int = 0,
) -> Event:
    """Returns a message, due at once, to the destination of that name of the tenant of `about`.

    Its id is derived from `about`, the whole id of an event or of a schedule, and from `suffix`: however
    often it is made, it is one message. `told` is its body, as JSON; `retry` holds where the destination says
    nothing else.
    """
    named = whole_id(tenant_of(about), destination)
    action = HttpAction(url="", destination=named, method="", body=RequestBody.from_json(dict(told)))
    return message_event(about, suffix, subject, action, now, retry=retry, hops=hops)


def message_event(
    about: str,
    suffix: str,
    subject: str,
    action: HttpAction | NoticeAction,
    now: datetime,
    *,
    retry: RetryPolicy,
    hops: int = 0,
    signing: Signing | None = None,
) -> Event:
    """Returns a message, due at once, with an id that is derived from `about` and `suffix`."""
    seconds = TIMEOUT_SECONDS if isinstance(action, NoticeAction) else DEFAULT_TIMEOUT_SECONDS
    return Event(
        id=message_event_id(tenant_of(about), notification_id(about, suffix)),
        schedule_id="",
        revision=1,
        run_time=now,
        due_at=now,
        kind=Kind.MESSAGE,
        origin=action.isolation_key,
        hops=hops,
        message=Message(
            action=action,
            event_name=subject,
            retry=retry,
            timeout_seconds=seconds,
            hops=hops,
            signing=signing,
        ),
    )
