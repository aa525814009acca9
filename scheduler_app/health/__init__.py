"""Checks of everything that callbacks need: a short form for `/readyz`, the whole for `scheduler doctor`."""

from scheduler_app.health.check import Check, Status
from scheduler_app.health.fleet import TICK_SECONDS, check_fleet

# `ready` is not imported here: it imports the store and Prometheus's client. Commands need not wait for
# these, and gunicorn's configuration has to choose the counters' folder before that client is imported.
__all__ = ["TICK_SECONDS", "Check", "Status", "check_fleet"]
