"""`celery -A scheduler_app inspect in_flight`: the requests that a worker waits for now.

A task ends when its events are claimed and handed over, so `inspect active` shows no request in flight.
"""

from collections.abc import Callable
from typing import Any

from celery.worker.control import inspect_command

Report = dict[str, Any]
_report: Callable[[], Report] | None = None


def set_in_flight_report(report: Callable[[], Report]) -> None:
    """What this process answers; a worker says it when it starts."""
    global _report
    _report = report


@inspect_command()
def in_flight(state: Any) -> Report:
    """Events whose requests are in flight, and the origins that cannot keep up."""
    return _report() if _report else {"error": "this worker has not started yet"}
