"""What a tenant's limits leave where something is made, judged before it is made.

`schedule_room` and `message_room` are entered where there is such a limit, and stand around what makes it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from scheduler_app.clock import monotonic
from scheduler_app.domain.errors import QuotaExceeded
from scheduler_app.domain.ids import whole_id
from scheduler_app.domain.quota import DAY, MESSAGES_PER_DAY, SCHEDULES, QuotaUse, day_of
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.acting import current_act
from scheduler_app.store.mongo import new_token
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

#: Where there is no room beside what others are making at this moment, how long to wait for them.
WAIT_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 0.02
#: More than a limit may exist: it can be lowered. Refusals say how many there are, up to so many more.
_COUNTED_BEYOND: Final = 10_000


@dataclass(slots=True)
class QuotaRoom:
    """How much may be made, and how much was."""

    granted: int
    refusal: QuotaExceeded | None = None
    """Why it is not more."""
    made: int | None = None
    """None: as much as was granted, or unknown where something went wrong."""


@contextmanager
def schedule_room(store: Store, tenant: str, limit: int, wanted: int, now: datetime) -> Iterator[QuotaRoom]:
    """Room for schedules of a tenant that may have `limit` of them. Raises a STORE_FAULT."""
    quota_id, token = whole_id(tenant, SCHEDULES.name), new_token()
    if store.mongo.is_dry_run:
        counted = store.schedules.count_living(tenant, most=limit + _COUNTED_BEYOND)
        yield _room(QuotaUse(SCHEDULES, tenant, limit, counted), wanted, now)
        return
    use = QuotaUse(SCHEDULES, tenant, limit, _used(store, tenant, quota_id, token, limit, wanted))
    room = _room(use, wanted, now)
    made: int | None = None
    try:
        yield room
        made = room.granted if room.made is None else room.made
    finally:
        made = room.made if made is None else made
        current_act().used.append(replace(use, used=use.used + (made or 0)))
        _finish(store, quota_id, token, made)


def _used(store: Store, tenant: str, quota_id: str, token: str, limit: int, wanted: int) -> int:
    """How many there are, and are being made by others who came first; no less than that."""
    noted = store.quotas.note(quota_id, token, wanted)
    used = (noted.bound or 0) + sum(noted.before.values())
    if noted.bound is not None and used + wanted <= limit:
        return used
    until, most = monotonic() + WAIT_SECONDS, limit + _COUNTED_BEYOND
    while True:
        counted = store.schedules.count_living(tenant, most=most)
        if counted < most:
            store.quotas.found(quota_id, noted.turn, counted)
        # What others are making may be among what was counted: who is refused for that waits for them.
        used = counted + sum(noted.before.values())
        if used + wanted <= limit or not noted.before or monotonic() > until:
            return used
        time.sleep(_PAUSE_SECONDS)
        noted = store.quotas.look(quota_id, token)


def _finish(store: Store, quota_id: str, token: str, made: int | None) -> None:
    try:
        store.quotas.finish(quota_id, token, made)
    except STORE_FAULTS as error:
        log.warning(
            "quota.unfinished",
            message="MongoDB did not answer: for a while others find what was made here counted twice",
            quota=quota_id,
            error=str(error)[:300],
        )


@contextmanager
def message_room(store: Store, tenant: str, limit: int, wanted: int, now: datetime) -> Iterator[QuotaRoom]:
    """Room for messages and triggers of a tenant that may make `limit` of them a day. What goes wrong
    counts as made. Raises a STORE_FAULT."""
    day = day_of(now)
    quota_id = whole_id(tenant, f"{MESSAGES_PER_DAY.name}/{day:%Y-%m-%d}")
    use = QuotaUse(MESSAGES_PER_DAY, tenant, limit, 0, ends_at=day + DAY)
    if store.mongo.is_dry_run:
        yield _room(replace(use, used=store.quotas.sum(quota_id)), wanted, now)
        return
    # Requests that are judged by the day before may still be under way.
    expires_at = day + 2 * DAY
    added, used = store.quotas.add(quota_id, wanted, limit, expires_at)
    room = _room(replace(use, used=used - added), wanted, now)
    try:
        yield room
    finally:
        if room.made is not None and room.made < added:
            _, used = store.quotas.add(quota_id, room.made - added, limit, expires_at)
        current_act().used.append(replace(use, used=used))


def _room(use: QuotaUse, wanted: int, now: datetime) -> QuotaRoom:
    granted = min(wanted, use.left)
    if granted == wanted:
        return QuotaRoom(granted)
    return QuotaRoom(granted, replace(use, used=use.used + granted).refusal(now))
