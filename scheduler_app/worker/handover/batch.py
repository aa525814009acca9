"""The values that the steps of the handover pass on."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scheduler_app.domain.destination import Destination
from scheduler_app.domain.event import Event
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store.destinations.documents import CorruptDestination
from scheduler_app.store.schedules.corrupt import CorruptSchedule
from scheduler_app.worker.lease import Lease

#: The schedules of a batch by their ids, without those that are gone.
Schedules = Mapping[str, Schedule | CorruptSchedule]
#: The destinations that a batch needs by their ids, without those that are gone.
Destinations = Mapping[str, Destination | CorruptDestination]


class ClaimedBatch(NamedTuple):
    """The events that one claim won, soonest first, and its lease."""

    events: Sequence[Event]
    lease: Lease
