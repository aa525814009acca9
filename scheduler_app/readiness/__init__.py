"""Readiness: what a callback needs, is it there? `/readyz` asks in short, `scheduler doctor` at length."""

from scheduler_app.readiness.check import Check, Status
from scheduler_app.readiness.fleet import TICK_SECONDS, check_fleet
from scheduler_app.readiness.ready import Broker, check_ready

__all__ = ["TICK_SECONDS", "Broker", "Check", "Status", "check_fleet", "check_ready"]
