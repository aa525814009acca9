"""How large a request may be."""

from flask import Flask, request

from scheduler_app.webserver.limits import MAX_BODY_BYTES, max_body_bytes


def register(app: Flask) -> None:
    """Must precede everything that reads a body. The web server's own check is earlier, where it is ours."""
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES

    @app.before_request
    def allow_more() -> None:
        request.max_content_length = max_body_bytes(request.path)
