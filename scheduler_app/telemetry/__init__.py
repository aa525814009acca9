"""Logs and metrics."""

from scheduler_app.telemetry import metrics
from scheduler_app.telemetry.logs import (
    bind_log_fields,
    configure_logs,
    get_logger,
    is_json,
    unbind_log_fields,
)
from scheduler_app.telemetry.metrics import serve_metrics

__all__ = [
    "bind_log_fields",
    "configure_logs",
    "get_logger",
    "is_json",
    "metrics",
    "serve_metrics",
    "unbind_log_fields",
]
