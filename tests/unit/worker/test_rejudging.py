"""The thread that compares what waits in a worker with what holds now."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pymongo.errors import AutoReconnect
from structlog.testing import capture_logs

from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.store import Store
from scheduler_app.worker.attempt import Attempt, Job
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.recorder import Recorder
from scheduler_app.worker.rejudging import LOOK_SECONDS, Present, Rejudging
from tests.builders import message
from tests.unit.worker.test_lease import NOON


def rejudging(places: Any = (), versions: Any = None) -> Rejudging:
    store = SimpleNamespace(
        cancel_requests=SimpleNamespace(texts=dict), destinations=SimpleNamespace(versions=versions)
    )
    return Rejudging(
        *(cast(Store, store), cast(Recorder, None)),
        places=places,
        take_out=lambda _: [],
        in_flight=list,
        held=lambda: 1,
    )


def test_a_store_that_is_away_is_told_of_once_and_every_look_is_followed_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, pauses, found = rejudging(), list[float](), list[Exception | None]()
    away = AutoReconnect("of the test")
    found += [away, away, None, away, ZeroDivisionError("a mistake of ours"), None]
    before, looks = made.looks, iter(found)

    def look() -> None:
        if (error := next(looks)) is not None:
            raise error

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        return len(pauses) > len(found)

    monkeypatch.setattr(made, "look", look)
    monkeypatch.setattr(made, "_ended", SimpleNamespace(wait=wait))
    with capture_logs() as lines:
        made.run()
    told = [line["event"] for line in lines]
    assert told == ["rejudging.unknown", "rejudging.unknown", "rejudging.failed"]
    assert made.looks - before == len(found)
    assert set(pauses) == {LOOK_SECONDS}


def test_a_message_that_waits_obeys_its_destination_and_where_nothing_waits_nothing_is_compared() -> None:
    jobs: list[Job] = []
    compared: list[Present] = []
    place = SimpleNamespace(waiting=lambda: jobs, compare=compared.append)
    made = rejudging([place], lambda ids: dict.fromkeys(ids, 2))
    made.look()
    assert compared == []
    due = message(NOON, url=NOT_GIVEN, destination="d")
    assert due.message is not None
    tried = Attempt(due, cast(Any, due.message), "token", "w1", destination_version=1)
    jobs.append(Job(tried, Lease("token", [due.id], asked_at=0, timeout_seconds=10), "origin"))
    made.look()
    (present,) = compared
    assert present == Present({}, {WholeId("d"): 2}, {})
    assert present.parted(jobs) == ([], jobs, [])
    current = jobs[0]._replace(attempt=Attempt(due, cast(Any, due.message), "t", "w", destination_version=2))
    assert present.parted([current]) == ([current], [], [])
