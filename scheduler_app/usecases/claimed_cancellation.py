"""Cancels an event that a worker has claimed, if its request has not begun."""

import threading
import time

from scheduler_app.clock import monotonic
from scheduler_app.domain.event import State
from scheduler_app.store import Store

#: A worker looks for such requests every second, and writes what it cancels some milliseconds later.
ANSWER_SECONDS = 3.0
LOOK_SECONDS = 0.05
#: Threads of one process that wait for workers at the same time; for other requests the event is in flight.
WAITING_AT_ONCE = 8

_turns = threading.BoundedSemaphore(WAITING_AT_ONCE)


def cancel_claimed(store: Store, event_id: str, message: str, *, tenant: str) -> None:
    """Asks the worker that holds the event to cancel it, and waits for its answer: what the event is then
    says whether it did. `message` is for its history. Raises a STORE_FAULT."""
    if store.mongo.is_dry_run or not _turns.acquire(blocking=False):
        return
    try:
        store.cancel_requests.put(event_id, message, tenant=tenant)
        until = monotonic() + ANSWER_SECONDS
        while _is_open(store, event_id, tenant) and monotonic() < until:
            time.sleep(LOOK_SECONDS)
        store.cancel_requests.remove([event_id])
    finally:
        _turns.release()


def _is_open(store: Store, event_id: str, tenant: str) -> bool:
    """Whether no worker has cancelled the event or refused to."""
    found = store.events.get(event_id, tenant=tenant)
    if found is None or found.state is not State.RUNNING:
        return False
    return store.cancel_requests.stands(event_id, tenant=tenant)
