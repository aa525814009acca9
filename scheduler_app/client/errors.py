"""What can go wrong, in one class."""

from typing import Any


class SchedulerError(Exception):
    """The API refused, or could not be reached. Its text is a sentence that says what to do.

    `status` is the HTTP status, None when there was no answer; `detail` the sentence alone; `errors` the
    fields concerned, each `{"pointer": "/rrule", "detail": "…"}`; `readings` the ways in which a text can be
    read that has several, or of which a part was understood, each with a `description` and its next
    `occurrences`; `limit` which of the tenant's limits is reached, such as `schedules`.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        errors: tuple[dict[str, str], ...] = (),
        readings: tuple[dict[str, Any], ...] = (),
        limit: str | None = None,
    ) -> None:
        super().__init__(detail if status is None else f"{status}: {detail}")
        self.status = status
        self.detail = detail
        self.errors = errors
        self.readings = readings
        self.limit = limit
