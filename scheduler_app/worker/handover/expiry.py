"""Takes the events out of a batch that are too late by a policy of their own."""

from collections.abc import Mapping
from datetime import datetime

from scheduler_app.domain.lateness import Expiry
from scheduler_app.domain.message import Message
from scheduler_app.domain.schedule import Schedule
from scheduler_app.worker.followers import Followers
from scheduler_app.worker.handover.batch import ClaimedBatch, Schedules
from scheduler_app.worker.handover.retrying import Retrying
from scheduler_app.worker.handover.withdrawal import is_withdrawn
from scheduler_app.worker.late_events import LateEvents
from scheduler_app.worker.recorder import Expired, Recorder


class ExpiryStep:
    """Threads share it."""

    def __init__(
        self,
        late_events: LateEvents,
        followers: Followers,
        recorder: Recorder,
        retrying: Retrying,
    ) -> None:
        self._late_events = late_events
        self._followers = followers
        self._recorder = recorder
        self._retrying = retrying

    def without_late(self, batch: ClaimedBatch, schedules: Schedules, now: datetime) -> ClaimedBatch:
        """Gives the events that are late `now` to the recorder and returns the batch without them. Raises
        Stopping."""
        expired = self._expired(batch, schedules, now)
        if not expired:
            return batch
        late = [event for event in batch.events if event.id in expired]
        owners = ((event, schedules.get(event.schedule_id)) for event in late)
        # An event that waits for a late one is released when that one is recorded.
        self._followers.note([(event, owner) for event, owner in owners if isinstance(owner, Schedule)])
        self._recorder.put([Expired(event.id, batch.lease, expired[event.id]) for event in late])
        return batch._replace(events=[event for event in batch.events if event.id not in expired])

    def _expired(self, batch: ClaimedBatch, schedules: Schedules, now: datetime) -> Mapping[str, Expiry]:
        """The late events by their ids; most schedules and messages have no such policy."""
        judged = [
            (event, asked)
            for event in batch.events
            if isinstance(asked := event.message or schedules.get(event.schedule_id), Schedule | Message)
            and asked.lateness.judges
            and not (isinstance(asked, Schedule) and is_withdrawn(event, asked))
        ]
        if not judged:
            return {}
        return self._retrying.until_answered(lambda: self._late_events.expired(judged, now))
