"""The HTTP API: `create_app` makes a Flask application. gunicorn runs `scheduler_app.api:create_app()`."""

from scheduler_app.api.factory import check_settings, create_app

__all__ = ["check_settings", "create_app"]
