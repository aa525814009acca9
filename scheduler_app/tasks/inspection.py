"""`celery -A scheduler_app inspect in_flight`: the requests that a worker waits for now.

A task ends when its events are claimed and handed over, so `inspect active` shows no request in flight.
"""

from typing import Any

from celery.worker.control import inspect_command

from scheduler_app.tasks import lifecycle

MAX_EVENTS_SHOWN = 1_000


@inspect_command()
def in_flight(state: Any) -> dict[str, Any]:
    """Events whose requests are in flight, and the origins that cannot keep up."""
    pipeline = lifecycle.worker().pipeline
    return {
        "in_flight": list(pipeline.courier.event_ids())[:MAX_EVENTS_SHOWN],
        **lifecycle.report(pipeline),
    }
