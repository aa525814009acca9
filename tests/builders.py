"""Values for tests, with everything that does not matter filled in."""

from datetime import datetime, timedelta
from typing import Any

from scheduler_app.domain.cause_match import EVERYTHING
from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.event import Event, scheduled
from scheduler_app.domain.ids import TENANT, WholeId, message_event_id
from scheduler_app.domain.message import Timing
from scheduler_app.domain.message_draft import MessageDraft
from scheduler_app.domain.notice_action import ChannelKind
from scheduler_app.domain.notification_rule import NotificationChannel, NotificationRule
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.domain.silence import Silence
from scheduler_app.domain.states import Kind
from scheduler_app.domain.triggers import FIELDS

#: The longest timeout that a request may have, more than pytest-timeout leaves to a test: an answer
#: that comes late is an answer.
LONGEST_SECONDS = 300.0
#: The seconds of a dead worker's lease: it is over, and long enough ago. A measurement of mongod's clock that
#: took some seconds, even an earlier test's in this process, looks like a jump, by which leases last longer.
LONG_OVER = -600.0
_usual: dict[str, Any] = {"timeout_seconds": LONGEST_SECONDS}


def use_ordinary_timeouts() -> None:
    """From now on, what this process makes has the product's own timeout. A longer one costs a worker a write
    for each batch, to renew its lease, so that what is measured must not have it."""
    _usual.clear()


def draft(**fields: Any) -> ScheduleDraft:
    """A valid draft: each second, to nobody. Fields of triggers are given by their wire names."""
    trigger = {name: fields.pop(name) for name in FIELDS if name in fields}
    given: dict[str, Any] = {"name": "test", "url": "http://127.0.0.1:9/"}
    return ScheduleDraft(trigger=trigger or {"rrule": "FREQ=SECONDLY"}, **given | fields)


def schedule(now: datetime, schedule_id: str = "s1", **fields: Any) -> Schedule:
    """A schedule as `create` makes it; `changes` of its own fields by `replace`."""
    return draft(**_usual | fields).schedule(schedule_id, now, max_retries=3)


def event(due: datetime, schedule_id: str = "s1", revision: int = 1, **changes: Any) -> Event:
    return scheduled(schedule_id, revision, due)._replace(**changes)


def message(due: datetime, message_id: str = "m1", *, tenant: str = TENANT, **fields: Any) -> Event:
    """A message that is due then, as a request for that instant makes it; `fields` are those of a draft."""
    own: dict[str, Any] = {"timing": Timing(scheduled_at=due)}
    own |= {name: fields.pop(name) for name in ("event_name", "metadata", "timing") if name in fields}
    asked: dict[str, Any] = {"url": "http://127.0.0.1:9/"} | _usual | fields
    drafted = MessageDraft(draft=ScheduleDraft(**asked), **own)
    content = drafted.message(tenant, max_retries=3)
    return Event(
        *(message_event_id(tenant, message_id), "", 1, due, due),
        kind=Kind.MESSAGE,
        origin=content.action.isolation_key,
        message=content,
    )


def notification_rule(now: datetime, rule_id: str = "ops", **fields: Any) -> NotificationRule:
    """A rule that tells a webhook, which nobody answers, of everything."""
    usual: dict[str, Any] = {
        "to": (NotificationChannel(ChannelKind.WEBHOOK, "http://127.0.0.1:9/alerts"),),
        "signing": Signing("whsec_x", now),
        "created_at": now,
    }
    return NotificationRule(id=WholeId(rule_id), **usual | fields)


def silence(now: datetime, silence_id: str = "night", **fields: Any) -> Silence:
    """A silence of everything, for an hour."""
    usual: dict[str, Any] = {
        "match": EVERYTHING,
        "until": now + timedelta(hours=1),
        "reason": "an upgrade",
        "created_at": now,
    }
    return Silence(id=WholeId(silence_id), **usual | fields)
