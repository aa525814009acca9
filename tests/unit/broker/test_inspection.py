"""What a worker answers to `celery inspect in_flight`."""

import pytest

from scheduler_app.broker import inspection
from scheduler_app.broker.inspection import in_flight, set_in_flight_report


def test_a_worker_tells_what_is_in_flight_once_it_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "_report", None)
    assert in_flight(None) == {"error": "this worker has not started yet"}
    set_in_flight_report(lambda: {"events": 3})
    assert in_flight(None) == {"events": 3}
