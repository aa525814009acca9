"""Delivery, the duty of workers: claim events, start their attempts in time, record what came of them."""

from scheduler_app.worker.capacity import WorkerStopping
from scheduler_app.worker.pipeline import Pipeline

__all__ = ["Pipeline", "WorkerStopping"]
