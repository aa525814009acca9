"""Questions about the whole: search, tags, and what ran and is to come."""

from datetime import datetime

from scheduler_app.client import calls
from scheduler_app.client.calls import Call, Listing, instants
from scheduler_app.client.methods import listing, operation
from scheduler_app.client.record import Record


class QuestionOperations:
    """Every method raises SchedulerError."""

    @operation
    def search(self, words: str, *, limit: int | None = None, tag: str | None = None) -> Call[Record]:
        """`schedules`, `tags`, `destinations`, `events` and `messages` with these words in a name, a tag, a
        phrase, a URL or at the beginning of an id; `incomplete` tells whether there may be more. With `tag`,
        only schedules that have it, and their events."""
        return calls.get("/api/v1/search", Record.of, {"q": words, "limit": limit, "tag": tag})

    @operation
    def tags(
        self, prefix: str | None = None, *, after: str | None = None, limit: int | None = None
    ) -> Call[Record]:
        """`tags` that begin so, each with the number of its `schedules`; `next` continues as `after`."""
        return calls.get("/api/v1/tags", Record.of, {"prefix": prefix, "after": after, "limit": limit})

    @operation
    def tag_summary(
        self,
        tag: str,
        *,
        after: datetime | str | None = None,
        until: datetime | str | None = None,
        timezone: str | None = None,
    ) -> Call[Record]:
        """What ran and is to come of the schedules with a tag from `after` (default: the beginning of today)
        until `until` (default: a week later), in `days` of the timezone, and its open `failures`."""
        query = instants({"from": after, "to": until}) | {"tag": tag, "timezone": timezone}
        return calls.get("/api/v1/tags/summary", Record.of, query)

    @operation
    def run_calendar(
        self,
        *,
        after: datetime | str | None = None,
        until: datetime | str | None = None,
        bucket_seconds: int | None = None,
        timezone: str | None = None,
        tag: str | None = None,
        destination: str | None = None,
        schedule_id: str | None = None,
    ) -> Call[Record]:
        """What ran and is to come from `after` until `until`, in parts (`buckets`) of `bucket_seconds`;
        86,400 are the days of the timezone. `rare` names the schedules with few runs, and `notes` say what
        is estimated or left out."""
        query = instants({"from": after, "to": until}) | {"bucket": bucket_seconds, "timezone": timezone}
        query |= {"tag": tag, "destination": destination, "schedule_id": schedule_id}
        return calls.get("/api/v1/calendar", Record.of, query)

    @listing
    def all_edits(
        self,
        *,
        after: datetime | str | None = None,
        until: datetime | str | None = None,
        by: str | None = None,
    ) -> Listing[Record]:
        """Yields the edits of all schedules, newest first: `schedule_id`, `what`, `by`, `before`, `after`, …;
        `by` is the name of a key."""
        which = instants({"from": after, "to": until}) | {"by": by}
        return Listing("/api/v1/edits", "edits", Record.of, which)
