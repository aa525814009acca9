"""The specification without a running application, for the manual."""

from flask import Flask

from api import routes
from api.openapi import Node, completed, spec_options
from scheduler_app.config import Settings


def specification(settings: Settings) -> Node:
    """The OpenAPI document of every route below /api, as `/docs/openapi.yml` gives it with these settings."""
    app = Flask("rrule-scheduler")
    app.config.update(spec_options(settings))
    return completed(routes.register(app).spec.to_dict())
