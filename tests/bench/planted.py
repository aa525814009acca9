"""Schedules and events put straight into the store, as expansion would have made them."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from scheduler_app.clock import clock
from scheduler_app.domain.event import Event, scheduled
from scheduler_app.domain.schedule import Schedule
from scheduler_app.usecases.duties.cause_inspection import NO_FUTURE
from tests.bench.arrivals import Arrival, judged
from tests.bench.ground import Ground, sleep_until, wait_for
from tests.bench.receiver import Receiver
from tests.bench.report import Row
from tests.builders import schedule

SCHEDULES = 100
EVENTS_AT_ONCE = 5_000


def make_schedules(
    made: Ground,
    *,
    prefix: str = "bench",
    path: str = "",
    count: int = SCHEDULES,
    receiver: Receiver | None = None,
    **fields: Any,
) -> list[Schedule]:
    """Schedules that fire only in some months; the events are made beside them. Those of a later time would
    be told as stalled, and each look at what is wrong would go through them.

    They call `path` at the sink, or in turn at the origins of `receiver`; `fields` are those of a draft.
    """
    now, receiver = clock.now(), receiver or made.sink
    first = now + NO_FUTURE / 2
    schedules = [
        schedule(
            now,
            f"{prefix}{number}",
            url=receiver.url(number) + path,
            method="POST",
            rrule=f"DTSTART:{first:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=YEARLY",
            **fields,
        )
        for number in range(count)
    ]
    made.store.schedules.insert_many(schedules)
    # Nobody has created them: beats would write their lines into the audit while something is measured.
    these = {"_id": {"$in": [each.id for each in schedules]}}
    made.store.mongo.collection("schedules").update_many(these, {"$unset": {"unlogged": ""}})
    return schedules


def events_at(schedules: list[Schedule], count: int, due: Callable[[int], datetime]) -> list[Event]:
    """Events with ids of their own: revisions stand for what else would tell them apart."""
    return [
        scheduled(schedules[number % len(schedules)].id, 1 + number // len(schedules), due(number))
        for number in range(count)
    ]


def insert(made: Ground, events: list[Event]) -> None:
    for start in range(0, len(events), EVENTS_AT_ONCE):
        some = events[start : start + EVENTS_AT_ONCE]
        made.store.events.insert(some, clock.now(), "made by the benchmark")


def delivered(made: Ground, events: list[Event], seconds: float) -> tuple[Row, list[Arrival]]:
    """Inserts the events, waits until all are finished, at most `seconds` after the last one is due, and
    judges them."""
    before = made.completed()
    made.arrivals()  # those of what was before; some of these may arrive while others are inserted
    insert(made, events)
    made.costs.start()
    sleep_until(max(event.due_at for event in events))
    wait_for(made.idle, seconds, "all to complete")
    finished = clock.now() - min(event.due_at for event in events)
    costs = made.costs.since_start(len(events))
    arrivals = made.arrivals()
    row = {
        **judged(arrivals, len(events)),
        "completed": made.completed() - before,
        "recorded_ms": round(finished.total_seconds() * 1000),
        "recorded_per_s": round(len(events) / finished.total_seconds()),
        **costs,
    }
    return row, arrivals


def soon(seconds: float, count: int) -> datetime:
    """A whole second that comes when so many events have been inserted, and dispatched ahead."""
    return (clock.now() + timedelta(seconds=seconds + count / 10_000)).replace(microsecond=0)


def whole_ms(at: datetime) -> datetime:
    """MongoDB keeps milliseconds."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)
