"""`/echo`: a receiver to try schedules out on, where callbacks may reach this machine.

It says what it was sent and repeats nothing of it: a body may hold a secret, and answers are kept.
"""

from flask import Flask, Response, jsonify, request

from scheduler_app.api.auth import is_local_name
from scheduler_app.api.declared_parameters import accepting_anything
from scheduler_app.api.problems import Problem
from scheduler_app.api.services import services
from scheduler_app.domain.http_action import METHODS

PATH = "/echo"
#: What `/echo/<status>` may answer.
STATUSES = range(200, 600)


def register(app: Flask) -> None:
    @app.route(PATH, methods=list(METHODS), provide_automatic_options=False)
    @app.route(f"{PATH}/<int:status>", methods=list(METHODS), provide_automatic_options=False)
    @accepting_anything
    def echo(status: int = 200) -> tuple[Response, int]:
        """Says what it was sent, with the status that the path asks for."""
        if not is_there() or status not in STATUSES:
            raise Problem(404, "there is no such path")
        said = jsonify(
            received=request.method,
            bytes=len(request.get_data()),
            idempotency_key=request.headers.get("Idempotency-Key", "")[:200],
        )
        return said, status


def is_there() -> bool:
    """Whether the request came under a name of this machine, and callbacks may reach that."""
    return is_local_name() and services().guard.refusal("127.0.0.1") is None
