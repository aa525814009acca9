"""Errors of /tasks are `{"error": text}`, in the place of problems; what is not usable is a 400."""

from flask import Flask, Response, json, request

from scheduler_app.api.problems import PROBLEM_JSON

PREFIX = "/tasks"


def register(app: Flask) -> None:
    """Must be called before all others that change answers: this sees them last."""
    app.after_request(_as_tasks)


def _as_tasks(response: Response) -> Response:
    if response.mimetype != PROBLEM_JSON or not (
        request.path == PREFIX or request.path.startswith(f"{PREFIX}/")
    ):
        return response
    problem = json.loads(response.get_data())
    response.status_code = status_shown(response.status_code)
    response.set_data(json.dumps({"error": problem["detail"]}) + "\n")
    response.mimetype = "application/json"
    return response


def status_shown(status: int) -> int:
    """The status of an error here, of that of a problem."""
    return 400 if status == 422 else status
