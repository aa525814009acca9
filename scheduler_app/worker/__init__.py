"""Deliver: claim, hand over, send, record."""

from scheduler_app.worker.capacity import Stopping
from scheduler_app.worker.pipeline import Pipeline

__all__ = ["Pipeline", "Stopping"]
