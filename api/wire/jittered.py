"""When the callbacks of occurrences fall due, as answers show it."""

from datetime import datetime, timedelta
from typing import NamedTuple

from scheduler_app.api.json_types import View
from scheduler_app.domain.jitter import due


class Jitter(NamedTuple):
    """The jitter of a schedule, or of a trigger that is not saved: that has no id, unless one was given."""

    seconds: float
    schedule_id: str | None

    def shown(self, instant: datetime) -> View:
        """The fields that OccurrenceOutput has for it."""
        if not self.seconds:
            return {}
        if self.schedule_id is not None:
            return {"due_at": due(self.schedule_id, instant, self.seconds)}
        return {"earliest": instant, "latest": instant + timedelta(seconds=self.seconds)}
