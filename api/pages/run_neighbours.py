"""What ran around a run: the runs before and after it of its schedule, and those of its receiver then."""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.api.json_types import View
from scheduler_app.api.pages.forms import LOOK_SECONDS
from scheduler_app.api.services import caller, services, tenant
from scheduler_app.api.wire.event import receiver_field, receiver_shown
from scheduler_app.domain.states import FINAL, State
from scheduler_app.store.events.events import EventRecord
from scheduler_app.store.events.lists import NO_FILTER
from scheduler_app.store.paging import PageRequest

#: How far from a run another one of its receiver is around it, and how many of them are counted.
NEAR: Final = timedelta(minutes=5)
MOST_NEAR: Final = 100


@dataclass(frozen=True, slots=True)
class ReceiverThen:
    """The other runs of a receiver around a run."""

    receiver: str
    ended: int
    done: int
    is_cut: bool
    """Whether there may be more."""
    query: View
    """Of the list that has them."""


@dataclass(frozen=True, slots=True)
class Around:
    """What ran around a run; None where there is nothing of it."""

    before: EventRecord | None = None
    after: EventRecord | None = None
    next_at: datetime | None = None
    """Of the schedule's next run, where none is there yet."""
    others: ReceiverThen | None = None


def around(found: EventRecord, receiver: str | None, next_at: datetime | None) -> Around:
    """`receiver` is the isolation key of what it calls, `next_at` when its schedule runs next."""
    others = _others(found, receiver) if receiver else None
    if not found.schedule_id:
        return Around(others=others)
    lists, at, owner = services().event_lists, found.run_time, found.schedule_id
    before = lists.page(tenant(), PageRequest(limit=1, until=at), schedule_id=owner).rows
    window = PageRequest(limit=2, since=at)
    following = lists.page(tenant(), window, schedule_id=owner, soonest_first=True).rows
    after = next((each for each in following if each.id != found.id), None)
    is_to_come = after is None and next_at is not None and next_at > at
    return Around(next(iter(before), None), after, next_at if is_to_come else None, others)


def _others(found: EventRecord, receiver: str) -> ReceiverThen | None:
    """None for a key with tags: they are also others' runs."""
    if caller().tags:
        return None
    since, until = found.run_time - NEAR, found.run_time + NEAR
    window = PageRequest(limit=MOST_NEAR, since=since, until=until, seconds=LOOK_SECONDS)
    page = services().event_lists.page(tenant(), window, narrowing=replace(NO_FILTER, origin=receiver))
    states = Counter(each.state for each in page.rows if each.id != found.id)
    ended = sum(states[each] for each in FINAL)
    if not ended:
        return None
    times = {"from": since.isoformat(), "to": until.isoformat()}
    return ReceiverThen(
        receiver=receiver_shown(receiver).removeprefix("destination "),
        ended=ended,
        done=states[State.COMPLETED],
        is_cut=page.next is not None,
        query=dict(receiver_field(receiver)) | times,
    )
