"""What a tenant's limits leave where something is made, judged before it is made.

Each `…_room` is entered where there is such a limit, and stands around what makes it.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from scheduler_app.clock import monotonic
from scheduler_app.domain.errors import QuotaExceeded
from scheduler_app.domain.ids import whole_id
from scheduler_app.domain.quota import (
    DAY,
    EVENTS_PER_HOUR,
    MESSAGES_PER_DAY,
    SCHEDULES,
    Quota,
    QuotaUse,
    day_of,
    seconds_until,
)
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.tenant import Tenant, TenantLimits
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.acting import current_act
from scheduler_app.store.mongo import new_token
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.owed_events import busiest_hour, hourly_peaks

log = get_logger(__name__)

#: Where there is no room beside what others are making at this moment, how long to wait for them.
WAIT_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 0.02
#: More than a limit may exist: it can be lowered. Refusals say how many there are, up to so many more.
_COUNTED_BEYOND: Final = 10_000
#: Where many tenants are listed, so many schedules are counted in all.
COUNTED_IN_A_LIST: Final = 100_000
#: A bound that was counted longer ago is not used: not everybody who makes something notes it.
SCHEDULES_BOUND_SECONDS: Final = 10
#: The busiest hour changes as time passes, and is dear to find: it is not looked for at every refusal.
EVENTS_BOUND_SECONDS: Final = 60
EVENTS_REFUSED_SECONDS: Final = 10


@dataclass(slots=True)
class QuotaRoom:
    """How much may be made, and how much was."""

    granted: int
    refusal: QuotaExceeded | None = None
    """Why it is not more."""
    made: int | None = None
    """None: as much as was granted, or unknown where something went wrong."""


@dataclass(slots=True)
class CreationRoom:
    """Which schedules there is room for, and which of them were made."""

    refusals: dict[int, QuotaExceeded] = field(default_factory=dict)
    """By the places of those that must not be made."""
    made: Collection[str] | None = None
    """Their ids. None: unknown, because something went wrong."""


@dataclass(frozen=True, slots=True)
class _Existing:
    """A limit of what there is."""

    quota: Quota
    count: Callable[[], int]
    most: int | None
    """What is counted at most."""
    bound_seconds: int
    refused_seconds: int = 0
    """So long after a count there is no other one for a refusal."""


@contextmanager
def creation_room(
    store: Store, tenant: str, limits: TenantLimits, schedules: Sequence[Schedule], now: datetime
) -> Iterator[CreationRoom]:
    """Room for these new schedules of a tenant: of those that need some, for the first ones. One whose id is
    taken needs none. Raises a STORE_FAULT."""
    with ExitStack() as stack:
        rooms: list[tuple[QuotaRoom, Sequence[int]]] = []
        if limits.schedules is not None:
            one_each = [1] * len(schedules)
            entered = schedule_room(store, tenant, limits.schedules, len(schedules))
            rooms.append((stack.enter_context(entered), one_each))
        if limits.events_per_hour is not None:
            peaks = hourly_peaks(schedules)
            entered = event_room(store, tenant, limits.events_per_hour, sum(peaks), now)
            rooms.append((stack.enter_context(entered), peaks))
        found = CreationRoom()
        if any(room.refusal for room, _ in rooms):
            found.refusals = _refusals(
                schedules, rooms, store.schedules.living([each.id for each in schedules])
            )
        yield found
        if (made := found.made) is not None:
            for room, sizes in rooms:
                each_made = [size for each, size in zip(schedules, sizes, strict=True) if each.id in made]
                room.made = sum(each_made)


def _refusals(
    schedules: Sequence[Schedule], rooms: Sequence[tuple[QuotaRoom, Sequence[int]]], there: Collection[str]
) -> dict[int, QuotaExceeded]:
    refusals: dict[int, QuotaExceeded] = {}
    left = [room.granted for room, _ in rooms]
    for place, schedule in enumerate(schedules):
        if schedule.id in there:
            continue
        wanted = [sizes[place] for _, sizes in rooms]
        lacking = [room for (room, _), one, some in zip(rooms, wanted, left, strict=True) if one > some]
        if not lacking:
            left = [some - one for one, some in zip(wanted, left, strict=True)]
        elif lacking[0].refusal is not None:
            refusals[place] = lacking[0].refusal
    return refusals


def schedule_room(store: Store, tenant: str, limit: int, wanted: int) -> AbstractContextManager[QuotaRoom]:
    """Room for schedules of a tenant that may have `limit` of them. Raises a STORE_FAULT."""
    most = limit + _COUNTED_BEYOND
    count = partial(store.schedules.count_living, tenant, most=most)
    return _room_beside(
        store, tenant, limit, wanted, _Existing(SCHEDULES, count, most, SCHEDULES_BOUND_SECONDS)
    )


def event_room(
    store: Store, tenant: str, limit: int, wanted: int, now: datetime
) -> AbstractContextManager[QuotaRoom]:
    """Room for so many events more in the busiest hour of a tenant. Raises a STORE_FAULT."""
    count = partial(busiest_hour, store, tenant, now)
    kind = _Existing(EVENTS_PER_HOUR, count, None, EVENTS_BOUND_SECONDS, EVENTS_REFUSED_SECONDS)
    return _room_beside(store, tenant, limit, wanted, kind)


@contextmanager
def _room_beside(store: Store, tenant: str, limit: int, wanted: int, kind: _Existing) -> Iterator[QuotaRoom]:
    """Room beside what there is."""
    quota_id, token = whole_id(tenant, kind.quota.name), new_token()
    if store.mongo.is_dry_run:
        yield _room(QuotaUse(kind.quota, tenant, limit, kind.count()), wanted)
        return
    use = QuotaUse(kind.quota, tenant, limit, _used(store, quota_id, token, limit, wanted, kind))
    room = _room(use, wanted)
    made: int | None = None
    try:
        yield room
        made = room.granted if room.made is None else room.made
    finally:
        made = room.made if made is None else made
        current_act().used[use.quota.name] = replace(use, used=use.used + (made or 0))
        _finish(store, quota_id, token, made)


def _used(store: Store, quota_id: str, token: str, limit: int, wanted: int, kind: _Existing) -> int:
    """How many there are, and are being made by others who came first; no less than that."""
    noted = store.quotas.note(quota_id, token, wanted, bound_seconds=kind.bound_seconds)
    if noted.bound is not None:
        used = noted.bound + sum(noted.before.values())
        if used + wanted <= limit or noted.age < timedelta(seconds=kind.refused_seconds):
            return used
    until = monotonic() + WAIT_SECONDS
    while True:
        counted = kind.count()
        if kind.most is None or counted < kind.most:
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
    day, quota_id = day_of(now), _of_day(tenant, now)
    use = QuotaUse(MESSAGES_PER_DAY, tenant, limit, 0, seconds_until(day + DAY, now))
    if store.mongo.is_dry_run:
        yield _room(replace(use, used=store.quotas.known([quota_id]).get(quota_id, 0)), wanted)
        return
    # Requests that are judged by the day before may still be under way.
    expires_at = day + 2 * DAY
    added, used = store.quotas.add(quota_id, wanted, limit, expires_at)
    room = _room(replace(use, used=used - added), wanted)
    try:
        yield room
    finally:
        if room.made is not None and room.made < added:
            _, used = store.quotas.add(quota_id, room.made - added, limit, expires_at)
        current_act().used[use.quota.name] = replace(use, used=used)


def _room(use: QuotaUse, wanted: int) -> QuotaRoom:
    granted = min(wanted, use.left)
    if granted == wanted:
        return QuotaRoom(granted)
    return QuotaRoom(granted, use.refusal(wanted))


def _of_day(tenant: str, now: datetime) -> str:
    return whole_id(tenant, f"{MESSAGES_PER_DAY.name}/{day_of(now):%Y-%m-%d}")


def quotas_used(store: Store, tenants: Sequence[Tenant], now: datetime) -> dict[str, dict[str, int]]:
    """What each tenant has used of the limits that it has: of events what was estimated last, and of
    schedules, where counting all is too much, how many there were when one was made last. Raises a
    STORE_FAULT."""
    kept: dict[str, dict[str, str]] = {
        each.name: {
            SCHEDULES.name: whole_id(each.name, SCHEDULES.name),
            MESSAGES_PER_DAY.name: _of_day(each.name, now),
            EVENTS_PER_HOUR.name: whole_id(each.name, EVENTS_PER_HOUR.name),
        }
        for each in tenants
    }
    counted = _schedules_counted(store, tenants)
    known = store.quotas.known([quota_id for ids in kept.values() for quota_id in ids.values()])
    used: dict[str, dict[str, int]] = {}
    for each in tenants:
        found = used[each.name] = {}
        there = counted.get(each.name, known.get(kept[each.name][SCHEDULES.name]))
        if each.limits.schedules is not None and there is not None:
            found[SCHEDULES.name] = there
        if each.limits.messages_per_day is not None:
            found[MESSAGES_PER_DAY.name] = known.get(kept[each.name][MESSAGES_PER_DAY.name], 0)
        owed = known.get(kept[each.name][EVENTS_PER_HOUR.name])
        if each.limits.events_per_hour is not None and owed is not None:
            found[EVENTS_PER_HOUR.name] = owed
    return used


def _schedules_counted(store: Store, tenants: Sequence[Tenant]) -> dict[str, int]:
    """How many schedules the tenants have that have a limit of them: one as many as its refusals say, of
    several those that `COUNTED_IN_A_LIST` is enough for."""
    limits = {each.name: each.limits.schedules for each in tenants if each.limits.schedules is not None}
    if len(limits) != 1:
        return store.schedules.count_living_of(limits, most=COUNTED_IN_A_LIST) if limits else {}
    ((name, limit),) = limits.items()
    return {name: store.schedules.count_living(name, most=limit + _COUNTED_BEYOND)}
