"""Ids: which tenant one belongs to, what the ids of events and messages are derived from, and what they say.

A whole id says whose it is: `<tenant>:<name>`, and `<name>` alone for the tenant `default`. What is derived
from a schedule's id says it too: its events' ids, and with them the broker's messages and the
Idempotency-Key that receivers are sent. So no two tenants ever share an id, and none can take another's.
The API makes whole ids of the names that requests give, and answers with the names alone; everything else
knows whole ids only.

A message is its own event, and its event's id is derived from the message's name: `msg_<name>`, and
`<tenant>:msg_<name>` for a tenant that has a name. The underscore keeps the two kinds of events apart: no
schedule's id has one (letters, digits and hyphens), so no schedule's event can have a message's id.
"""

import hashlib
import re
import secrets
from datetime import UTC, datetime
from functools import lru_cache
from typing import NewType

from scheduler_app.domain.errors import InvalidField

#: The tenant of everything whose id names none.
TENANT = "default"
#: It is in no id that people may choose, and in no tenant's name.
SEPARATOR = ":"
_TENANT_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")

#: The id of a resource as it is stored and sent. Its tenant is `tenant_of` it, its name `name_of` it.
WholeId = NewType("WholeId", str)


def whole_id(tenant: str, name: str) -> WholeId:
    """The id of what has this name within its tenant. A name with a colon, which nothing ever has, gives an
    id of the same tenant all the same, so that to ask for it finds nothing.

    Raises InvalidField for a tenant that is not 1 to 63 lower-case letters, digits and hyphens.
    """
    if not _TENANT_NAME.fullmatch(tenant):
        raise InvalidField(
            "tenant", "must be 1 to 63 lower-case letters, digits and hyphens, and not begin with a hyphen"
        )
    alone = tenant == TENANT and SEPARATOR not in name
    return WholeId(name if alone else f"{tenant}{SEPARATOR}{name}")


def tenant_of(whole_id: str) -> str:
    """The tenant whose it is."""
    tenant, separator, _ = whole_id.partition(SEPARATOR)
    return tenant if separator else TENANT


#: Shares of all schedules and messages, of which each beat reads its own.
PARTITIONS = 256


def partition_of(whole_id: str) -> int:
    """The partition of the schedule or message with this id. It is stored, and so it never changes."""
    return hashlib.blake2b(whole_id.encode(), digest_size=1).digest()[0]


def name_of(whole_id: str) -> str:
    """What its tenant calls it."""
    _, separator, name = whole_id.partition(SEPARATOR)
    return name if separator else whole_id


MESSAGE_PREFIX = "msg_"
MAX_MESSAGE_ID = 128
#: How the ids of notifications end: no message that people schedule may take one away.
OF_NOTIFICATION = "-on-(success|failure|pause|notice)(-[0-9]+)?"
_ENDS_AS_NOTIFICATION = re.compile(rf"{OF_NOTIFICATION}\Z")


def message_event_id(tenant: str, message_id: str) -> WholeId:
    """The id of a message's event, which is its `_id`, its Idempotency-Key and its `webhook-id`.

    Raises InvalidField for a tenant that cannot be one.
    """
    return whole_id(tenant, f"{MESSAGE_PREFIX}{message_id}")


def is_message(event_id: str) -> bool:
    """Whether an event's id is that of a message."""
    return name_of(event_id).startswith(MESSAGE_PREFIX)


def message_id_of(event_id: str) -> str:
    """The id of the message that an event is, as its owner gave it."""
    return name_of(event_id).removeprefix(MESSAGE_PREFIX)


def notification_id(about: str, suffix: str) -> str:
    """The id of the message that tells of the event or schedule with the id `about`; `suffix` begins with
    `-on-`. Of an id that is too long it has the beginning and a hash."""
    own = name_of(about)
    if len(own) + len(suffix) > MAX_MESSAGE_ID:
        digest = hashlib.sha256(own.encode()).hexdigest()[:32]
        own = f"{own[: MAX_MESSAGE_ID - len(suffix) - len(digest) - 1]}-{digest}"
    return own + suffix


def is_notification(message_id: str) -> bool:
    """Whether a message of this id is one that tells of an event or of a schedule."""
    return _ENDS_AS_NOTIFICATION.search(message_id) is not None


#: Begins the second to last part of the ids of backfilled events.
_BACKFILL = "backfill"


def event_id(schedule_id: str, revision: int, run_time: datetime) -> str:
    """The id of a scheduled event, derived so that an occurrence can become an event only once.

    `<schedule id>-<revision>-20250105T120000Z`, with milliseconds when there are any.
    """
    return f"{schedule_id}-{revision}-{compact(run_time)}"


def manual_event_id(schedule_id: str, request_seed: str | None = None) -> str:
    """The id of an event that a person asked for: 96 random bits, or a request's own `request_seed`."""
    return f"{schedule_id}-manual-{request_seed or secrets.token_hex(12)}"


def backfill_event_id(schedule_id: str, number: str, run_time: datetime) -> str:
    """The id of the event of a past occurrence that the backfill `number` makes."""
    return f"{schedule_id}-{_BACKFILL}{number}-{compact(run_time)}"


def is_backfill(event_id: str) -> bool:
    """Whether an event's id is that of a backfilled occurrence."""
    # Where a scheduled event has its revision, and a manual one "manual".
    if _BACKFILL not in event_id or is_message(event_id):
        return False
    return event_id.rpartition("-")[0].rpartition("-")[2].startswith(_BACKFILL)


def compact(instant: datetime) -> str:
    """`20250105T120000Z`, or `20250105T120000250Z` when there are milliseconds."""
    if instant.tzinfo is None:
        raise ValueError("a naive datetime has no place here")
    return _compact(instant.astimezone(UTC))


_COMPACT = re.compile(r"[0-9]{8}T[0-9]{6}([0-9]{3})?Z")


# Thousands of schedules fire at the same few instants of a page. Of UTC alone: where a clock goes back, two
# hours of a zone are equal to a cache, and the second one would get the first one's ids.
@lru_cache(maxsize=1024)
def _compact(utc: datetime) -> str:
    milliseconds = f"{utc.microsecond // 1000:03d}" if utc.microsecond >= 1000 else ""
    return f"{utc:%Y%m%dT%H%M%S}{milliseconds}Z"


@lru_cache(maxsize=1024)
def instant_of(text: str) -> datetime | None:
    """The instant of a `compact` text, None for any other."""
    if not _COMPACT.fullmatch(text):
        return None
    try:
        return datetime.strptime(text[:-1].ljust(18, "0"), "%Y%m%dT%H%M%S%f").replace(tzinfo=UTC)
    except ValueError:
        return None


def schedule_of(event_id: str) -> str:
    """The id of the schedule that an event's id names, with its tenant; empty for a message's."""
    return "" if is_message(event_id) else event_id.rsplit("-", 2)[0]


def check_new_name(name: str) -> None:
    """Raises InvalidField unless a new resource's name begins and ends with a letter or digit.

    `..` in a path leads elsewhere, and `-x` on a command line is an option. Resources that have such a name
    from an older release keep it.
    """
    if not (name[:1].isalnum() and name[-1:].isalnum()):
        raise InvalidField(
            "name", f"the path's must begin and end with a letter or digit, not as {name[:64]!r}"
        )
