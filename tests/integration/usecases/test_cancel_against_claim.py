"""A person cancels events while a worker claims them: whoever comes first, both know of it."""

import random
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest

from scheduler_app.clock import clock
from scheduler_app.domain.errors import Conflict
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.usecases.deeds.events import EventService
from scheduler_app.worker import Pipeline
from tests.acceptance.journal import Journal
from tests.builders import event, schedule
from tests.processes import PATIENCE_SECONDS

#: Events of one message; as many threads cancel them, one each.
TOGETHER = 8


@pytest.mark.parametrize("count", [160, pytest.param(10_000, marks=pytest.mark.long)])
def test_an_event_is_either_cancelled_and_never_sent_or_sent_once_and_not_cancelled(
    store: Store, pipeline: Pipeline, count: int
) -> None:
    service = EventService(store, dispatch=lambda *_: None)
    order = random.Random(count)
    with closing(Journal()) as journal, ThreadPoolExecutor(TOGETHER) as people:
        made_at = clock.now() - timedelta(hours=1)
        store.schedules.insert(schedule(made_at, url=journal.url("/a")))
        start = threading.Barrier(TOGETHER + 1)

        def cancel(event_id: str) -> bool:
            start.wait()
            try:
                return service.cancel(event_id, clock.now()).state is State.CANCELLED
            except Conflict:
                return False

        cancelled: dict[str, bool] = {}
        for first in range(0, count, TOGETHER):
            made = [
                event(made_at + timedelta(milliseconds=number), "s1")
                for number in range(first, first + TOGETHER)
            ]
            store.events.insert(made, clock.now(), "made")
            ids = [each.id for each in made]
            asked = order.sample(ids, TOGETHER)
            answers = people.map(cancel, asked)
            start.wait()
            if first == 0:
                # Once they come first for sure: a worker claims by one command, and they look before.
                answers = iter(list(answers))
            pipeline.delivery.deliver(ids)
            cancelled |= dict(zip(asked, answers, strict=True))
        assert pipeline.wait_until_empty(PATIENCE_SECONDS)
        states = states_of(store, list(cancelled))
        sent = [call.key for call in journal.calls["/a"]]
    assert len(sent) == len(set(sent))
    assert {each for each in cancelled if not cancelled[each]} == set(sent)
    assert states == {each: "cancelled" if was else "completed" for each, was in cancelled.items()}
    assert len(states) == count
    assert 0 < len(sent) < count


def states_of(store: Store, ids: Sequence[str]) -> dict[str, str]:
    found = store.mongo.collection("events").find({"_id": {"$in": list(ids)}}, {"state": 1})
    return {row["_id"]: row["state"] for row in found}
