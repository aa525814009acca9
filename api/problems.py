"""Every error is a problem (RFC 9457, application/problem+json).

`register_problems` maps errors to statuses. Errors of /tasks alone are `{"error": text}` instead, and what is
not usable there is a 400.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from itertools import islice

from flask import Flask, Response, json, request
from marshmallow import ValidationError
from werkzeug.exceptions import HTTPException

from scheduler_app.api.json_types import View
from scheduler_app.domain.errors import (
    Conflict,
    InvalidField,
    LimitReached,
    NotAuthorized,
    NotFound,
    QuotaExceeded,
    StaleVersion,
)
from scheduler_app.domain.instants import shown_time
from scheduler_app.domain.masking import MASK
from scheduler_app.domain.triggers import NotUnderstood
from scheduler_app.domain.triggers.translation import ShownReading, shown_readings
from scheduler_app.store.faults import STORE_FAULTS, IndexMissing
from scheduler_app.telemetry import get_logger
from scheduler_app.webserver.limits import PREFIX


def refused_readings(error: NotUnderstood) -> View:
    """`not_understood` and `readings`; either may be empty."""
    return {
        "not_understood": list(error.not_understood),
        "readings": [_reading(reading) for reading in shown_readings(error)],
    }


def _reading(reading: ShownReading) -> View:
    given: View = {}
    if reading.recurrence is not None:
        given["recurrence"] = reading.recurrence
    if reading.run_at is not None:
        given["run_at"] = shown_time(reading.run_at)
    return given | {
        "description": reading.description,
        "occurrences": [
            {"run_time": shown_time(each.instant), "local": each.local.isoformat()}
            | ({"dst": each.dst} if each.dst else {})
            | ({"rolled_from": each.rolled_from.isoformat()} if each.rolled_from else {})
            for each in reading.occurrences
        ],
    }


log = get_logger(__name__)

PROBLEM_JSON = "application/problem+json"
RETRY_AFTER_SECONDS = 2
#: An answer names this many wrong fields, and counts the others.
MAX_ERRORS = 100
MAX_POINTER = 200
MAX_DETAIL = 500

DETAILS = {
    400: "the request cannot be understood; is its body well-formed JSON?",
    404: "there is nothing here; the paths are listed at /docs/openapi.yml",
    413: "the request is larger than 1 MiB (bulk: 16 MiB, import: 8 MiB, sign-in: 8 KiB); send less at once",
    415: "send JSON: Content-Type: application/json",
}

#: Of the errors that are about no field.
STATUSES: dict[type[Exception], int] = {
    NotFound: 404,
    NotAuthorized: 403,
    Conflict: 409,
    QuotaExceeded: 429,
    LimitReached: 403,
    StaleVersion: 412,
}

#: How paths begin that name a version of the API.
_VERSIONED = re.compile(r"/+api/+v[0-9]+(?:/|\Z)", re.IGNORECASE)

#: A message, and the path of the field that it is about.
Located = tuple[tuple[str, ...], object]


class Omitted(int):
    """Among the messages of a validation: the number of messages that were left out."""


class HttpProblem(Exception):
    """An error answer: a status, a sentence that says what to do, and the fields concerned."""

    def __init__(
        self,
        status: int,
        detail: str,
        errors: list[dict[str, str]] | None = None,
        headers: Mapping[str, str] | None = None,
        errors_omitted: int = 0,
        members: View | None = None,
    ) -> None:
        """`errors_omitted`: how many more there are than `errors`; `members`: extensions (RFC 9457, 3.2)."""
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = errors or []
        self.errors_omitted = errors_omitted
        self.headers = dict(headers or {})
        self.members = dict(members or {})

    def body(self) -> View:
        body: View = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
        if self.errors:
            body["errors"] = self.errors
        if self.errors_omitted:
            body["errors_omitted"] = self.errors_omitted
        return body | self.members

    def response(self) -> Response:
        return Response(
            # Ends with a newline like Flask's own answers, for the prompt of a shell.
            json.dumps(self.body()) + "\n",
            status=self.status,
            headers=self.headers,
            mimetype=PROBLEM_JSON,
        )


def register_problems(app: Flask) -> None:
    app.register_error_handler(HttpProblem, lambda problem: problem.response())
    app.register_error_handler(HTTPException, _of_http)
    for refusal in (*STATUSES, InvalidField):
        app.register_error_handler(refusal, _of_refusal)
    for fault in STORE_FAULTS:
        app.register_error_handler(fault, _of_store)
    app.register_error_handler(Exception, _of_ourselves)


def _of_refusal(error: Exception) -> Response:
    return problem_of(error).response()


def problem_of(error: Exception) -> HttpProblem:
    """The problem that a refusal is answered by: an error of `STATUSES`, InvalidField, or a ValidationError
    that the schema of a form, or of one item among many, has raised."""
    if isinstance(error, ValidationError):
        return _of_messages(422, error.messages, "item")
    if isinstance(error, InvalidField):
        errors = [{"pointer": f"/{error.field}", "detail": error.message}]
        members = refused_readings(error) if isinstance(error, NotUnderstood) else None
        return HttpProblem(422, f"{error.field}: {error.message}", errors, members=members)
    headers: dict[str, str] = {}
    limit: View = {}
    if isinstance(error, QuotaExceeded):
        headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
        limit = {} if error.limit is None else {"limit": error.limit}
    return HttpProblem(STATUSES[type(error)], str(error), headers=headers, members=limit)


def _of_http(error: HTTPException) -> Response:
    """Answers errors of Werkzeug and webargs; the latter carry messages by location and field."""
    status = error.code or 500
    data = getattr(error, "data", None) or {}
    # The outer keys are the locations that webargs read: "json", "query".
    if any(messages := data.get("messages", {}).values()):
        return _of_messages(status, messages, "request").response()
    headers = {
        name: value for name, value in error.get_headers() if name in ("Allow", "Retry-After", "Location")
    }
    detail = DETAILS.get(status, error.description or "")
    if status == 404 and len(request.path) > 1 and request.path.endswith("/"):
        detail = "there is nothing here; try the path without the slash at its end"
    if status == 404 and _VERSIONED.match(request.path) and not request.path.startswith(f"{PREFIX}/"):
        detail = (
            f"the only version of the API is v1: its paths begin with {PREFIX}/; /docs/openapi.yml lists them"
        )
    if status == 405:
        detail = f"this path does not take {request.method}, but {headers.get('Allow', 'no method')}"
    return HttpProblem(status, detail, headers=headers).response()


def _of_messages(status: int, messages: object, whole: str) -> HttpProblem:
    """`whole` is the subject of messages that name no field: "request" or "item"."""
    found = _flattened(messages)
    errors = [
        {"pointer": ("/" + "/".join(path))[:MAX_POINTER], "detail": str(message)[:MAX_DETAIL].rstrip(".")}
        for path, message in islice(_without_counts(found), MAX_ERRORS)
    ]
    omitted = sum(message if isinstance(message, Omitted) else 1 for _, message in _flattened(messages))
    first = errors[0]
    detail = f"{first['pointer'].lstrip('/') or whole}: {first['detail']}"
    return HttpProblem(status, detail, errors, errors_omitted=omitted - len(errors))


def _without_counts(found: Iterable[Located]) -> Iterator[Located]:
    return (each for each in found if not isinstance(each[1], Omitted))


def _flattened(messages: object, path: tuple[str, ...] = ()) -> Iterator[Located]:
    """Each message with the path of the field that it is about."""
    if isinstance(messages, Mapping):
        for key, value in messages.items():
            yield from _flattened(value, path if key == "_schema" else (*path, str(key)))
    elif isinstance(messages, Iterable) and not isinstance(messages, str):
        for message in messages:
            yield from _flattened(message, path)
    else:
        yield path, messages


def _logged_path() -> str:
    """The request's path without a token that stands in it."""
    token = (request.view_args or {}).get("token")
    return request.path.replace(token, MASK) if token else request.path


def _of_store(error: Exception) -> Response:
    message = "MongoDB did not answer a request"
    detail = "the database does not answer; nothing was lost, try again"
    if isinstance(error, IndexMissing):
        message = "A request needs an index of this release that is not there yet"
        detail = (
            "an index that this needs is still being built, as after an upgrade; nothing was lost, try again"
            " later: `scheduler doctor` names what is being built"
        )
    log.error("api.unavailable", message=message, path=_logged_path(), error=str(error)[:300])
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return HttpProblem(503, detail, headers=headers).response()


def _of_ourselves(error: Exception) -> Response:
    log.exception("api.failed", message="A request failed", method=request.method, path=_logged_path())
    return HttpProblem(500, "the server failed; the reason is in its log").response()


TASKS_PREFIX = "/tasks"


def register_task_errors(app: Flask) -> None:
    """Must be called before all others that change answers: this sees them last."""
    app.after_request(_as_task_error)


def _as_task_error(response: Response) -> Response:
    if response.mimetype != PROBLEM_JSON or not (
        request.path == TASKS_PREFIX or request.path.startswith(f"{TASKS_PREFIX}/")
    ):
        return response
    problem = json.loads(response.get_data())
    response.status_code = task_error_status(response.status_code)
    response.set_data(json.dumps({"error": problem["detail"]}) + "\n")
    response.mimetype = "application/json"
    return response


def task_error_status(status: int) -> int:
    """The status of an error here, of that of a problem."""
    return 400 if status == 422 else status
