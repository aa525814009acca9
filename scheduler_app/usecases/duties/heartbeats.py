"""See which heartbeats are missed: open a cause once, and end it when a ping has come."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from scheduler_app.domain.heartbeat import Heartbeat
from scheduler_app.store import Store
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

HEARTBEATS_A_PAGE: Final = 200


class HeartbeatWatch:
    """Any number of beats may do it at once. The cause is written first: a beat that dies before it has
    noted that leaves the heartbeat to the next look, which finds the cause as it is."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def look_page(self, now: datetime) -> bool:
        """Looks at those that are due; True when there are more. Raises a STORE_FAULT."""
        found = self._store.heartbeats.due(now, limit=HEARTBEATS_A_PAGE)
        for heartbeat in found:
            self._look(heartbeat, now)
        return len(found) == HEARTBEATS_A_PAGE

    def _look(self, heartbeat: Heartbeat, now: datetime) -> None:
        judged = heartbeat.judged(now)
        is_missed = judged.missed_at is not None
        if is_missed:
            self._store.causes.touch([judged.tally()], observed=True)
        elif heartbeat.is_told and not self._store.causes.end(judged.cause_key, judged.well_since):
            return  # it is looked at again
        if not self._store.heartbeats.settle(replace(judged, is_told=is_missed)):
            # A ping or an edit has come since, or it is deleted: what that wrote is looked at next.
            self._take_back(heartbeat, now)
        elif is_missed and not heartbeat.is_told:
            log.warning(
                "heartbeat.missed",
                message="A heartbeat is missed",
                heartbeat=heartbeat.id,
                reason=judged.missed_why,
            )

    def _take_back(self, heartbeat: Heartbeat, now: datetime) -> None:
        """Ends the cause of one that is not missed any more, and that no later look would end."""
        current = self._store.heartbeats.get(heartbeat.id)
        if not isinstance(current, Heartbeat):
            self._store.causes.end(heartbeat.cause_key, now)
        elif current.missed_at is None and not current.is_told:
            self._store.causes.end(current.cause_key, current.well_since)
