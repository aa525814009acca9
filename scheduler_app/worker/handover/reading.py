"""Reads the schedules of claimed events, and the destinations that they name."""

from collections.abc import Sequence

from scheduler_app.domain.destination import destination_of
from scheduler_app.domain.event import Event, Kind
from scheduler_app.domain.message import Message
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from scheduler_app.worker.handover.batch import Destinations, Schedules
from scheduler_app.worker.handover.retrying import Retrying


class Reading:
    """Threads share it."""

    def __init__(self, store: Store, retrying: Retrying) -> None:
        self._store = store
        self._retrying = retrying

    def schedules(self, events: Sequence[Event]) -> Schedules:
        """The schedules of the events; a claim brings messages whole. Raises Stopping."""
        ids = list({event.schedule_id for event in events if event.kind is not Kind.MESSAGE})
        if not ids:
            return {}
        return self._retrying.until_answered(lambda: self._store.schedules.for_delivery(ids))

    def destinations(self, events: Sequence[Event], schedules: Schedules) -> Destinations:
        """The destinations that the schedules and messages name; most name none. Raises Stopping."""
        found = [each.action for each in schedules.values() if isinstance(each, Schedule)]
        found += [event.message.action for event in events if isinstance(event.message, Message)]
        ids = list({own_id for action in found if (own_id := destination_of(action))})
        if not ids:
            return {}
        return self._retrying.until_answered(lambda: self._store.destinations.for_delivery(ids))
