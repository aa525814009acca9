"""What can go wrong, in one class."""

from typing import Any

import requests


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


def of_answer(answer: requests.Response) -> SchedulerError:
    """The problem (RFC 9457) in an answer; of one that is none, its status and its beginning."""
    try:
        problem: Any = answer.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict) or "detail" not in problem:
        said = " ".join(answer.text.split())[:200]
        return SchedulerError(f"not an answer of the API: {said or answer.reason}", status=answer.status_code)
    return SchedulerError(
        str(problem["detail"]), status=answer.status_code, errors=tuple(problem.get("errors", ()))
    )
