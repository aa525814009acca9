"""Asks which events of a batch are held back by earlier events of their schedules."""

from scheduler_app.domain.schedule import Schedule
from scheduler_app.worker.followers import Followers
from scheduler_app.worker.handover.batch import ClaimedBatch, Schedules
from scheduler_app.worker.handover.retrying import Retrying
from scheduler_app.worker.handover.withdrawal import is_withdrawn
from scheduler_app.worker.overlap import Held, Overlap


class OverlapCheck:
    """Threads share it."""

    def __init__(self, overlap: Overlap, followers: Followers, retrying: Retrying) -> None:
        self._overlap = overlap
        self._followers = followers
        self._retrying = retrying

    def held_back(self, batch: ClaimedBatch, schedules: Schedules) -> Held:
        """The events whose requests are not made now, by their ids; most schedules allow runs to overlap.
        Raises Stopping."""
        asking = {
            each.id: each
            for each in schedules.values()
            if isinstance(each, Schedule) and each.run_overlap != "allow"
        }
        if not asking:
            return {}
        pairs = [
            (event, schedule)
            for event in batch.events
            if (schedule := asking.get(event.schedule_id)) and not is_withdrawn(event, schedule)
        ]
        self._followers.note(pairs)
        return self._retrying.until_answered(lambda: self._overlap.held_back(pairs, batch.lease))
