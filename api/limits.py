"""How large a request may be."""

from flask import Flask, request

MAX_REQUEST_BYTES = 1024 * 1024
#: By endpoint; a thousand schedules are more than one.
LARGER = {"bulk.create_schedules": 16 * 1024 * 1024}


def register(app: Flask) -> None:
    """Before anything reads a body."""
    app.config["MAX_CONTENT_LENGTH"] = MAX_REQUEST_BYTES

    @app.before_request
    def allow_more() -> None:
        if request.endpoint in LARGER:
            request.max_content_length = LARGER[request.endpoint]
