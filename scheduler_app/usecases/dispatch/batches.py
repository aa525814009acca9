"""Batches: which events travel in one message, and when and in which lane."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler_app.domain.event import SUSPECT_AFTER
from scheduler_app.domain.event_ids import is_backfill
from scheduler_app.domain.lane import FRESH_FOR, Lane
from scheduler_app.domain.queues import CALLBACKS
from scheduler_app.store.events.outbox import Due

EVENTS_A_BATCH = 100
BATCH_SPAN = timedelta(milliseconds=100)
#: An origin with this many events in a span has batches of its own there.
EVENTS_OF_A_BUSY_ORIGIN = 50
#: Claiming early leaves only the request itself for the due instant. An edit has to wait for the end of an
#: event that is claimed, so this is no longer than a claim takes in a worker that is busy with others'.
CLAIM_AHEAD = timedelta(milliseconds=200)


@dataclass(frozen=True, slots=True)
class Batch:
    """Events that travel in one message; `eta` is when a worker takes it up, some time before the first of
    them is due; None when that has come."""

    ids: tuple[str, ...]
    eta: datetime | None
    lane: Lane = Lane.FRESH
    queue: str = CALLBACKS


def lane_of(event: Due, now: datetime) -> Lane:
    """The lane of an event that no person has just asked for. What is backfilled comes after what falls due
    by itself."""
    late = event.lost_leases >= SUSPECT_AFTER or event.due_at <= now - FRESH_FOR or is_backfill(event.id)
    return Lane.LATE if late else Lane.FRESH


def grouped(
    events: Sequence[Due],
    now: datetime,
    burst_ahead: timedelta,
    *,
    queue: str = CALLBACKS,
    urgent: bool = False,
) -> list[Batch]:
    """Batches of events (sorted by due time) due within the same span, for `queue`; all past ones count as
    now.

    In the order in which they are to be published: what workers take first, and then what several share,
    before those of busy origins. Full ones are taken up `burst_ahead` of their time.
    """
    alone = [event for event in events if event.lost_leases >= SUSPECT_AFTER]
    batches = [_batch([event], now, burst_ahead, Lane.LATE, queue) for event in alone]
    busy: list[Batch] = []
    others = [event for event in events if event.lost_leases < SUSPECT_AFTER] if alone else events
    for span in _spans(others, now):
        lane = Lane.URGENT if urgent else lane_of(span[0], now)
        shared, of_their_own = _shared_and_busy(span)
        batches += [_batch(some, now, burst_ahead, lane, queue) for some in _cut(shared)]
        for origin in of_their_own:
            busy += [_batch(some, now, burst_ahead, lane, queue) for some in _cut(origin)]
    order = list(Lane)
    return sorted([*batches, *busy], key=lambda batch: order.index(batch.lane))


def _spans(events: Sequence[Due], now: datetime) -> Iterator[list[Due]]:
    """The key of events that may travel in one message by their times; late events travel apart from fresh
    ones."""
    span: list[Due] = []
    first, lane = now, Lane.FRESH
    for event in events:
        due = max(event.due_at, now)
        if span and (due - first >= BATCH_SPAN or lane_of(event, now) is not lane):
            yield span
            span = []
        if not span:
            first, lane = due, lane_of(event, now)
        span.append(event)
    if span:
        yield span


def _shared_and_busy(span: list[Due]) -> tuple[list[Due], list[list[Due]]]:
    """The events that share batches, and those of each busy origin: how long a worker needs for its events,
    and whether their claim succeeds, is no matter of the others."""
    if len(span) < EVENTS_OF_A_BUSY_ORIGIN:
        return span, []
    by_origin: dict[str, list[Due]] = {}
    for event in span:
        by_origin.setdefault(event.origin, []).append(event)
    busy = {origin for origin, theirs in by_origin.items() if len(theirs) >= EVENTS_OF_A_BUSY_ORIGIN}
    shared = [event for event in span if event.origin not in busy]
    return shared, [by_origin[origin] for origin in by_origin if origin in busy]


def _cut(events: Sequence[Due]) -> Iterator[Sequence[Due]]:
    for first in range(0, len(events), EVENTS_A_BATCH):
        yield events[first : first + EVENTS_A_BATCH]


def _batch(events: Sequence[Due], now: datetime, burst_ahead: timedelta, lane: Lane, queue: str) -> Batch:
    ahead = burst_ahead if len(events) == EVENTS_A_BATCH else CLAIM_AHEAD
    eta = max(events[0].due_at, now) - ahead
    ids = tuple(event.id for event in events)
    return Batch(ids, eta if eta > now else None, lane, queue)
