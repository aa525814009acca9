"""Readiness: what a callback needs, is it there? `/readyz` asks in short, `scheduler doctor` at length."""

from scheduler_app.health.check import Check, Status
from scheduler_app.health.fleet import TICK_SECONDS, check_fleet

# `ready` brings the store along, and with it Prometheus's client, which a command line needs not wait for and
# which gunicorn's configuration must not import before it has said where the processes count.
__all__ = ["TICK_SECONDS", "Check", "Status", "check_fleet"]
