"""What a schedule would be worth: whether its receiver answers, its queue has workers, and limits and
blackouts leave room for what it owes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.domain.blackout import BlackoutOutlooks
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.forecast import Buckets, Counts, occurrences_by_bucket
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store import Store
from scheduler_app.usecases.deeds.destinations import DestinationService, ReceiverLook

NEXT_RUNS: Final = 5
AHEAD: Final = timedelta(days=1)
HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What can be said of a schedule at a moment; nothing of it binds the future."""

    next_runs: tuple[datetime, ...]
    receiver: ReceiverLook | None
    """None where no HTTP request is made."""
    queue: str
    workers: int
    owed_an_hour: int
    """The most in one of the next hours."""
    allowed_an_hour: int | None
    """By the rate of the destination; None: without bound."""
    held_back: int
    """How many of the next day fall into blackouts."""
    problems: tuple[str, ...] = ()
    """Sentences for people; empty where nothing is known to be in the way."""


@dataclass(frozen=True)
class PromiseQuestions:
    """`destinations` asks receivers."""

    store: Store
    destinations: DestinationService

    def of(self, schedule: Schedule, now: datetime, *, asks_receiver: bool = True) -> Promise:
        """What can be said at `now`. Raises a STORE_FAULT, and InvalidRecurrence for a rule that takes too
        long to tell."""
        destination = self._destination(schedule)
        counts = self._counts(schedule, now)
        queue = schedule.queue if destination is None else destination.queue_for(schedule.queue)
        workers = [node for node in self.store.processes.alive() if node.role == "worker" and node.consuming]
        found = Promise(
            next_runs=tuple(_next_runs(schedule, now)),
            receiver=self.destinations.reach(schedule, now) if asks_receiver else None,
            queue=queue,
            workers=sum(queue in node.queues for node in workers),
            owed_an_hour=max(counts.sent.values(), default=0),
            allowed_an_hour=_allowed(destination),
            held_back=sum(counts.withheld.values()),
        )
        return replace(found, problems=tuple(self._problems(schedule, found, destination)))

    def _destination(self, schedule: Schedule) -> Destination | None:
        own_id = schedule.action.destination
        found = None if own_id is None else self.store.destinations.get(own_id)
        return found if isinstance(found, Destination) else None

    def _counts(self, schedule: Schedule, now: datetime) -> Counts:
        """What is sent in each hour of the next day."""
        buckets = Buckets(now, now + AHEAD, HOUR)
        outlooks = BlackoutOutlooks(self.store.blackouts.everybodys(now), buckets.start, buckets.end)
        named = schedule.action.destination
        outlook = outlooks.of(schedule.tenant, schedule.id, schedule.tags, named) if outlooks else None
        planned = replace(schedule, next_run_at=schedule.recurrence().after(now), checkpoint=None)
        return occurrences_by_bucket(planned, buckets, outlook, outlooks.begins)

    def _problems(self, schedule: Schedule, found: Promise, destination: Destination | None) -> Iterator[str]:
        if not found.next_runs and schedule.trigger.fires_by_itself:
            yield "it has no occurrence to come"
        if schedule.state is not ScheduleState.ACTIVE:
            yield f"it is {schedule.state.value}: nothing is sent"
        if found.receiver is not None and found.receiver.is_reachable is False:
            yield f"its receiver does not answer: {found.receiver.error}"
        if not found.workers:
            yield f"no worker serves its queue {found.queue}: its events would wait"
        allowed = found.allowed_an_hour
        if allowed is not None and found.owed_an_hour > allowed:
            yield f"it owes {found.owed_an_hour:,} an hour, and the destination allows {allowed:,}"
        if destination is not None and destination.paused:
            yield f"the destination {name_of(destination.id)} is paused"
        if found.held_back:
            yield f"{found.held_back:,} of the next day fall into blackouts"
        named = schedule.action.destination
        stopping = self.store.kill_switches.everybodys().stopping(schedule.id, schedule.tags, named)
        if stopping is not None:
            yield f"the kill switch of {stopping} is on"


def _next_runs(schedule: Schedule, now: datetime) -> Iterator[datetime]:
    recurrence, at = schedule.recurrence(), now
    for _ in range(NEXT_RUNS):
        following = recurrence.after(at)
        if following is None:
            return
        yield following
        at = following


def _allowed(destination: Destination | None) -> int | None:
    rate = None if destination is None else destination.rate_per_second
    return None if rate is None else int(rate * HOUR.total_seconds())
