"""Events whose destination says which workers send them wait in that queue, unless their schedule or message
names one itself."""

from collections.abc import Mapping, Sequence

from scheduler_app.domain.destination import Destination
from scheduler_app.domain.queues import CALLBACKS
from scheduler_app.store.destinations.documents import CorruptDestination
from scheduler_app.store.events.outbox import Due


def misplaced(
    by_destination: Mapping[str, Sequence[Due]],
    destinations: Mapping[str, Destination | CorruptDestination],
    queue: str,
) -> dict[str, list[str]]:
    """The ids of those events that wait in `queue` and belong into another one, by that other one."""
    moves: dict[str, list[str]] = {}
    for destination_id, events in by_destination.items():
        destination = destinations.get(destination_id)
        if not isinstance(destination, Destination):
            continue
        for event in events:
            own = CALLBACKS if event.queue_by_destination else queue
            right = destination.queue_for(own)
            if right != queue:
                moves.setdefault(right, []).append(event.id)
    return moves
