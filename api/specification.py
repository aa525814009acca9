"""The specification without a running application, for the manual."""

from flask import Flask

from scheduler_app.api import routes
from scheduler_app.api.openapi import Node, completed, spec_options
from scheduler_app.config import Settings


def specification(settings: Settings) -> Node:
    """The OpenAPI document of every route below /api/v1, as `/docs/openapi.yml` gives it for `settings`."""
    app = Flask("rrule-scheduler")
    app.config.update(spec_options(settings))
    return completed(routes.register(app).spec.to_dict())
