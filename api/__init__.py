"""The HTTP API: a Flask application that `create_app` makes; gunicorn runs it as `api:create_app()`."""

from api.factory import create_app

__all__ = ["create_app"]
