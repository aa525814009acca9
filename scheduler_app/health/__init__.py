"""Checks of everything that callbacks need: a short form for `/readyz`, the whole for `scheduler doctor`."""

from scheduler_app.health.check import Check, Status

# `ready` and `fleet` are not imported here: they import the store and Prometheus's client. Commands need not
# wait for these, and gunicorn's configuration has to choose the counters' folder before that client is
# imported.
