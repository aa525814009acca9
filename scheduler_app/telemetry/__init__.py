"""Logs and metrics."""

from scheduler_app.telemetry import metrics
from scheduler_app.telemetry.logs import configure_logs, get_logger
from scheduler_app.telemetry.metrics_server import serve_metrics

__all__ = ["configure_logs", "get_logger", "metrics", "serve_metrics"]
