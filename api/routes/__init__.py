"""The routes, a module for each group: a route reads its arguments, calls a use case and answers."""

from flask import Flask
from flask_smorest import Api

from api import converters
from api.routes import bulk, bulk_edits, destinations, events, export, messages, preview, schedules, signing


def register(app: Flask) -> Api:
    """Adds every route below /api; this order is the order of the specification."""
    converters.register(app)
    api = Api(app)
    groups = (schedules, bulk, bulk_edits, export, preview, signing, destinations, events, messages)
    for module in groups:
        api.register_blueprint(module.blueprint)
    return api
