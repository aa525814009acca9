"""What a process gives up after a moment is not given up here because this machine stands still."""

import pytest

from scheduler_app.usecases import polled
from scheduler_app.usecases.dispatch import dispatch
from scheduler_app.worker import pipeline, reports

PATIENCE_SECONDS = 60.0


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A beat that sees no kill switch or blackout, because its one look took half a second, dispatches; a
    selection that took a second is dispatched in part; a worker ends without the last runs. Tests of these
    bounds set them themselves."""
    monkeypatch.setattr(polled, "ANSWER_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(dispatch, "SELECTION_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(reports, "LAST_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(pipeline, "END_SECONDS", PATIENCE_SECONDS)
