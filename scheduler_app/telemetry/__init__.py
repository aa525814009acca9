"""Logs and metrics: what an operator looks for at three in the morning."""

from scheduler_app.telemetry import metrics
from scheduler_app.telemetry.logs import configure_logs, get_logger

__all__ = ["configure_logs", "get_logger", "metrics"]
