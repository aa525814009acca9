"""What a process gives up after a moment is not given up here because this machine stands still; and a
receiver that answers when it is told."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from scheduler_app.clock import clock
from scheduler_app.store import Store
from scheduler_app.usecases import stops
from scheduler_app.usecases.deeds import events
from scheduler_app.usecases.duties import dispatch
from scheduler_app.worker import Pipeline, claim, reports
from scheduler_app.worker import pipeline as pipelines
from tests.acceptance.journal import Journal
from tests.builders import LONGEST_SECONDS
from tests.executors import executors
from tests.integration.actions.receiver import Seen, says
from tests.processes import PATIENCE_SECONDS


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A beat that sees no kill switch or blackout, because its one look took half a second, dispatches; a
    selection that took a second is dispatched in part; a worker ends without the last runs; a person is told
    that a worker has not answered after three seconds; a request that takes ten seconds has failed, so that
    those of tests may take longer, and the lease of a claim suits them. Tests of these bounds set them
    themselves."""
    monkeypatch.setattr(stops, "ANSWER_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(dispatch, "SELECTION_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(events, "ANSWER_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(reports, "LAST_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(pipelines, "END_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(claim, "FIRST_TIMEOUT_SECONDS", LONGEST_SECONDS)


@pytest.fixture
def pipeline(store: Store) -> Iterator[Pipeline]:
    """A worker's, with its threads."""
    made = Pipeline(store, executors(), now=clock.now, worker="w1", horizon_seconds=5, max_events=10_000)
    made.start()
    yield made
    made.stop_starting()
    made.interrupt()
    made.stop()


@pytest.fixture
def slow(journal: Journal) -> Iterator[Callable[[], None]]:
    """The requests to `/slow` of a test's own `journal` are answered when this is called."""
    may_answer = threading.Event()

    def waits(seen: Seen, connection: Any) -> bool:
        may_answer.wait(PATIENCE_SECONDS)
        return says()(seen, connection)

    journal.script("/slow", waits)
    yield may_answer.set
    may_answer.set()
