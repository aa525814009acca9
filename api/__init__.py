"""The HTTP API: a Flask application made by `create_app`, for gunicorn as `api:create_app()`."""

from api.factory import create_app

__all__ = ["create_app"]
