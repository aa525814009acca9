"""Receiving callbacks with Flask.

>>> @app.post("/nightly")
... @receives(receiver)
... def nightly(delivery):
...     print(delivery.json())
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Any

from flask import Response, current_app, request
from werkzeug.exceptions import RequestEntityTooLarge

from scheduler_app.receiver.receiver import Answer, Delivery, Receiver


def receives(receiver: Receiver) -> Callable[[Callable[..., Any]], Callable[..., Response]]:
    """Makes a view of a function of the delivery, and of what the URL holds.

    It returns what any view does, or None for a 204. Its event is done unless it raises, aborts or answers
    with a status of 400 or more.
    """

    def decorate(view: Callable[..., Any]) -> Callable[..., Response]:
        @wraps(view)
        def received(*args: Any, **kwargs: Any) -> Response:
            def work(delivery: Delivery) -> Response:
                result = current_app.ensure_sync(view)(delivery, *args, **kwargs)
                return _response(Answer(204)) if result is None else current_app.make_response(result)

            request.max_content_length = receiver.max_body_bytes
            try:
                body = request.get_data()
            except RequestEntityTooLarge:
                return _response(receiver.too_large())
            result = receiver.handle(
                list(request.headers.items()),
                body,
                work,
                now=datetime.now(UTC),
                is_success=lambda response: response.status_code < 400,
            )
            return _response(result) if isinstance(result, Answer) else result

        return received

    return decorate


def _response(answer: Answer) -> Response:
    return Response(answer.body, answer.status, mimetype="text/plain")
