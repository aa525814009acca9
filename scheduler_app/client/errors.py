"""What can go wrong, in one class."""


class SchedulerError(Exception):
    """The API refused, or could not be reached. Its text is a sentence that says what to do.

    `status` is the HTTP status, None when there was no answer; `detail` the sentence alone; `errors` the
    fields concerned, each `{"pointer": "/rrule", "detail": "…"}`.
    """

    def __init__(
        self, detail: str, *, status: int | None = None, errors: tuple[dict[str, str], ...] = ()
    ) -> None:
        super().__init__(detail if status is None else f"{status}: {detail}")
        self.status = status
        self.detail = detail
        self.errors = errors
