"""Keeps a set of programs running in one foreground, and ends them in order."""

from scheduler_app.cli.up.supervisor.console import Console
from scheduler_app.cli.up.supervisor.process import Service
from scheduler_app.cli.up.supervisor.supervisor import Supervisor

__all__ = ["Console", "Service", "Supervisor"]
