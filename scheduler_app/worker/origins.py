"""Queues of due jobs by tenant and origin: which starts next, which origin is at its limit, and what is
postponed. One receiver is an origin for each tenant that calls it.

It has no thread and no clock: the courier's thread owns it and passes the time. An origin keeps its jobs that
wait and fly, how often its attempts end, and the line of those that come again later.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from scheduler_app.domain.ids import TENANT, tenant_of
from scheduler_app.worker.attempt import Job

WINDOW_SECONDS = 10


class Rate:
    """Counts by the second, over a window. Not thread-safe."""

    __slots__ = ("_counts", "_first", "_second", "_total")

    def __init__(self) -> None:
        self._counts = [0] * WINDOW_SECONDS
        self._second = 0
        self._first: float | None = None
        self._total = 0

    def count(self, now: float) -> None:
        """Counts one more at the monotonic time `now`."""
        self._advance(now)
        if self._first is None:
            self._first = now
        self._counts[self._second % WINDOW_SECONDS] += 1
        self._total += 1

    def per_second(self, now: float) -> float:
        """The mean over the window, or over the time since the first one when that is less."""
        self._advance(now)
        if self._first is None:
            return 0.0
        return self._total / min(WINDOW_SECONDS, max(1.0, now - self._first))

    def _advance(self, now: float) -> None:
        second = int(now)
        for each in range(self._second + 1, second + 1)[-WINDOW_SECONDS:]:
            self._total -= self._counts[each % WINDOW_SECONDS]
            self._counts[each % WINDOW_SECONDS] = 0
        self._second = second
        if not self._total:
            self._first = None


#: How soon a postponed event comes again at the earliest, and at the latest.
MIN_POSTPONED_SECONDS = 2
MAX_POSTPONED_SECONDS = 3_600


class Postponed(NamedTuple):
    """A job that has to come again, in `seconds` from now, and how the origin or tenant is that is full."""

    job: Job
    seconds: float
    full: str
    in_flight: int
    waiting: int


class Load(NamedTuple):
    """An origin at a moment, for metrics and for people."""

    origin: str
    in_flight: int
    limit: int
    waiting: int
    postponed: int
    full_seconds: float
    """How long events have been waiting because it is at its limit; 0 when none does."""


class ReturnLine:
    """The seconds in which an origin's postponed events come again, with how many in each."""

    __slots__ = ("_by_minute", "_slot", "_taken")

    def __init__(self) -> None:
        #: The second that is being filled; `_taken` is how many come in it.
        self._slot = 0
        self._by_minute: dict[int, int] = {}

    def place(self, now: float, each_second: int) -> float:
        """Takes the next place in the line; returns the seconds from now until then."""
        earliest = int(now) + MIN_POSTPONED_SECONDS
        if self._slot < earliest:
            self._slot, self._taken = earliest, 0
        elif self._taken >= each_second:
            self._slot, self._taken = self._slot + 1, 0
        if self._slot > now + MAX_POSTPONED_SECONDS:
            self._slot, self._taken = int(now) + MAX_POSTPONED_SECONDS // 2, 0
        self._taken += 1
        minute = self._slot // 60
        self._by_minute[minute] = self._by_minute.get(minute, 0) + 1
        return self._slot - now

    def coming(self, now: float) -> int:
        """How many are still to come, by whole minutes; those whose minute is over are forgotten."""
        for minute in [minute for minute in self._by_minute if (minute + 1) * 60 <= now]:
            del self._by_minute[minute]
        return sum(self._by_minute.values())


T = TypeVar("T")


class OutOfTurn(Generic[T]):
    """Those that go on when a number has risen, which is one for all of them: by how much each needs."""

    __slots__ = ("_by_need", "_needs")

    def __init__(self) -> None:
        self._by_need: dict[int, OrderedDict[str, T]] = {}
        self._needs: dict[str, int] = {}

    def put(self, name: str, each: T, need: int) -> None:
        self._needs[name] = need
        self._by_need.setdefault(need, OrderedDict())[name] = each

    def remove(self, name: str) -> None:
        """Forgets it, if it is known."""
        need = self._needs.pop(name, None)
        if need is not None:
            those = self._by_need[need]
            del those[name]
            if not those:
                del self._by_need[need]

    def next(self, there_is: int) -> T | None:
        """The first one of those that need the least, if there is as much."""
        if not self._by_need:
            return None
        need = min(self._by_need)  # there are few: origins that need more have more requests in flight
        return next(iter(self._by_need[need].values())) if need <= there_is else None


@dataclass(slots=True)
class TenantQueues:
    """What `OriginQueues` knows of a tenant."""

    name: str
    turns: "deque[Origin]" = field(default_factory=deque)
    """Its origins that are in turn."""
    waiting: int = 0
    in_flight: int = 0
    blocked: bool = False
    """Not in turn: it has its share."""


@dataclass(slots=True)
class Origin:
    """What `OriginQueues` knows of one; its thread alone changes it."""

    name: str
    tenant: TenantQueues
    concurrency: int
    """Attempts in flight that its kind of action allows a worker."""
    waiting: int = 0
    in_flight: int = 0
    jobs: OrderedDict[str, deque[Job]] = field(default_factory=OrderedDict)
    """The jobs that may start, by schedule; the schedules take turns in this order. (Taking the first key of
    a plain dict becomes slower with each key that was removed before it.)"""
    flying: dict[str, int] = field(default_factory=dict)
    """Requests in flight by schedule."""
    young: OrderedDict[str, float] = field(default_factory=OrderedDict)
    """Requests that were just started, by event, and when."""
    ended: Rate = field(default_factory=Rate)
    full_since: float | None = None
    """Since when jobs wait because the origin is at its limit."""
    blocked: bool = False
    """Not in turn: it may start none of those that wait."""
    returns: ReturnLine = field(default_factory=ReturnLine)
    """When those that were postponed come again."""


#: Requests in flight in a worker, of all origins together.
MAX_IN_FLIGHT = 2_000
#: An origin has at most one of this many shares of what is left of them (a dynamic threshold, Choudhury and
#: Hahne, 1998): however many origins hang, there is room for the next one.
SHARES_OF_THE_REST = 8
#: A schedule leaves one of this many shares of its origin to the others.
SHARES_OF_AN_ORIGIN = 4
#: The events of an origin that wait are at most this many times those that a worker has room for besides.
WAITING_SHARE = 2
#: Requests to one origin that were started within `YOUNG_SECONDS` and are not answered: a burst that started
#: all at once would open a connection for each of its requests instead of using some of them again.
MAX_YOUNG = 64
YOUNG_SECONDS = 0.05
#: How many of those that have room again get their turn in one round of the courier. (It starts fewer.)
UNBLOCKED_AT_ONCE = 16
#: An origin that has been at its limit for so long is saturated: what it cannot take within
#: `KEPT_SECONDS` is postponed. (Each that is postponed costs a claim and a write more: one that answers at
#: all may wait with some seconds' work, as long as the worker has room.)
SATURATED_SECONDS = 1.0
KEPT_SECONDS = 5.0
MIN_KEPT = 10
#: As many events come again each second, of all origins that answer none together, and one of each at least:
#: they may have recovered.
MIN_RETURNS_A_SECOND = 10


class OriginQueues:
    """Which job comes next. Tenants take turns, origins within a tenant, and schedules within an origin."""

    def __init__(self, *, concurrency: Mapping[str, int], max_events: int) -> None:
        """`concurrency`: attempts in flight to one origin, by the kind of action. `max_events`: what the
        worker may hold."""
        self._concurrency = concurrency
        # While no more are in flight in all, each origin may have all that its kind allows.
        self._unshared = MAX_IN_FLIGHT - max(concurrency.values()) * SHARES_OF_THE_REST
        self._max_events = max_events
        self._origins: dict[str, Origin] = {}
        self._tenants: dict[str, TenantQueues] = {}
        self._turns: deque[TenantQueues] = deque()
        """Those that have an origin in turn."""
        self._has_tenants = False
        """Whether a job of another tenant than the default one has come."""
        self._pacing: dict[str, Origin] = {}
        """Out of turn until their young requests are older."""
        self._full_origins: OutOfTurn[Origin] = OutOfTurn()
        """Out of turn until the limit of each origin is higher, or one of their own requests ends."""
        self._full_tenants: OutOfTurn[TenantQueues] = OutOfTurn()
        """Out of turn until more is left in all, or one of their own requests ends."""
        self._saturated = 0
        self.in_flight = 0
        self.waiting = 0

    # -- jobs come and go --------------------------------------------------------------------------------

    def add(self, job: Job, now: float, held: int) -> Postponed | None:
        """Queues a job that is due; returns it when its origin has enough already. `held`: the worker's."""
        origin = self._origin_of(job)
        if self._is_at_limit(origin) and origin.waiting >= self._allowed(origin, now, held):
            return self._postponed(origin, job, now)
        tenant = origin.tenant
        if self._has_share(tenant) and tenant.waiting >= self._allowed_of_all(held):
            return self._postponed(origin, job, now)._replace(
                full=f"the tenant {tenant.name}", in_flight=tenant.in_flight, waiting=tenant.waiting
            )
        schedule = job.attempt.event.schedule_id
        queue = origin.jobs.get(schedule)
        if queue is None:
            queue = origin.jobs[schedule] = deque()
        queue.append(job)
        if origin.blocked:
            self._count_waiting(origin, 1)
            if self._may_start(origin, schedule):  # those that wait are of schedules with their share
                self._unblock(origin)
            return None
        if not origin.waiting:
            self._into_turn(origin)
        self._count_waiting(origin, 1)
        return None

    def next(self, now: float) -> Job | None:
        """The job that is to start now; None when all that wait have to."""
        while self._turns and self.in_flight < MAX_IN_FLIGHT:
            tenant = self._turns[0]
            if self._has_share(tenant):
                self._turns.popleft()
                tenant.blocked = True
                self._full_tenants.put(tenant.name, tenant, tenant.in_flight + 1)
                continue
            job = self._next_of_tenant(tenant, now)
            if not tenant.turns:
                self._turns.popleft()
            elif job is not None:
                self._turns.rotate(-1)
            if job is not None:
                return job
        return None

    def _next_of_tenant(self, tenant: TenantQueues, now: float) -> Job | None:
        origin = tenant.turns[0]
        job = self._next_of(origin, now)
        if job is None:
            tenant.turns.popleft()
            self._block(origin, now)
        elif origin.waiting:
            tenant.turns.rotate(-1)
        else:
            tenant.turns.popleft()
            origin.full_since = None
        return job

    def can_start(self, job: Job, now: float) -> bool:
        """Whether a job that does not wait could start at once."""
        origin = self._origins.get(_key(job))
        return self.in_flight < MAX_IN_FLIGHT and (origin is None or not self._is_full(origin, now))

    def started(self, job: Job, now: float) -> None:
        origin, event = self._origin_of(job), job.attempt.event
        origin.in_flight += 1
        origin.tenant.in_flight += 1
        self.in_flight += 1
        origin.flying[event.schedule_id] = origin.flying.get(event.schedule_id, 0) + 1
        origin.young[event.id] = now

    def ended(self, job: Job, now: float) -> None:
        """A request ended, however it did."""
        origin, event = self._origins[_key(job)], job.attempt.event
        origin.in_flight -= 1
        origin.tenant.in_flight -= 1
        self.in_flight -= 1
        origin.young.pop(event.id, None)
        origin.ended.count(now)
        left = origin.flying[event.schedule_id] - 1
        if left:
            origin.flying[event.schedule_id] = left
        else:
            del origin.flying[event.schedule_id]
        if origin.blocked:
            self._unblock(origin)
        if origin.tenant.blocked:
            self._unblock_tenant(origin.tenant)

    def drain(self) -> Iterator[Job]:
        """Takes out everything that waits."""
        for origin in self._origins.values():
            for queue in origin.jobs.values():
                yield from queue
            origin.jobs.clear()
            origin.waiting = 0
            origin.full_since = None
            origin.blocked = False
        for tenant in self._tenants.values():
            tenant.waiting, tenant.blocked = 0, False
            tenant.turns.clear()
        self.waiting = 0
        self._turns.clear()
        self._pacing.clear()
        self._full_origins = OutOfTurn()
        self._full_tenants = OutOfTurn()

    def take_out(self, which: Callable[[Job], bool]) -> list[Job]:
        """Takes out the waiting jobs for which that holds."""
        taken: list[Job] = []
        for origin in self._origins.values():
            found = [job for queue in origin.jobs.values() for job in queue if which(job)]
            if not found:
                continue
            gone = {job.attempt.event.id for job in found}
            for schedule, queue in list(origin.jobs.items()):
                kept = deque(job for job in queue if job.attempt.event.id not in gone)
                if kept:
                    origin.jobs[schedule] = kept
                else:
                    del origin.jobs[schedule]
            self._took_out(origin, len(found))
            taken += found
        return taken

    # -- now and then ------------------------------------------------------------------------------------

    def unblock(self) -> None:
        """Gives origins and tenants their turn again that may have room by now, as many as can use what is
        left: a thousand that wait for a place of one request cost one look when it ends."""
        for origin in list(self._pacing.values()):
            self._unblock(origin)
        left = MAX_IN_FLIGHT - self.in_flight
        for _ in range(UNBLOCKED_AT_ONCE):
            tenant = self._full_tenants.next(left)
            if tenant is not None:
                self._unblock_tenant(tenant)
            full = self._full_origins.next(left // SHARES_OF_THE_REST)
            if full is not None:
                self._unblock(full)
            elif tenant is None:
                break
            left -= 1

    @property
    def is_pacing(self) -> bool:
        """Whether some wait for nothing but the time."""
        return bool(self._pacing)

    @property
    def has_room_again(self) -> bool:
        """Whether `unblock` would give another turn because of what is left."""
        left = MAX_IN_FLIGHT - self.in_flight
        return (
            self._full_tenants.next(left) is not None
            or self._full_origins.next(left // SHARES_OF_THE_REST) is not None
        )

    def review(self, now: float, held: int) -> list[Postponed]:
        """Forgets idle origins, and returns what has to come later. `held`: the worker's events."""
        postponed: list[Postponed] = []
        idle: list[str] = []
        self._saturated = sum(self._is_saturated(origin, now) for origin in self._origins.values())
        for origin in self._origins.values():
            if origin.blocked and origin.waiting and origin.full_since is None and self._is_at_limit(origin):
                origin.full_since = now  # it had room when it was last looked at, and the limit has moved
            if origin.waiting and self._is_saturated(origin, now):
                postponed += self._beyond(origin, now, held)
            if self._is_idle(origin, now):
                idle.append(origin.name)
        for name in idle:
            del self._origins[name]
        if idle:
            there = {origin.tenant.name for origin in self._origins.values()}
            self._tenants = {name: each for name, each in self._tenants.items() if name in there}
        return postponed

    def waiting_long(self, now: float) -> Iterator[Job]:
        """The jobs that wait for origins which have been at their limits for some time."""
        for origin in self._origins.values():
            if origin.waiting and self._is_saturated(origin, now):
                for queue in origin.jobs.values():
                    yield from queue

    def loads(self, now: float, *, most: int) -> list[Load]:
        """The origins with the most events, those first that hold up something."""
        loads = [
            Load(
                origin.name,
                origin.in_flight,
                self._limit(origin),
                origin.waiting,
                origin.returns.coming(now),
                now - origin.full_since if origin.full_since is not None else 0.0,
            )
            for origin in self._origins.values()
        ]
        loads.sort(key=lambda load: (load.postponed + load.waiting, load.in_flight), reverse=True)
        return loads[:most]

    # -- one origin --------------------------------------------------------------------------------------

    def _origin_of(self, job: Job) -> Origin:
        key = _key(job)
        origin = self._origins.get(key)
        if origin is None:
            name = tenant_of(job.attempt.event.id)
            self._has_tenants |= name != TENANT
            tenant = self._tenants.setdefault(name, TenantQueues(name))
            concurrency = self._concurrency[job.attempt.deliverable.action.kind]
            origin = self._origins[key] = Origin(key, tenant, concurrency)
        return origin

    def _has_share(self, tenant: TenantQueues) -> bool:
        """Whether it has as much in flight as is left: alone it has half, and there is room for the next
        one. A worker that knows the default tenant alone shares nothing."""
        return self._has_tenants and tenant.in_flight >= MAX_IN_FLIGHT - self.in_flight

    def _into_turn(self, origin: Origin) -> None:
        tenant = origin.tenant
        if not tenant.turns and not tenant.blocked:
            self._turns.append(tenant)
        tenant.turns.append(origin)

    def _count_waiting(self, origin: Origin, count: int) -> None:
        origin.waiting += count
        origin.tenant.waiting += count
        self.waiting += count

    def _limit(self, origin: Origin) -> int:
        if self.in_flight <= self._unshared:
            return origin.concurrency
        return max(1, min(origin.concurrency, (MAX_IN_FLIGHT - self.in_flight) // SHARES_OF_THE_REST))

    def _is_at_limit(self, origin: Origin) -> bool:
        """Whether its receiver, and not the pace of a burst, keeps it from more."""
        return origin.in_flight >= self._limit(origin)

    def _is_full(self, origin: Origin, now: float) -> bool:
        return self._is_at_limit(origin) or self._is_pacing(origin, now)

    def _is_pacing(self, origin: Origin, now: float) -> bool:
        """Whether as many were started just now as may be: the pace of a burst."""
        young = origin.young
        if len(young) < MAX_YOUNG:
            return False
        while young and next(iter(young.values())) < now - YOUNG_SECONDS:
            young.popitem(last=False)
        return len(young) >= MAX_YOUNG

    def _next_of(self, origin: Origin, now: float) -> Job | None:
        limit = self._limit(origin)
        if origin.in_flight >= limit or (len(origin.young) >= MAX_YOUNG and self._is_pacing(origin, now)):
            return None
        share = _share(limit)
        for _ in range(len(origin.jobs)):
            schedule, queue = origin.jobs.popitem(last=False)
            if origin.flying.get(schedule, 0) >= share:
                origin.jobs[schedule] = queue
                continue
            job = queue.popleft()
            if queue:
                origin.jobs[schedule] = queue
            self._count_waiting(origin, -1)
            return job
        return None

    def _took_out(self, origin: Origin, count: int) -> None:
        self._count_waiting(origin, -count)
        if not origin.waiting:
            origin.full_since = None
            if not origin.blocked:
                tenant = origin.tenant
                tenant.turns.remove(origin)
                if not tenant.turns and not tenant.blocked:
                    self._turns.remove(tenant)

    def _may_start(self, origin: Origin, schedule: str) -> bool:
        """Whether a job of this schedule could start, but for the pace of a burst."""
        limit = self._limit(origin)
        return origin.in_flight < limit and origin.flying.get(schedule, 0) < _share(limit)

    def _block(self, origin: Origin, now: float) -> None:
        """Takes it out of turn until it may have room: `ended`, `add` and `unblock` look for that."""
        origin.blocked = True
        if self._is_pacing(origin, now):
            self._pacing[origin.name] = origin
        limit = self._limit(origin)
        if origin.in_flight >= limit:
            limit = origin.in_flight
            if origin.full_since is None:
                origin.full_since = now
        if limit < origin.concurrency:
            self._full_origins.put(origin.name, origin, limit + 1)

    def _unblock(self, origin: Origin) -> None:
        origin.blocked = False
        self._pacing.pop(origin.name, None)
        self._full_origins.remove(origin.name)
        if origin.waiting:
            self._into_turn(origin)

    def _unblock_tenant(self, tenant: TenantQueues) -> None:
        tenant.blocked = False
        self._full_tenants.remove(tenant.name)
        if tenant.turns:
            self._turns.append(tenant)

    def _is_saturated(self, origin: Origin, now: float) -> bool:
        return origin.full_since is not None and now - origin.full_since > SATURATED_SECONDS

    def _allowed(self, origin: Origin, now: float, held: int) -> int:
        """How many may wait for an origin that is at its limit."""
        share = self._allowed_of_all(held)
        if self._is_saturated(origin, now):
            share = min(share, int(origin.ended.per_second(now) * KEPT_SECONDS))
        return max(MIN_KEPT, share)

    def _allowed_of_all(self, held: int) -> int:
        """How many may wait for what is at its limit, whatever its pace is."""
        return max(MIN_KEPT, (self._max_events - held) * WAITING_SHARE)

    def _beyond(self, origin: Origin, now: float, held: int) -> list[Postponed]:
        """Takes out what the origin cannot take soon: the latest of the schedules that have the most."""
        excess = origin.waiting - self._allowed(origin, now, held)
        # Level the longest queues first: a schedule with one event keeps it.
        lengths = sorted((len(queue) for queue in origin.jobs.values()), reverse=True)
        level = _level(lengths, excess)
        taken: list[Job] = []
        for queue in origin.jobs.values():
            while len(queue) > level and len(taken) < excess:
                taken.append(queue.pop())
        for schedule in [schedule for schedule, queue in origin.jobs.items() if not queue]:
            del origin.jobs[schedule]
        self._took_out(origin, len(taken))
        taken.sort(key=lambda job: job.attempt.event.due_at)
        return [self._postponed(origin, job, now) for job in taken]

    def _postponed(self, origin: Origin, job: Job, now: float) -> Postponed:
        """The next place in the line of those that come again: as fast as the origin has been answering."""
        least = max(1, MIN_RETURNS_A_SECOND // max(1, self._saturated))
        each_second = max(least, int(origin.ended.per_second(now)))
        seconds = origin.returns.place(now, each_second)
        return Postponed(job, seconds, job.origin, origin.in_flight, origin.waiting)

    def _is_idle(self, origin: Origin, now: float) -> bool:
        return not (
            origin.in_flight or origin.waiting or origin.returns.coming(now) or origin.ended.per_second(now)
        )


def _key(job: Job) -> str:
    """The origin, as it is shown: the default tenant's by itself."""
    tenant = tenant_of(job.attempt.event.id)
    return job.origin if tenant == TENANT else f"{job.origin} ({tenant})"


def _share(limit: int) -> int:
    """How much of its origin's limit a schedule may have."""
    return limit - limit // SHARES_OF_AN_ORIGIN


def _level(lengths: Sequence[int], excess: int) -> int:
    """The length to which the longest of `lengths` (falling) are cut, so that `excess` or more go in all."""
    total = 0
    for count, length in enumerate(lengths, 1):
        following = lengths[count] if count < len(lengths) else 0
        step = (length - following) * count
        if total + step >= excess:
            return length - math.ceil((excess - total) / count)
        total += step
    return 0
