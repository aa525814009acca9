"""When a worker asks for room again, by what the limiter said, and what wakes the thread that asks."""

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from scheduler_app.domain.destination import Destination
from scheduler_app.domain.flow_control import FlowGrant, WaitReason
from scheduler_app.domain.ids import WholeId
from scheduler_app.worker import flow_control
from scheduler_app.worker.attempt import Attempt, Job
from scheduler_app.worker.destination_queue import DestinationQueue
from scheduler_app.worker.flow_control import LEAST_PAUSE, LONGEST_PAUSE, FlowControl
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.recorder import Result
from tests.builders import event, schedule
from tests.processes import wait_until

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
NOBODY = cast(Any, None)


class Written:
    """Takes results as a recorder does."""

    def __init__(self) -> None:
        self.results: list[Result] = []

    def put(self, results: list[Result]) -> None:
        self.results += results


def destination() -> Destination:
    return Destination(id=WholeId("d"), url="http://x/", created_at=NOON, updated_at=NOON)


def job() -> Job:
    due = event(NOON)
    lease = Lease("token", [due.id], asked_at=0, timeout_seconds=10)
    return Job(Attempt(due, schedule(NOON), "token", "w"), lease, "destination d")


@pytest.mark.parametrize(
    ("wait", "pause"), [(0.0, LEAST_PAUSE), (0.2, 0.2), (LONGEST_PAUSE, LONGEST_PAUSE), (60.0, LONGEST_PAUSE)]
)
def test_room_is_asked_for_again_when_there_may_be_some_neither_at_once_nor_late(
    wait: float, pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_control, "monotonic", lambda: 100.0)
    control = FlowControl(None, NOBODY, NOBODY, now=lambda: NOON)
    waiting = DestinationQueue(destination())
    waiting.put(job())
    asked = waiting.ask(100.0)
    assert asked is not None
    assert control._obey(waiting, asked, FlowGrant(0, wait, WaitReason.RATE, 0.0, 0.0, is_open=False)) == []
    assert waiting.again_at == 100.0 + pause


def test_the_thread_that_asks_is_woken_by_what_comes_and_by_its_end() -> None:
    written = Written()
    control = FlowControl(None, NOBODY, cast(Any, written), now=lambda: NOON)
    control.start()
    wait_until(lambda: bool(cast(Any, control._changed)._waiters), "the thread to have nothing to do")
    control.put([(destination(), job())])
    wait_until(lambda: bool(written.results), "the job to be put off: nobody knows the limits")
    wait_until(lambda: bool(cast(Any, control._changed)._waiters), "the thread to have nothing to do")
    control.stop()
    control.join(60)
    assert not control.is_alive()
